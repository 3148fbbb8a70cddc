"""Who answers requests of one path at once, without the application."""

from __future__ import annotations

from typing import Any, Protocol

HttpHeader = tuple[bytes, bytes]

HttpAnswer = tuple[int, tuple[HttpHeader, ...], bytes]
"""A whole response: its code, its headers and its body."""


class Responder(Protocol):
    """Answers requests of one path at once."""

    def respond(self, scope: dict[str, Any], body: bytes | bytearray) -> HttpAnswer | None:
        """The response; None where the application must be asked, which may wait."""

    def refuse_unread(self, prefix: bytes, message: str) -> HttpAnswer | None:
        """The response to a body that is too large to be read, of which this is the beginning.

        None where there is nothing better to say than 413.
        """
