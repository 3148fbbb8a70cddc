"""Answers that need no application: a path's responder, and failures as Kubernetes' Status objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.server.responsibility import Delay

HttpHeader = tuple[bytes, bytes]

JSON: Final[HttpHeader] = (b"content-type", b"application/json")

HttpAnswer = tuple[int, tuple[HttpHeader, ...], bytes]
"""A whole response: its code, its headers and its body."""

LaterAnswer: TypeAlias = "Callable[[Callable[[HttpAnswer], None]], None]"
"""A response that waits for something: calls the given function with it, on the loop's thread."""


class Responder(Protocol):
    """Answers requests of one path immediately."""

    def respond(
        self, scope: dict[str, Any], body: bytes | bytearray
    ) -> HttpAnswer | LaterAnswer | None:
        """Returns the response, now or later; None if the application must answer."""

    def refuse_unread(self, prefix: bytes, message: str) -> HttpAnswer | None:
        """Returns the response to a body that is too large to read, from the body's beginning.

        None if 413 is the best answer.
        """

    def until(self, query: bytes, received_at: float) -> float:
        """Returns when the answer to a request with this query is due, on the monotonic clock."""

    def work_since(self, moment: float, requester: str) -> Delay:
        """Returns the work for a requester, and for all, since a moment on that clock."""

    def refuse_delayed(self, prefix: bytes, delay: Delay, message: str) -> HttpAnswer | None:
        """Returns the response to a request without room or time, from the body's beginning.

        None if other users caused the lack.
        """


# metav1.StatusReason of each code that is answered here.
REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def failure(code: int, message: str) -> bytes:
    """Encodes a Status for a failure; the API server quotes its message to the user."""
    return encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": REASONS.get(code, ""),
            "code": code,
        }
    )
