"""Keeps providers' answers by provider and key for a while. Any thread may read and write.

As Gatekeeper's, but bounded, and errors are kept for a shorter time than values: whoever mends what
a provider complained of need not wait for minutes. What is half as old as it may get is asked for
again in the background, so that what is used all the time never has anybody wait.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.encoding import encode
from webhook.external_data.response import AnsweredKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.external_data.response import ProviderAnswer

BYTES_MAX: Final = 32 * 1024 * 1024
"""Of all that is kept, as Python holds it: 60,000 verdicts about images."""

ENTRY_BYTES: Final = 450
"""The memory of an entry beside its key, value and error, in bytes: measured over 10,000 short
ones."""

DECODED_FACTOR: Final = 8
"""The memory of a decoded value at most, in bytes for each byte of its JSON, texts and lists in the
usual mix."""

LARGEST_PART: Final = 16
"""An item that would take more than this part of the bound is not kept: it would drive out all else."""

REFRESH_PART: Final = 0.5
"""The part of its time after which an entry that is used is asked for again."""

FRESH_SECONDS: Final = 10.0
"""How old a value may be for a mutator, whose provider Gatekeeper asks each time: so a provider that
takes longer than the webhook may wait is heard at the next try, and no later one finds it old."""


class _Entry(NamedTuple):
    value: Any
    error: str
    is_idempotent: bool
    received: float
    bytes: int


class Lookup(NamedTuple):
    """The keys with known values, in their order, and those without."""

    items: tuple[AnsweredKey, ...]
    missing: tuple[str, ...]
    is_idempotent: bool
    aging: tuple[str, ...]
    """Of those that are known what is to be asked for again."""


class ResponseCache:
    """Providers' answers, by provider and key."""

    def __init__(
        self,
        *,
        value_seconds: float,
        error_seconds: float,
        bytes_max: int = BYTES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is kept with ``value_seconds`` of 0, and no errors with ``error_seconds`` of 0."""
        self._value_seconds = value_seconds
        self._error_seconds = min(error_seconds, value_seconds)
        self._bytes_max = bytes_max
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._refreshed: dict[tuple[str, str], float] = {}
        """When an entry was last asked for again, of those that were."""
        self.bytes = 0
        self.evicted = 0

    def look(self, provider: str, keys: Sequence[str], *, fresh: bool = False) -> Lookup:
        """Looks up keys; with ``fresh`` only values that have just been answered count."""
        if not self._entries:
            return Lookup((), tuple(keys), True, ())
        now = self._clock()
        items, missing, aging = [], [], []
        is_idempotent = True
        with self._lock:
            for key in keys:
                entry = self._fresh(provider, key, now, fresh=fresh)
                if entry is None:
                    missing.append(key)
                    continue
                items.append(AnsweredKey(key, entry.value, entry.error))
                is_idempotent = is_idempotent and entry.is_idempotent
                if not fresh and self._is_aging(provider, key, entry, now):
                    aging.append(key)
        return Lookup(tuple(items), tuple(missing), is_idempotent, tuple(aging))

    def _fresh(self, provider: str, key: str, now: float, *, fresh: bool) -> _Entry | None:
        entry = self._entries.get((provider, key))
        if entry is None:
            return None
        age = now - entry.received
        if age >= (self._error_seconds if entry.error else self._value_seconds):
            self._drop((provider, key))
            return None
        if fresh and (entry.error or not entry.is_idempotent or age >= FRESH_SECONDS):
            return None
        self._entries.move_to_end((provider, key))
        return entry

    def _is_aging(self, provider: str, key: str, entry: _Entry, now: float) -> bool:
        """Whether to ask for an entry again; once in the second half of its time."""
        if entry.error or not entry.is_idempotent:
            return False
        if now - entry.received < self._value_seconds * REFRESH_PART:
            return False
        if self._refreshed.get((provider, key), -1.0) >= entry.received:
            return False
        self._refreshed[provider, key] = now
        return True

    def keep(self, provider: str, answer: ProviderAnswer, *, refreshes: bool = False) -> None:
        """Keep what a provider said of keys; one that was asked for again keeps its value beside an error."""
        if not self._value_seconds:
            return
        now = self._clock()
        # Of an answer with a fault for all its keys no mutator may use a part, not even later.
        is_idempotent = answer.is_idempotent and not answer.system_error.strip()
        for item in answer.items:
            if refreshes and item.error:
                continue
            if not (self._error_seconds if item.error else self._value_seconds):
                continue
            size = _size(provider, item)
            if size * LARGEST_PART > self._bytes_max:
                continue
            value = None if item.error else item.value
            entry = _Entry(value, item.error, is_idempotent, now, size)
            with self._lock:
                self._drop((provider, item.key))
                self._entries[provider, item.key] = entry
                self.bytes += size
                while self.bytes > self._bytes_max:
                    self._drop(next(iter(self._entries)))
                    self.evicted += 1

    def forget(self, provider: str) -> None:
        """Keep nothing that a provider said: it is another now."""
        with self._lock:
            for name in [name for name in self._entries if name[0] == provider]:
                self._drop(name)

    def sweep(self) -> None:
        """Let go of what is too old, so that what nobody asks for again takes no room."""
        now = self._clock()
        with self._lock:
            entries = tuple(self._entries.items())
        for name, entry in entries:
            limit = self._error_seconds if entry.error else self._value_seconds
            if now - entry.received < limit:
                continue
            with self._lock:  # for each: an admission may be waiting for it
                if self._entries.get(name) is entry:
                    self._drop(name)

    def providers(self) -> set[str]:
        """The providers of whom something is kept."""
        with self._lock:
            return {provider for provider, _ in self._entries}

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, name: tuple[str, str]) -> None:
        entry = self._entries.pop(name, None)
        self._refreshed.pop(name, None)
        if entry is not None:
            self.bytes -= entry.bytes


def _size(provider: str, item: AnsweredKey) -> int:
    texts = len(provider) + 2 * len(item.key) + 4 * len(item.error)
    return ENTRY_BYTES + texts + (0 if item.error else DECODED_FACTOR * len(encode(item.value)))


def answered_items(items: Iterable[AnsweredKey]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Responses and errors as a call gets them: pairs of a key and what was said of it."""
    responses: list[tuple[str, Any]] = []
    errors: list[tuple[str, str]] = []
    for item in items:
        if item.error:
            errors.append((item.key, item.error))
        else:
            responses.append((item.key, item.value))
    return tuple(responses), tuple(errors)
