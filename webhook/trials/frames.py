"""Frames of a socket between two processes of ours: texts with their lengths before them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

LENGTH: Final = struct.Struct(">Q")
"""The format of a length: eight bytes, big-endian."""


class Buffered:
    """Reads all available data from a socket at once: one wait for the interpreter's lock."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._read = bytearray()

    def recv(self, length: int) -> bytes:
        """Returns at most ``length`` bytes; empty if the peer has gone. Raises OSError."""
        if not self._read:
            self._read += self._source.recv(1 << 20)
        taken = bytes(self._read[:length])
        del self._read[:length]
        return taken


def send(to: socket.socket, body: bytes) -> None:
    """Sends it whole; raises OSError."""
    to.sendall(LENGTH.pack(len(body)))
    to.sendall(body)


def receive(source: socket.socket | Buffered) -> bytes | None:
    """Receives the next frame; None if the peer has gone. Raises OSError, also TimeoutError."""
    head = _exactly(source, LENGTH.size)
    return None if head is None else _exactly(source, LENGTH.unpack(head)[0])


def _exactly(source: socket.socket | Buffered, length: int) -> bytes | None:
    content = bytearray()
    while len(content) < length:
        part = source.recv(min(length - len(content), 1 << 20))
        if not part:
            return None
        content += part
    return bytes(content)
