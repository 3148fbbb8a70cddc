"""Large requests are decoded beside the thread that answers, within a bound of memory.

A document takes up to thirty times as much memory decoded as it does as text. So what
large requests take is bounded together, from before they are decoded until they are
answered: one that finds no room waits for it. Small ones are decoded and answered in one
go; only those that must wait for something are counted, too.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.admission import (
    AdmissionRequest,
    InvalidReview,
    UndecidableReview,
    decode_review,
)
from webhook.api.footprint import footprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

LARGE_BYTES: Final = 64 * 1024
"""From here on a body is decoded beside the admission thread: orjson takes 1.5 ms for it where it
is dense, and 64 connections may each have sent one. Handing it over and back takes a tenth of a
millisecond."""

MEMORY_BYTES_MAX: Final = 192 * 1024 * 1024
"""Twice 3 MiB of the JSON that grows most when it is decoded, 32 times: what one update may bring.
With all bodies that may wait (64 MiB) it is 256 MiB."""


class NoRoom(Exception):
    """There was no room in time."""


class Decoded(NamedTuple):
    """What came of a body: a request with the memory that was taken for it, or why there is none.

    Not raised: a traceback would keep the body for as long as the error, and in a circle.
    """

    request: AdmissionRequest | None
    size: int = 0
    error: InvalidReview | NoRoom | None = None


class Memory:
    """What decoded requests take, together. Any thread may ask."""

    def __init__(self, bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self._taken = 0
        self._closed = False
        self._changed = threading.Condition()

    def take(self, size: int, until: float = 0.0) -> None:
        """Take room, waiting for it until this moment on the monotonic clock.

        Raises :class:`NoRoom`.
        """
        with self._changed:
            is_changed = self._changed.wait_for(
                lambda: self._closed or self._taken + size <= self.bytes_max,
                timeout=max(0.0, until - time.monotonic()),
            )
            if not is_changed or self._closed:
                raise NoRoom
            self._taken += size

    def give(self, size: int) -> None:
        """Give room back."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def close(self) -> None:
        """Have nobody wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Decoding:
    """One thread that decodes large requests, one after the other."""

    def __init__(
        self,
        *,
        body_max: int,
        memory: Memory | None = None,
        begin: Callable[[], None] | None = None,
    ) -> None:
        """``begin`` is called first by the thread."""
        self.memory = memory or Memory()
        self.body_max = body_max
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="decode", initializer=begin
        )

    def decode(self, body: bytes | bytearray, until: float) -> Future[Decoded]:
        """The request, by this moment on the monotonic clock."""
        return self._executor.submit(self._decode, body, until)

    def _decode(self, body: bytes | bytearray, until: float) -> Decoded:
        memory = self.memory
        size = footprint(body, bound=memory.bytes_max)
        if size > memory.bytes_max:
            return Decoded(None, 0, UndecidableReview(f"it would take {size} bytes of memory"))
        try:
            memory.take(size, until)
        except NoRoom as error:
            return Decoded(None, 0, error.with_traceback(None))
        try:
            request = decode_review(body, max_bytes=self.body_max, in_pieces=True)
        except InvalidReview as error:
            memory.give(size)
            return Decoded(None, 0, error.with_traceback(None))
        except BaseException:
            memory.give(size)
            raise
        return Decoded(request, size)

    def stop(self) -> None:
        """Decode nothing more."""
        self.memory.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
