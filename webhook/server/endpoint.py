"""An AdmissionReview endpoint as plain ASGI: the common part of all requests.

A decision is answered with 200. Anything else is a failed call to the API server, which then
applies ``failurePolicy``: the answer has another code and a Status, whose message the API server
shows.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.admission import (
    InvalidReview,
    UndecidableReview,
    decode_review,
    encode_response,
    namespace_in,
    origin_of,
)
from webhook.api.encoding import encode
from webhook.api.footprint import footprint
from webhook.metrics.admission import REFUSED, STRANGERS, UNDECIDABLE
from webhook.server import deadline, verdict
from webhook.server.decoding import LARGE_BYTES, NOTHING, NoRoom
from webhook.server.http.exchange import JSON_ALONE, RELEASE
from webhook.server.http.fair_queue import occupant_of
from webhook.server.http.head import STRANGER
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.http.responder import JSON, failure
from webhook.server.outcome import Pending, Unanswerable
from webhook.server.responsibility import NOTED_SECONDS, requester, responsible_for
from webhook.server.undecided import answer_unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.decoding import Decoded, Decoding, Room
    from webhook.server.http.exchange import Receive, Send
    from webhook.server.http.responder import HttpAnswer, LaterAnswer
    from webhook.server.outcome import Outcome
    from webhook.server.responsibility import Delay, Responsible
    from webhook.server.undecided import AnswerUnread

_EMPTY: Final = encode(
    {
        "response": {
            "uid": "",
            "allowed": False,
            "status": {"metadata": {}, "message": "request body is empty", "code": 400},
        }
    }
)
"""The answer of controller-runtime to a request without a body, with 200; probes rely on it."""

_TOO_MANY_LARGE: Final = (
    "the same user already has too many large requests in review: send fewer at once"
)

_NO_ROOM: Final = Unanswerable(
    429, "overload", "too many large requests are in review: try again, or try another replica"
)

_RETRY: Final = ((b"retry-after", b"0"), (b"connection", b"close"))
"""The header that makes the API server's client ask again at once, up to ten times (client-go's
`rest`), each time on a new connection, which may reach another replica. If one of three replicas
cannot answer, that costs milliseconds; if none can, the user sees the answer itself. A longer wait
would end in `context deadline exceeded`, which says nothing.
"""

READ_BYTES_A_SECOND: Final = 64 * 1024 * 1024
"""The rate at which a port reads large bodies, in bytes a second, in turns of 64 KiB each
millisecond: senders of large bodies get this much of the thread's time.
"""

MEASURED_BYTES: Final = 16 * 1024
"""The size from which the decoding of a body is measured. The densest body below it takes 0.3 ms,
less than what is noted; a measurement costs 1 µs.
"""


class Decide(Protocol):
    """Decides a request."""

    def __call__(self, request: AdmissionRequest, query: bytes, received_at: float) -> Outcome:
        """Returns the decision, or the pending requests, or the reason for no decision.

        ``received_at`` is on the monotonic clock.
        """


class ReviewEndpoint:
    """Takes AdmissionReviews v1 and v1beta1, and answers in the same version."""

    def __init__(
        self,
        decide: Decide,
        registry: Registry,
        log: Logger,
        *,
        decoding: Decoding,
        notify_unread: Callable[[str, str], None] | None = None,
        answer_unread: AnswerUnread = answer_unread,
    ) -> None:
        """``decoding`` decodes large requests, and may be shared by endpoints.

        ``notify_unread`` gets the UID and reason of requests that are refused unread;
        ``answer_unread`` decides whether they are refused.
        """
        self._notify_unread = notify_unread
        self._answer_unread = answer_unread
        self._decide = decide
        self._registry = registry
        self._log = log
        self._decoding = decoding
        self._memory = decoding.memory

    def respond(
        self, scope: dict[str, Any], body: bytes | bytearray
    ) -> HttpAnswer | LaterAnswer | None:
        """Answers a request at once, or when what it waits for is there.

        None for a large one: then the caller awaits the application with the same scope.
        """
        if len(body) > LARGE_BYTES:
            return None
        answer = self._answer(scope, body)
        if not isinstance(answer, Pending):
            return answer
        size = footprint(body, bound=self._memory.bytes_max)
        try:
            room = self._memory.take(size, occupant_of(body).requester)
        except NoRoom as error:
            return self._crowded(error, body, received_at(scope))
        return partial(self._answer_later, scope, answer, room)

    def _answer_later(
        self,
        scope: dict[str, Any],
        pending: Pending,
        room: Room,
        notify: Callable[[HttpAnswer], None],
    ) -> None:
        """Calls ``notify`` with the answer when the decision is made."""

        def resume(_: Any) -> None:
            answer = self._answer(scope, b"", None, pending)
            if isinstance(answer, Pending):
                self._answer_later(scope, answer, room, notify)
                return
            try:
                notify(answer)
            finally:
                self._decoding.free(room)

        pending.finished.add_done_callback(resume)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answers a request that :meth:`respond` could not."""
        message = await receive()
        body: bytes | bytearray = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        room = NOTHING
        try:
            answer: HttpAnswer | Pending
            answer, room = await self._begin(scope, body)
            del body, message
            scope.pop(RELEASE, _nothing)()
            while isinstance(answer, Pending):
                await answer.finished
                answer = self._answer(scope, b"", None, answer)
        finally:
            self._decoding.free(room)
        code, headers, content = answer
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _begin(
        self, scope: dict[str, Any], body: bytes | bytearray
    ) -> tuple[HttpAnswer | Pending, Room]:
        """Returns an answer or a pending decision, with the memory that the request takes."""
        if len(body) <= LARGE_BYTES:
            return self._answer(scope, body), NOTHING
        if (refusal := self._refusal(scope, body)) is not None:
            return self._refused(refusal), NOTHING
        try:
            seconds = deadline.seconds_for(scope["query_string"], deadline.CEILING_SECONDS)
        except deadline.InvalidTimeout as invalid:
            return self._refused(Unanswerable(400, "malformed", str(invalid))), NOTHING
        until = received_at(scope) + seconds
        reading = len(body) / READ_BYTES_A_SECOND
        self._decoding.times.note(occupant_of(body).requester, reading)
        request, room, error = await self._read_large(scope, body, until)
        if isinstance(error, InvalidReview):
            return self._invalid(error, body), NOTHING
        if error is not None:
            return self._crowded(error, body, received_at(scope)), NOTHING
        return self._answer(scope, b"", request), room

    async def _read_large(
        self,
        scope: dict[str, Any],
        body: bytes | bytearray,
        until: float,
    ) -> Decoded:
        """Decodes on another thread, by this moment on the monotonic clock."""
        return await self._decoding.decode_in_time(body, until, scope.get(STRANGER, ""))

    def _read(self, body: bytes | bytearray) -> AdmissionRequest:
        """Decodes on this thread; raises :class:`~webhook.api.admission.InvalidReview`."""
        return decode_review(body, max_bytes=self._decoding.body_max)

    def _written(self, response: AdmissionResponse, api_version: str) -> bytes:
        """Returns the body of an answer."""
        return encode_response(response, api_version)

    def _answer(
        self,
        scope: dict[str, Any],
        body: bytes | bytearray,
        request: AdmissionRequest | None = None,
        pending: Pending | None = None,
    ) -> HttpAnswer | Pending:
        """Answers a request from its body, its decoded form, or its pending decision."""
        try:
            if pending is not None:
                outcome, api_version = pending.resume(), pending.api_version
            else:
                if request is None:
                    if not body and scope["method"] in ("GET", "HEAD"):
                        return 200, JSON_ALONE, _EMPTY
                    if (refusal := self._refusal(scope, body)) is not None:
                        return self._refused(refusal)
                    is_measured = len(body) >= MEASURED_BYTES
                    began = time.thread_time() if is_measured else 0.0
                    request = self._read(body)
                    if is_measured and (taken := time.thread_time() - began) > NOTED_SECONDS:
                        self._decoding.times.note(requester(request), taken)
                api_version = request.api_version
                if STRANGER in scope:
                    self._registry.count(STRANGERS)
                    request = request._replace(stranger=scope[STRANGER])
                outcome = self._decide(request, scope["query_string"], received_at(scope))
            if isinstance(outcome, Pending):
                return outcome
            if isinstance(outcome, Unanswerable):
                return self._refused(outcome)
            return 200, JSON_ALONE, self._written(outcome, api_version)
        except InvalidReview as error:
            return self._invalid(error, body)
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._registry.count(REFUSED, "bug")
            self._log.fault("bug while deciding a request", error)
            return 500, JSON_ALONE, failure(500, "internal error: see the webhook's log")

    def _crowded(self, error: NoRoom, body: bytes | bytearray, since: float) -> HttpAnswer:
        """Returns the answer if there was no memory; a user who takes all of it is refused."""
        prefix = bytes(body[:PREFIX_BYTES])
        if error.responsible == "object":
            answer = self.refuse_unread(prefix, "it took all the time there is to be read")
        elif error.responsible == "requester":
            answer = self._refuse(prefix, _TOO_MANY_LARGE, "requester")
        else:  # It may have come late behind its user's others.
            delay = self.work_since(since, occupant_of(prefix).requester)
            answer = self.refuse_delayed(prefix, delay, _TOO_MANY_LARGE)
        return answer or self._refused(_NO_ROOM)

    def _invalid(self, error: InvalidReview, body: bytes | bytearray) -> HttpAnswer:
        """Returns the answer to a body that is no reviewable AdmissionReview."""
        if isinstance(error, UndecidableReview):
            answer = self.refuse_unread(bytes(body[:PREFIX_BYTES]), str(error))
            if answer is not None:
                return answer
        return self._refused(Unanswerable(400, "malformed", str(error)))

    def refuse_unread(self, prefix: bytes, message: str) -> HttpAnswer | None:
        """Refuses a request that cannot be decided because of its object.

        None if no API server sent it.

        Otherwise ``failurePolicy: Ignore`` would admit any object that is large or deep enough.
        """
        return self._refuse(prefix, message, "object")

    def until(self, query: bytes, received_at: float) -> float:
        """Returns when the answer to a request with this query is due, on the monotonic clock."""
        try:
            return received_at + deadline.seconds_for(query, deadline.CEILING_SECONDS)
        except deadline.InvalidTimeout:
            return received_at + deadline.CEILING_SECONDS  # It is refused when it has arrived.

    def work_since(self, moment: float, requester: str) -> Delay:
        """Returns the processor time for a user, and for all, since a moment on that clock."""
        return self._decoding.times.since(moment, requester)

    def refuse_delayed(self, prefix: bytes, delay: Delay, message: str) -> HttpAnswer | None:
        """Refuses a request without place or time if its own user is responsible; else None."""
        return self._refuse(prefix, message, responsible_for(delay))

    def _refuse(self, prefix: bytes, message: str, responsible: Responsible) -> HttpAnswer | None:
        """Answers an unread request, given its beginning and the responsible party."""
        origin = origin_of(prefix)
        answer = self._answer_unread(namespace_in(prefix), responsible)
        if origin is None or answer == "fail":
            return None
        uid, api_version = origin
        make = verdict.undecidable if responsible == "object" else verdict.crowded
        response = make(uid, message)
        if answer == "warn":
            response = verdict.with_warning(verdict.allowed(uid), response.message)
        else:
            if responsible == "object":
                self._registry.count(UNDECIDABLE)
            self._log.warning(
                "an object was refused because it could not be reviewed",
                request_uid=uid,
                error=message,
            )
            if self._notify_unread is not None:
                self._notify_unread(uid, message)
        return 200, JSON_ALONE, encode_response(response, api_version)

    def _refused(self, refusal: Unanswerable) -> HttpAnswer:
        self._registry.count(REFUSED, refusal.reason)
        headers = (JSON, *_RETRY) if refusal.retry else JSON_ALONE
        if refusal.code == 405:
            headers = (*headers, (b"allow", b"POST"))
        return refusal.code, headers, failure(refusal.code, refusal.message)

    def _refusal(self, scope: dict[str, Any], body: bytes | bytearray) -> Unanswerable | None:
        """Returns why a request is no review; None if it may be one."""
        if scope["method"] != "POST":
            message = f"method {scope['method']} is not allowed: POST an AdmissionReview"
            return Unanswerable(405, "method", message)
        if not body:
            return Unanswerable(400, "malformed", "request body is empty")
        content_type = _header(scope, b"content-type")
        # As the API server writes it, or else as the standard lets it be written.
        if content_type != b"application/json" and (
            content_type.partition(b";")[0].strip().lower() != b"application/json"
        ):
            shown = content_type.decode("latin-1")
            message = f"contentType={shown}, expected application/json"
            return Unanswerable(415, "content_type", message)
        return None


def received_at(scope: dict[str, Any]) -> float:
    """When a request was received, on the monotonic clock."""
    return float(scope.get("received_at") or time.monotonic())


def _nothing() -> None:
    """Does nothing, because there is no body to release."""


def _header(scope: dict[str, Any], header: bytes) -> bytes:
    for name, value in scope["headers"]:
        if name == header:
            return bytes(value)
    return b""
