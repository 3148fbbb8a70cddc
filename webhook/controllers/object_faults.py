"""The boundary around one object: whatever it raises costs that object, and nobody else.

Every reader of an object that is followed runs within this: an event's or a change's
(:meth:`ObjectFaults.object`, :meth:`ObjectFaults.each`), an attempt to put it in force
(:meth:`ObjectFaults.attempt`), and work that a queue names by a key (:meth:`ObjectFaults.run`).

Those who follow a cluster foresee much, and what they foresee ends in the status of
the object concerned. What they do not foresee (a shape that nothing may have, a
depth at which Python's own comparison ends, a bug) is caught here, whatever its
class: it is counted, told in one line of the log as long as it is the same, and the
next object is taken. Outages of the API server are none of it, and pass.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.metrics.cluster import OBJECT_FAULTS, OBJECTS_SPOILED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator

    from webhook.cluster.store import Change
    from webhook.cluster.work_queue import WorkQueue
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

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
"""Who could not go on with an object; the metrics' label."""

REMEMBERED_MAX: Final = 1_000
"""Objects whose fault is remembered, so that it is told once; beyond, each is told every time
that it is met."""

DETAIL_CHARACTERS_MAX: Final = 300
"""Of an error's own text in a status: some print the whole object."""


def described(error: Exception) -> str:
    """An error that nobody foresaw, in a sentence for a status."""
    if isinstance(error, RecursionError):
        return "nested deeper than it can be looked at"
    text = str(error)
    if len(text) > DETAIL_CHARACTERS_MAX:
        text = f"{text[: DETAIL_CHARACTERS_MAX - 1]}…"
    return f"internal error: {type(error).__name__}: {text}"


class ObjectFaults:
    """The objects that could not be followed. Used by one task, or by tasks of one loop."""

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
        """Do something for one object; what it raises ends here, and ``otherwise`` is told."""
        try:
            yield
        except (ApiError, ApiUnreachable):
            raise
        except Exception as error:  # noqa: BLE001  # the object's boundary: counted, logged, told
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
        """Take in what changed, object by object."""
        for change in changes:
            with self.object(follower, *filter(None, (kind, *change.key))):
                take(change)

    def attempt(
        self, follower: Follower, name: tuple[str, ...], do: Callable[[], T]
    ) -> T | Exception:
        """What comes of something tried for an object, or what it raised.

        Whoever tries several things says with :meth:`clear` that none of them raised.
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
        """Have a queue's keys settled until cancelled; one that raises is tried again."""

        async def settled(key: KeyT) -> None:
            await settle(key)
            self.clear(follower, *_name_of(key))

        def fault(key: KeyT, error: Exception) -> None:
            if not isinstance(error, ApiError | ApiUnreachable):
                self._take(follower, _name_of(key), error)

        await queue.run(settled, workers, fault=fault)

    def _take(self, follower: Follower, name: tuple[str, ...], error: Exception) -> None:
        """An object raised this."""
        key, text = (follower, *name), described(error)
        is_news = self._known.get(key) != text
        if key in self._known or len(self._known) < REMEMBERED_MAX:
            self._known[key] = text
        if self._registry is not None:
            self._registry.count(OBJECT_FAULTS, follower)
            self._show()
        if is_news and self._log is not None:
            self._log.fault(
                "an object cannot be followed; all others are",
                error,
                follower=follower,
                object="/".join(part for part in name if part),
            )

    def clear(self, follower: Follower, *name: str) -> None:
        """An object can be followed, or is gone."""
        if self._known.pop((follower, *name), None) is not None and self._registry is not None:
            self._show()

    def _show(self) -> None:
        assert self._registry is not None
        counts: dict[tuple[str, ...], float] = {}
        for follower, *_ in self._known:
            counts[follower,] = counts.get((follower,), 0) + 1
        self._registry.replace(OBJECTS_SPOILED, counts)


def _name_of(key: Any) -> tuple[str, ...]:
    """The name of what a queue's key stands for, whose parts may be tuples."""
    return tuple(part for one in key for part in _name_of(one)) if type(key) is not str else (key,)
