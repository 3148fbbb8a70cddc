"""An AdmissionReview endpoint as plain ASGI: what every request to one has in common.

A decision is answered 200. Everything else is a failed call to the API server,
which then does what ``failurePolicy`` says: it is answered with another code and
a Status whose message the API server quotes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.admission import InvalidReview, decode_review, encode_response
from webhook.api.encoding import encode
from webhook.server.exchange import JSON, JSON_ALONE
from webhook.server.preparation import Waiting
from webhook.server.status import failure

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.log import Logger
    from webhook.metrics import Registry
    from webhook.server.exchange import Answer, Receive, Send

from webhook import metrics

_EMPTY: Final = encode(
    {
        "response": {
            "uid": "",
            "allowed": False,
            "status": {"metadata": {}, "message": "request body is empty", "code": 400},
        }
    }
)
"""What controller-runtime answers to a request without a body, with 200: probes rely on it."""


_WAITING: Final = "waddle.waiting"
"""Where a request's scope has what it waits for, between its two calls."""

_RETRY: Final = ((b"retry-after", b"0"), (b"connection", b"close"))
"""The API server's client then asks again at once, up to ten times (client-go's `rest`), each time
on a new connection, which may reach another replica. Of three replicas one that cannot answer costs
a few milliseconds; where none can, the user gets the answer itself. To be asked to wait a second
would end in `context deadline exceeded`, which says nothing."""


class Unanswerable(Exception):  # noqa: N818  # named by what it is
    """A request that gets no decision: the HTTP code, why in one word for metrics, and why."""

    def __init__(self, code: int, reason: str, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry = retry


class Decide(Protocol):
    """Decides a request."""

    def __call__(
        self, request: AdmissionRequest, query: bytes, received_at: float
    ) -> AdmissionResponse:
        """The decision; raises :class:`Unanswerable`.

        Raises :class:`~webhook.server.preparation.Waiting` if it needs something
        first. ``received_at`` is on the monotonic clock.
        """


class ReviewEndpoint:
    """Takes AdmissionReviews, v1 and v1beta1, and answers them in kind."""

    def __init__(self, decide: Decide, registry: Registry, log: Logger, *, body_max: int) -> None:
        self._decide = decide
        self._registry = registry
        self._log = log
        self._body_max = body_max

    def respond(self, scope: dict[str, Any], body: bytes) -> Answer | None:
        """Answer a request at once; None where something must be waited for.

        The application is to be asked then, with the same scope.
        """
        try:
            return self._answer(scope, body)
        except Waiting as waiting:
            scope[_WAITING] = waiting
            return None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or what is left of it when :meth:`respond` could not."""
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        answer = None if _WAITING in scope else self.respond(scope, body)
        while answer is None:
            waiting: Waiting = scope.pop(_WAITING)
            await waiting.finished
            try:
                answer = self._answer(scope, body, waiting)
            except Waiting as another:
                scope[_WAITING] = another
        code, headers, content = answer
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _answer(self, scope: dict[str, Any], body: bytes, waiting: Waiting | None = None) -> Answer:
        try:
            if not body and scope["method"] in ("GET", "HEAD"):
                return 200, JSON_ALONE, _EMPTY
            if waiting is not None:
                return 200, JSON_ALONE, encode_response(waiting.resume(), waiting.api_version)
            request = self._read(scope, body)
            received_at = scope.get("received_at") or time.monotonic()
            response = self._decide(request, scope["query_string"], received_at)
            return 200, JSON_ALONE, encode_response(response, request.api_version)
        except Waiting:
            raise
        except Unanswerable as refusal:
            self._registry.count(metrics.REFUSED, refusal.reason)
            headers = (JSON, *_RETRY) if refusal.retry else JSON_ALONE
            if refusal.code == 405:
                headers = (*headers, (b"allow", b"POST"))
            return refusal.code, headers, failure(refusal.code, str(refusal))
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._registry.count(metrics.REFUSED, "bug")
            self._log.fault("bug while deciding a request", error)
            return 500, JSON_ALONE, failure(500, "internal error: see the webhook's log")

    def _read(self, scope: dict[str, Any], body: bytes) -> AdmissionRequest:
        if scope["method"] != "POST":
            message = f"method {scope['method']} is not allowed: POST an AdmissionReview"
            raise Unanswerable(405, "method", message)
        if not body:
            raise Unanswerable(400, "malformed", "request body is empty")
        content_type = _header(scope, b"content-type")
        # As the API server writes it, or else as the standard lets it be written.
        if content_type != b"application/json" and (
            content_type.partition(b";")[0].strip().lower() != b"application/json"
        ):
            shown = content_type.decode("latin-1")
            raise Unanswerable(
                415, "content_type", f"contentType={shown}, expected application/json"
            )
        try:
            return decode_review(body, max_bytes=self._body_max)
        except InvalidReview as error:
            raise Unanswerable(400, "malformed", str(error)) from None


def _header(scope: dict[str, Any], wanted: bytes) -> bytes:
    for name, value in scope["headers"]:
        if name == wanted:
            return bytes(value)
    return b""
