"""The body of the request that a connection is reading, and its share of the port's bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.server.http import limits

if TYPE_CHECKING:
    import asyncio

    from webhook.server.http.hub import Hub, Share
    from webhook.server.http.large_bodies import LargeBody


class RequestBody:
    """The part of a body that has arrived so far."""

    __slots__ = (
        "_chunks",
        "_hub",
        "bound",
        "content",
        "reserved",
        "size",
        "timer",
        "too_large",
        "waits",
    )

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.content: bytes | bytearray = b""
        self.size = 0
        self.bound = limits.LARGE_BODY_BYTES
        """The size beyond which it needs a place, or cannot be taken."""
        self.too_large = False
        self.reserved = 0
        """Bytes of its place among the large bodies."""
        self.waits = False
        """Whether it waits for such a place."""
        self.timer: asyncio.TimerHandle | None = None
        """The timer that ends the wait for its rest."""
        self._chunks = 0

    def add(self, part: bytes, share: Share) -> None:
        """Adds a part."""
        if not self.content:
            self.content = part
        elif type(self.content) is bytearray:
            self.content += part
        else:  # In one piece: a list of parts would hold an object for each of them.
            self.content = bytearray(self.content) + part
        self.size += len(part)
        self._hub.waiting_bytes += len(part)
        share.bytes += len(part)

    def add_chunk(self) -> bool:
        """Counts a chunk; False if there are too many for their size."""
        self._chunks += 1
        return self._chunks <= limits.CHUNKS_FREE + self.size // limits.CHUNK_BYTES_MIN

    def complete(self, connection: LargeBody) -> bool:
        """Ends the body; returns whether it was waiting for a place."""
        self._chunks = 0
        return self._stop_waiting(connection)

    def reserve(self, connection: LargeBody, size: int) -> bool:
        """Reserves a place for a body of this size; False while there is none and it waits."""
        self.waits = not self._hub.large.reserve(connection, size)
        if not self.waits:
            self.reserved = size
        return not self.waits

    def hand_over(self) -> tuple[bytes | bytearray, int]:
        """Returns the bytes and the size of their place, which the caller must release."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        given = self.content, self.reserved
        self.content, self.size, self.reserved = b"", 0, 0
        return given

    def release(self, connection: LargeBody, share: Share) -> None:
        """Drops the received part, its place, and the wait for a place."""
        hub = self._hub
        hub.waiting_bytes -= self.size
        share.bytes -= self.size
        content, reserved = self.hand_over()
        del content
        self._stop_waiting(connection)
        if reserved:
            hub.large.release(reserved)

    def _stop_waiting(self, connection: LargeBody) -> bool:
        if not self.waits:
            return False
        self.waits = False
        self._hub.large.leave_line(connection)
        return True
