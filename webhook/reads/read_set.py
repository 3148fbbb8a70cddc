"""The paths that an evaluation can read, as a prefix tree."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EVERY_KEY: Final = "*"
"""Every key of an object, every item of a list. A key that is written so is read as every key, too."""

ReadPath: TypeAlias = tuple[str, ...]
"""A path from a root, as ``("input", "review", "object", "spec")``."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The read parts of a value: all of it where ``whole``, else its kind, and these children.

    Of a container that is not read whole an evaluation sees what kind it is, and no more than the
    children say. The child :data:`EVERY_KEY` shows all keys, and how many items there are. Without
    ``scalar`` it sees of one no more than that it is there, and whether it is false; of a value
    without children nothing else.
    """

    whole: bool = False
    scalar: bool = True
    children: Mapping[str, ReadSet] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, *path: str) -> ReadSet | None:
        """Return the reads below a path; None where there are none."""
        at: ReadSet | None = self
        for name in path:
            if at is None or at.whole:
                return at
            at = _united(at.children.get(name), at.children.get(EVERY_KEY))
        return at

    def paths(self) -> Iterator[ReadPath]:
        """The paths at which it ends, in order."""
        if not self.children:
            yield ()
        for name in sorted(self.children):
            for path in self.children[name].paths():
                yield (name, *path)

    @property
    def texts(self) -> list[str]:
        """The paths as policies write them, without ``input``: ``review.object.spec``; ``*`` for all."""
        return [_text(path) for path in self.paths() if path] or ["*"] * self.whole

    def project(self, value: Any) -> Any:
        """The value with nothing in it but what is read."""
        if self.whole:
            return value
        if not self.scalar and not (self.children and isinstance(value, (dict, list))):
            return value is not False
        if isinstance(value, dict):
            return {
                key: below.project(item)
                for key, item in value.items()
                if (below := self.at(key)) is not None
            }
        if isinstance(value, list):
            every = self.children.get(EVERY_KEY)
            return [] if every is None else [every.project(item) for item in value]
        return value

    def __or__(self, other: ReadSet) -> ReadSet:
        """Unite two sets of reads."""
        if self.whole or other.whole:
            return WHOLE
        if self == other:
            return self
        names = {**self.children, **other.children}
        return ReadSet(
            scalar=self.scalar or other.scalar,
            children=MappingProxyType(
                {
                    name: below
                    for name in names
                    if (below := _united(self.children.get(name), other.children.get(name)))
                }
            ),
        )


WHOLE: Final = ReadSet(whole=True)


def _united(one: ReadSet | None, other: ReadSet | None) -> ReadSet | None:
    if one is None or other is None:
        return one or other
    return one | other


def _text(path: ReadPath) -> str:
    """A path from a review, parameters or data, in dots and brackets."""
    names = path[1:] if path[0] == "input" and len(path) > 1 else path
    text = ""
    for name in names:
        if name == EVERY_KEY:
            text += "[*]"
        elif name.isidentifier():
            text += f".{name}" if text else name
        else:
            text += f'["{name}"]'
    return text


class ReadRecorder:
    """Collects what is read, to be frozen into a :class:`ReadSet`."""

    __slots__ = ("_below", "is_scalar", "is_whole")

    def __init__(self) -> None:
        self.is_whole = self.is_scalar = False
        self._below: dict[str, ReadRecorder] = {}

    def present(self, place: ReadPath) -> None:
        """Somebody asks whether there is something at a place, and not false."""
        self._reach(place)

    def shallow(self, place: ReadPath) -> None:
        """Record a shallow read: the kind of the value, and which scalar."""
        self._reach(place).is_scalar = True

    def whole(self, place: ReadPath) -> None:
        """Somebody reads all that is at a place."""
        self._reach(place).is_whole = True

    def _reach(self, place: ReadPath) -> ReadRecorder:
        at = self
        for name in place:
            below = at._below.get(name)
            if below is None:
                below = at._below[name] = ReadRecorder()
            at = below
        return at

    def frozen(self) -> ReadSet:
        """Return the recorded reads."""
        if self.is_whole:
            return WHOLE
        children = {name: below.frozen() for name, below in self._below.items()}
        every = children.get(EVERY_KEY)
        if every is not None:  # what every key shows need not be said of one
            children = {
                name: below
                for name, below in children.items()
                if name == EVERY_KEY or (below | every) != every
            }
        return ReadSet(scalar=self.is_scalar, children=MappingProxyType(children))


@dataclass(frozen=True, slots=True)
class PolicyReads:
    """The reads that the results of a policy depend on.

    ``reads`` has the roots ``input`` and ``data``. ``deciding`` is the part of it by which there is a
    violation or none: what only messages tell is left out. ``changing`` are functions that may answer
    otherwise another time (time, chance, a network), or have an effect (prints); with none of them, and where it asks no
    ``providers``, equal values of what is read have equal results.
    """

    reads: ReadSet
    deciding: ReadSet
    changing: tuple[str, ...] = ()
    providers: bool = False

    @property
    def paths(self) -> list[str]:
        """The paths as policies write them, without ``input``: ``review.object.spec``."""
        return self.reads.texts

    @property
    def deterministic(self) -> bool:
        """Whether the fields that are read, with providers' answers, decide the results."""
        return not self.changing

    @property
    def lines(self) -> list[str]:
        """All of it for people, a line each."""
        changing = [
            f"{name}, which has an effect or may answer otherwise" for name in self.changing
        ]
        return [*self.paths, *changing, *(["what providers answer"] if self.providers else [])]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "paths": self.paths,
            "deterministic": self.deterministic,
            "changing": list(self.changing),
            "providers": self.providers,
        }
