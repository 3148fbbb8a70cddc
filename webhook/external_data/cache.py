"""Keeps providers' answers by provider and key for a while. Thread-safe.

As in Gatekeeper, but bounded. Errors are kept for a shorter time than values, so that a repair has
effect soon. Entries beyond half of their time are requested again in the background, so that
frequently used ones never make a review wait.
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
"""The size limit in bytes of Python's memory: 60,000 verdicts about images."""

ENTRY_BYTES: Final = 450
"""The memory of an entry besides its key, value and error, in bytes: measured over 10,000 short
entries."""

DECODED_FACTOR: Final = 8
"""The memory of a decoded value at most, in bytes for each byte of its JSON, texts and lists in the
usual mix."""

LARGEST_PART: Final = 16
"""An entry larger than this part of the limit is not kept: it would displace all others."""

REFRESH_PART: Final = 0.5
"""The part of its time after which a used entry is requested again."""

FRESH_SECONDS: Final = 10.0
"""The maximum age of a value for a mutator, in seconds; Gatekeeper calls the provider each time. A
provider slower than the webhook's timeout is thus effective at the next try, and never with an old
value."""


class _Entry(NamedTuple):
    value: Any
    error: str
    is_idempotent: bool
    received: float
    bytes: int


class Lookup(NamedTuple):
    """The keys with known values, in their order, and the missing keys."""

    items: tuple[AnsweredKey, ...]
    missing: tuple[str, ...]
    is_idempotent: bool
    aging: tuple[str, ...]
    """The known keys to request again."""


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
        """``value_seconds`` or ``error_seconds`` of 0 disables keeping values or errors."""
        self._value_seconds = value_seconds
        self._error_seconds = min(error_seconds, value_seconds)
        self._bytes_max = bytes_max
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._refreshed: dict[tuple[str, str], float] = {}
        """The times of repeated requests, by entry."""
        self.bytes = 0
        self.evicted = 0

    def look(self, provider: str, keys: Sequence[str], *, fresh: bool = False) -> Lookup:
        """Looks up keys; with ``fresh`` only recent answers count."""
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
        """Returns whether to request an entry again; once in the second half of its time."""
        if entry.error or not entry.is_idempotent:
            return False
        if now - entry.received < self._value_seconds * REFRESH_PART:
            return False
        if self._refreshed.get((provider, key), -1.0) >= entry.received:
            return False
        self._refreshed[provider, key] = now
        return True

    def now(self) -> float:
        """Returns the time by which answers age, in seconds."""
        return self._clock()

    def keep(
        self,
        provider: str,
        answer: ProviderAnswer,
        received: float | None = None,
        *,
        refreshes: bool = False,
    ) -> None:
        """Keeps a provider's answers; an entry requested again keeps its value beside an error.

        ``received`` is the time of :meth:`now` at which they arrived, None for this moment.
        """
        if not self._value_seconds:
            return
        now = self._clock() if received is None else received
        # A fault of the whole answer makes all its values unusable for mutators, also later.
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
        """Drops all answers of a changed provider."""
        with self._lock:
            for name in [name for name in self._entries if name[0] == provider]:
                self._drop(name)

    def sweep(self) -> None:
        """Drops expired entries, which would take up memory."""
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
        """Returns the providers with kept answers."""
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
    """Returns responses and errors of a call: pairs of a key and its answer."""
    responses: list[tuple[str, Any]] = []
    errors: list[tuple[str, str]] = []
    for item in items:
        if item.error:
            errors.append((item.key, item.error))
        else:
            responses.append((item.key, item.value))
    return tuple(responses), tuple(errors)


def corrected_keys(items: Iterable[AnsweredKey]) -> frozenset[str]:
    """Returns the keys whose last item has a value and an earlier one an error."""
    refused: set[str] = set()
    corrected: set[str] = set()
    for item in items:
        if item.error:
            refused.add(item.key)
            corrected.discard(item.key)
        elif item.key in refused:
            corrected.add(item.key)
    return frozenset(corrected)
