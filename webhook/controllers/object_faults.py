"""The boundary around one object: any error it raises affects that object alone.

Controllers foresee many errors, and report them in the status of the object. Any other error (a
shape that no object may have, a depth at which Python's comparison fails, a bug) is caught here. It
is counted, and logged once as long as it stays the same; then the next object is taken. Errors of
the API server itself pass through: they concern no object.

All code that reads an object runs within one of four methods:

1. :meth:`ObjectFaults.object`: take one object, from an event. 2. :meth:`ObjectFaults.each`: take
the objects of several changes. 3. :meth:`ObjectFaults.attempt`: try to put an object in force, and
get its error as a value. 4. :meth:`ObjectFaults.run`: settle the keys of a queue.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint import template
from webhook.metrics.cluster import OBJECT_FAULTS, OBJECTS_SPOILED
from webhook.policy_kinds.known import constraint_gvk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator

    from webhook.cluster.store import Change
    from webhook.cluster.work_queue import WorkQueue
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

TEMPLATES: Final = template.KIND
"""The templates' name in readiness."""

PolicyKey: TypeAlias = tuple[str, str]
"""A constraint kind, or :data:`TEMPLATES`, or the kind of another policy with its group; and a
name."""


def constraint_kind(kind: str) -> str:
    """Returns a constraint kind's name in readiness."""
    return f"{kind}.{constraint_gvk(kind).group}"


T = TypeVar("T")
KeyT = TypeVar("KeyT", bound="Hashable")

Follower: TypeAlias = Literal[
    "template",
    "constraint",
    "namespace",
    "pod",
    "config",
    "syncset",
    "data",
    "status",
    "by_pod",
    "orphan",
    "crd",
    "revision",
    "rollout",
    "extension",
    "exception",
    "expressions",
    "generation",
    "rules",
]
"""The controller that could not take an object: the metrics' label."""

REMEMBERED_MAX: Final = 1_000
"""The most objects whose fault is remembered, so that it is logged once. Beyond that a fault is
logged each time it occurs."""

DETAIL_CHARACTERS_MAX: Final = 300
"""Characters of an error's own text in a status: some errors print the whole object."""


def described(error: Exception) -> str:
    """Returns an unforeseen error as a sentence for a status."""
    if isinstance(error, RecursionError):
        return "nested deeper than it can be looked at"
    text = str(error)
    if len(text) > DETAIL_CHARACTERS_MAX:
        text = f"{text[: DETAIL_CHARACTERS_MAX - 1]}…"
    return f"internal error: {type(error).__name__}: {text}"


class ObjectFaults:
    """The objects that raised an error. For one task, or the tasks of one loop."""

    def __init__(self, log: Logger | None = None, registry: Registry | None = None) -> None:
        self._log = log
        self._registry = registry
        self._known: dict[tuple[str, ...], str] = {}

    @contextmanager
    def object(
        self,
        follower: Follower,
        *name: str,
        otherwise: Callable[[Exception], object] | None = None,
    ) -> Iterator[None]:
        """Runs the block for one object. Its error ends here and is passed to ``otherwise``."""
        try:
            yield
        except (ApiError, ApiUnreachable):
            raise
        except Exception as error:  # noqa: BLE001  # the object's boundary: counted and logged
            self._take(follower, name, error)
            if otherwise is not None:
                otherwise(error)
        else:
            self.clear(follower, *name)

    def each(
        self,
        follower: Follower,
        kind: str,
        changes: Iterable[Change],
        take: Callable[[Change], Any],
    ) -> None:
        """Calls ``take`` for each change, within the boundary of its object."""
        for change in changes:
            with self.object(follower, *filter(None, (kind, *change.key))):
                take(change)

    def attempt(
        self, follower: Follower, name: tuple[str, ...], do: Callable[[], T]
    ) -> T | Exception:
        """Returns the result of ``do``, or the error that it raised.

        A success does not clear the object's fault, since a caller may make several attempts for
        one object. The caller calls :meth:`clear` once none of them has failed.
        """
        try:
            return do()
        except (ApiError, ApiUnreachable):
            raise
        except Exception as error:  # noqa: BLE001  # as above
            self._take(follower, name, error)
            return error

    async def run(
        self,
        follower: Follower,
        queue: WorkQueue[KeyT],
        settle: Callable[[KeyT], Awaitable[None]],
        workers: int,
    ) -> None:
        """Calls ``settle`` for a queue's keys until cancelled; the queue retries failed keys."""

        async def settled(key: KeyT) -> None:
            await settle(key)
            self.clear(follower, *_name_of(key))

        def fault(key: KeyT, error: Exception) -> None:
            if not isinstance(error, ApiError | ApiUnreachable):
                self._take(follower, _name_of(key), error)

        await queue.run(settled, workers, fault=fault)

    def _take(self, follower: Follower, name: tuple[str, ...], error: Exception) -> None:
        """Remember, count and log the error of an object."""
        key, text = (follower, *name), described(error)
        is_new = self._known.get(key) != text
        if key in self._known or len(self._known) < REMEMBERED_MAX:
            self._known[key] = text
        if self._registry is not None:
            self._registry.count(OBJECT_FAULTS, follower)
            self._show()
        if is_new and self._log is not None:
            self._log.fault(
                "an object cannot be followed; all others are",
                error,
                follower=follower,
                object="/".join(part for part in name if part),
            )

    def clear(self, follower: Follower, *name: str) -> None:
        """Forgets the fault of an object that was taken without an error, or deleted."""
        if self._known.pop((follower, *name), None) is not None and self._registry is not None:
            self._show()

    def _show(self) -> None:
        assert self._registry is not None
        counts: dict[tuple[str, ...], float] = {}
        for follower, *_ in self._known:
            counts[follower,] = counts.get((follower,), 0) + 1
        self._registry.replace(OBJECTS_SPOILED, counts)


def _name_of(key: Any) -> tuple[str, ...]:
    """Returns the parts of a queue's key as a flat tuple."""
    return (key,) if type(key) is str else tuple(part for item in key for part in _name_of(item))
