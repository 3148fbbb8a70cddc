"""The paths that an evaluation can read, as a prefix tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.reads.text_tests import IS_TEXT
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.reads.text_tests import TextTest

EVERY_KEY: Final = "*"
"""Every key of an object, or every item of a list. A key with this name is read as every key, too.
"""

ReadPath: TypeAlias = tuple[str, ...]
"""A path from a root, as ``("input", "review", "object", "spec")``."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The read parts of a value: the whole value, or its type and some children.

    Four cases: ``whole`` reads everything; ``children`` read the type of a container and these
    children; the child :data:`EVERY_KEY` reads all keys, or the number of items; without
    ``scalar``, a scalar is only checked for presence and for false. Without children and
    ``scalar``, a container is checked for presence only. With ``tests``, of a text these are read
    in place of its content, and other scalars as with ``scalar``.
    """

    whole: bool = False
    scalar: bool = True
    children: Mapping[str, ReadSet] = field(default_factory=lambda: MappingProxyType({}))
    tests: frozenset[TextTest] = frozenset()

    def at(self, *path: str) -> ReadSet | None:
        """Returns the reads below a path; None if there are none."""
        at: ReadSet | None = self
        for name in path:
            if at is None or at.whole:
                return at
            at = _united(at.children.get(name), at.children.get(EVERY_KEY))
        return at

    def paths(self) -> Iterator[ReadPath]:
        """Yields the paths of the leaves, in order."""
        if not self.children:
            yield ()
        for name in sorted(self.children):
            for path in self.children[name].paths():
                yield (name, *path)

    @property
    def texts(self) -> list[str]:
        """The paths as in policies, without ``input``: ``review.object.spec``; ``*`` for all."""
        return [_text(path) for path in self.paths() if path] or ["*"] * self.whole

    def project(self, value: Any) -> Any:
        """Returns the value reduced to its read parts."""
        if self.whole:
            return value
        is_looked_into = self.children and isinstance(value, (dict, list))
        if not (self.scalar or self.tests or is_looked_into):
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

    def split(self, *path: str) -> tuple[ReadSet | None, ReadSet | None]:
        """Returns the reads beside a path, and those at it; together they are all reads.

        A value that is read whole above the path is at it. What is read of every key stays beside.
        """
        if self.whole or not path:
            return None, self
        child = self.children.get(path[0])
        if child is None:
            return self, None
        beside, at = child.split(*path[1:])
        if at is None:
            return self, None
        children = {name: below for name, below in self.children.items() if name != path[0]}
        if beside is not None:
            children[path[0]] = beside
        return (
            ReadSet(scalar=self.scalar, children=MappingProxyType(children), tests=self.tests),
            ReadSet(scalar=self.scalar, children=MappingProxyType({path[0]: at}), tests=self.tests),
        )

    @property
    def untested(self) -> ReadSet:
        """The reads with texts in place of their tests."""
        if self.whole:
            return self
        children = {name: below.untested for name, below in self.children.items()}
        is_scalar = self.scalar or bool(self.tests)
        return ReadSet(scalar=is_scalar, children=MappingProxyType(children))

    def __or__(self, other: ReadSet) -> ReadSet:
        """Returns the union of two read sets."""
        if self.whole or other.whole:
            return WHOLE
        if self == other:
            return self
        names = {**self.children, **other.children}
        is_scalar = self.scalar or other.scalar
        return ReadSet(
            scalar=is_scalar,
            tests=frozenset() if is_scalar else self.tests | other.tests,
            children=MappingProxyType(
                {
                    name: below
                    for name in names
                    if (below := _united(self.children.get(name), other.children.get(name)))
                }
            ),
        )


WHOLE: Final = ReadSet(whole=True)


def _united(first: ReadSet | None, other: ReadSet | None) -> ReadSet | None:
    if first is None or other is None:
        return first or other
    return first | other


def _text(path: ReadPath) -> str:
    """Returns a path from a review, parameters or data, in dots and brackets."""
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
    """Records reads, to be frozen into a :class:`ReadSet`."""

    __slots__ = ("_below", "_tests", "is_scalar", "is_whole")

    def __init__(self) -> None:
        self.is_whole = self.is_scalar = False
        self._tests: set[TextTest] = set()
        self._below: dict[str, ReadRecorder] = {}

    def present(self, place: ReadPath) -> None:
        """Records a check whether the value at a place is defined and not false."""
        self._reach(place)

    def shallow(self, place: ReadPath) -> None:
        """Records a shallow read: the type of the value, and the value of a scalar."""
        self._reach(place).is_scalar = True

    def whole(self, place: ReadPath) -> None:
        """Records a read of the whole value at a place."""
        self._reach(place).is_whole = True

    def tested(self, place: ReadPath, test: TextTest) -> None:
        """Records a test of a text at a place, and a shallow read of other values."""
        self._reach(place)._tests.add(test)  # noqa: SLF001  # another recorder

    def _reach(self, place: ReadPath) -> ReadRecorder:
        at = self
        for name in place:
            below = at._below.get(name)
            if below is None:
                below = at._below[name] = ReadRecorder()
            at = below
        return at

    def frozen(self) -> ReadSet:
        """Returns the recorded reads."""
        if self.is_whole:
            return WHOLE
        children = {name: below.frozen() for name, below in self._below.items()}
        every = children.get(EVERY_KEY)
        if every is not None:  # every key covers children that read no more
            children = {
                name: below
                for name, below in children.items()
                if name == EVERY_KEY or (below | every) != every
            }
        tests = frozenset() if self.is_scalar else frozenset(self._tests)
        if len(tests) > 1:  # each other test shows that it is a text
            tests -= {(IS_TEXT,)}
        return ReadSet(scalar=self.is_scalar, children=MappingProxyType(children), tests=tests)


@dataclass(frozen=True, slots=True)
class PolicyReads:
    """The reads that the results of a policy depend on.

    ``reads`` has the roots ``input`` and ``data``. ``deciding`` is the part that decides whether
    there is a violation, without reads for messages only. ``changing`` are functions that may
    return other results later (time, random numbers, network) or have an effect (prints).
    ``providers`` is whether the policy uses external data. Without both, equal read parts have
    equal results. ``distinct`` are the dependencies of evaluations that find one value at most for
    each key of an object: values of one key are compared, and differ only by a mistake. None where
    that makes no difference.
    """

    reads: ReadSet
    deciding: ReadSet
    changing: tuple[str, ...] = ()
    providers: bool = False
    distinct: PolicyReads | None = None

    @property
    def paths(self) -> list[str]:
        """The paths as policies write them, without ``input``: ``review.object.spec``."""
        return self.reads.texts

    @property
    def deterministic(self) -> bool:
        """Whether the read fields, with providers' answers, decide the results."""
        return not self.changing

    @property
    def lines(self) -> list[str]:
        """The reads as text, one line each."""
        changing = [
            f"{name}, which has an effect or may answer otherwise" for name in self.changing
        ]
        return [*self.paths, *changing, *(["what providers answer"] if self.providers else [])]

    def document(self) -> dict[str, Any]:
        """Returns the reads as JSON."""
        return {
            "paths": self.paths,
            "deterministic": self.deterministic,
            "changing": list(self.changing),
            "providers": self.providers,
        }
