"""Failures as Kubernetes' Status objects: the API server quotes their message to the user."""

from __future__ import annotations

from typing import Final

from webhook.api.encoding import encode

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
    """A Status that tells of a failure."""
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
