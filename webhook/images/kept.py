"""A cache of values, bounded by number and size, and optionally written to a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from webhook.values import dataclass

STALE_SECONDS: Final = 24 * 3600.0
"""The age at which a value is dropped; until then it serves if the registry is unavailable."""

ENTRIES_MAX: Final = 10_000
"""The number of images and tags at most; a cluster of 1,000 nodes runs some thousand."""
KEPT_BYTES_MAX: Final = 64 << 20
"""The size of all statements in memory at most."""

_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Kept(Generic[_V]):
    """A value, and the time until which it is fresh."""

    value: _V
    stored_at: float
    until: float
    size: int


class KeptFile(Protocol):
    """The facts that survive the process. Its methods do not wait for the disk."""

    def put(self, kind: str, key: str, kept: Kept[Any]) -> None:
        """Queues a value."""

    def forget(self, kind: str, key: str) -> None:
        """Queues a deletion."""


class KeptValues(Generic[_V]):
    """The latest values of a kind; the least recently used is dropped first."""

    def __init__(self, kind: str, clock: Callable[[], float], file: KeptFile | None = None) -> None:
        self._kind = kind
        self._clock = clock
        self._file = file
        self._kept: OrderedDict[str, Kept[_V]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Returns the approximate size of all values, in bytes."""
        return self._size

    def get(self, key: str) -> tuple[_V, bool] | None:
        """Returns a value and whether it is fresh; None if there is none, or it is too old."""
        kept = self._kept.get(key)
        now = self._clock()
        if kept is None or now > kept.stored_at + STALE_SECONDS:
            return None
        self._kept.move_to_end(key)
        return kept.value, now < kept.until

    def put(self, key: str, value: _V, seconds: float, size: int) -> None:
        """Keeps a value for some seconds; a value above ``KEPT_BYTES_MAX`` is not kept."""
        now = self._clock()
        kept = Kept(value, now, now + seconds, size)
        if self.restore(key, kept) and self._file is not None:
            self._file.put(self._kind, key, kept)

    def restore(self, key: str, kept: Kept[_V]) -> bool:
        """Adds a value with its old times; returns whether there was room for it."""
        before = self._kept.pop(key, None)
        if before is not None:
            self._size -= before.size
        if kept.size > KEPT_BYTES_MAX:
            return False
        self._kept[key] = kept
        self._size += kept.size
        while len(self._kept) > ENTRIES_MAX or self._size > KEPT_BYTES_MAX:
            oldest, dropped = self._kept.popitem(last=False)
            self._size -= dropped.size
            if self._file is not None:
                self._file.forget(self._kind, oldest)
        return True
