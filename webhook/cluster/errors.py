"""The errors of requests to the API server, one class for each reaction of callers."""

from __future__ import annotations

from typing import Any, Final

from webhook.api.encoding import DecodeError, decode


class ApiError(Exception):
    """The API server refused a request.

    ``status`` is the HTTP status and ``reason`` that of the answer's ``Status`` object
    (``Conflict``, ``NotFound`` …, empty without one). ``retry_after_seconds`` is the server's
    ``Retry-After``. ``continue_token`` continues a list whose token expired, with the objects of
    now.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        retry_after_seconds: float | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.message = message
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        self.continue_token = continue_token

    @property
    def is_conflict(self) -> bool:
        """Whether another writer was faster, or the object exists already."""
        return self.status == 409

    @property
    def is_absent(self) -> bool:
        """Whether the object, or its whole kind, does not exist."""
        return self.status == 404

    @property
    def is_forbidden(self) -> bool:
        """Whether the right is missing."""
        return self.status == 403

    @property
    def is_server_fault(self) -> bool:
        """Whether the server or a proxy before it failed: this says nothing about the object."""
        return self.status >= 500

    @property
    def is_expired(self) -> bool:
        """Whether a resource version or continue token has expired: list the kind again."""
        return self.status == 410


class ApiUnreachable(Exception):
    """The API server did not answer: no connection, a broken one, or a timeout."""


class AnswerTooLarge(ApiUnreachable):
    """An answer exceeds its bound and was not read to its end."""


NOT_SERVED: Final = "the API server serves no such kind: its CRD is not installed"


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Returns the error for a failed response."""
    try:
        answer = decode(body)
    except DecodeError:
        answer = None
    if not isinstance(answer, dict):
        text = body[:512].decode("utf-8", "replace").strip()
        # The text of Go's server for a kind that is not served says nothing to users.
        answer = {"message": NOT_SERVED if text == "404 page not found" else text}
    return status_error(answer, status, _seconds(retry_after))


def status_error(
    status_object: dict[str, Any], default_code: int, retry_after_seconds: float | None = None
) -> ApiError:
    """Returns the error for a ``Status`` object, of a response or of a watch event."""
    code = status_object.get("code")
    details = status_object.get("details")
    if retry_after_seconds is None and isinstance(details, dict):
        seconds = details.get("retryAfterSeconds")
        retry_after_seconds = float(seconds) if isinstance(seconds, int) and seconds else None
    metadata = status_object.get("metadata")
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return ApiError(
        code if isinstance(code, int) and code else default_code,
        str(status_object.get("message", "")),
        reason=str(status_object.get("reason", "")),
        retry_after_seconds=retry_after_seconds,
        continue_token=token if isinstance(token, str) else "",
    )


def _seconds(text: str | None) -> float | None:
    """Returns ``Retry-After`` in seconds; API servers do not use its other form, a date."""
    return float(text) if text and text.isdecimal() else None
