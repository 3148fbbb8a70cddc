"""An AdmissionReview endpoint with a trace for each sampled request.

The endpoint exists only if tracing is enabled, so other replicas do not pay for it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of
from webhook.server import endpoint
from webhook.server.endpoint import Decide, ReviewEndpoint
from webhook.server.outcome import Outcome, Pending, Unanswerable
from webhook.server.undecided import AnswerUnread, answer_unread
from webhook.serving.trace import Attribute, Trace, Tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.decoding import Decoded, Decoding
    from webhook.server.http.exchange import Receive, Send
    from webhook.server.http.responder import HttpAnswer, LaterAnswer

_TRACE: Final = "waddle.trace"
"""Where a request's scope has its trace."""

_MAX: Final = 253
"""The longest name in an attribute, in characters: the limit of Kubernetes for names."""


class TracedEndpoint(ReviewEndpoint):
    """As :class:`ReviewEndpoint`, with spans of decoding, deciding and encoding."""

    def __init__(
        self,
        decide: Decide,
        registry: Registry,
        log: Logger,
        *,
        decoding: Decoding,
        notify_unread: Callable[[str, str], None] | None = None,
        answer_unread: AnswerUnread = answer_unread,
        tracing: Tracing,
    ) -> None:
        super().__init__(
            self._traced_decide,
            registry,
            log,
            decoding=decoding,
            notify_unread=notify_unread,
            answer_unread=answer_unread,
        )
        self._decide_untraced = decide
        self._tracing = tracing
        # Requests that are not sampled, nearly all, take the path without tracing.
        self._untraced = ReviewEndpoint(
            decide,
            registry,
            log,
            decoding=decoding,
            notify_unread=notify_unread,
            answer_unread=answer_unread,
        )
        self._sample = tracing.tracer.sample
        self._respond_untraced = self._untraced.respond

    def respond(
        self, scope: dict[str, Any], body: bytes | bytearray
    ) -> HttpAnswer | LaterAnswer | None:
        """Answers a request as :class:`ReviewEndpoint` does, and finishes its trace."""
        sampled = self._sample(scope["headers"])
        if sampled is None:
            return self._respond_untraced(scope, body)
        scope[_TRACE] = trace = Trace(*sampled, int(endpoint.received_at(scope) * 1e9))
        trace.attributes["http.request.body.size"] = len(body)
        trace.attributes["url.path"] = scope["path"]
        now = time.monotonic_ns()
        trace.add("queue", trace.began_ns, max(now, trace.began_ns))
        answer = super().respond(scope, body)
        if isinstance(answer, tuple):
            self._finish(scope, answer[0])
            return answer
        return None if answer is None else partial(self._finish_later, scope, answer)

    def _finish_later(
        self, scope: dict[str, Any], answer: LaterAnswer, notify: Callable[[HttpAnswer], None]
    ) -> None:
        def finished(given: HttpAnswer) -> None:
            notify(given)
            self._finish(scope, given[0])

        answer(finished)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answers a request, or continues one that :meth:`respond` could not finish."""
        if _TRACE not in scope:
            await self._untraced(scope, receive, send)
            return
        code = 499  # as nginx: the client closed the connection before the answer

        async def send_noting_code(message: dict[str, Any]) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await super().__call__(scope, receive, send_noting_code)
        finally:
            self._finish(scope, code)

    def _answer(
        self,
        scope: dict[str, Any],
        body: bytes | bytearray,
        request: AdmissionRequest | None = None,
        pending: Pending | None = None,
    ) -> HttpAnswer | Pending:
        trace: Trace = scope[_TRACE]
        current, exports = self._tracing.current, self._tracing.exports
        if pending is not None:
            trace.add("wait", trace.ended_ns, time.monotonic_ns(), parent_id=trace.review_id)
        recorded = 0 if exports is None else exports.recorded()
        current.trace = trace
        try:
            answer = super()._answer(scope, body, request, pending)
        finally:
            current.trace = None
            trace.ended_ns = time.monotonic_ns()
        if exports is not None and exports.recorded() != recorded:
            exports.await_export(trace)
        return answer

    def _read(self, body: bytes | bytearray) -> AdmissionRequest:
        began = time.monotonic_ns()
        request = super()._read(body)
        self._trace.add("decode", began, time.monotonic_ns())
        return request

    async def _read_large(
        self, scope: dict[str, Any], body: bytes | bytearray, until: float
    ) -> Decoded:
        began = time.monotonic_ns()
        decoded = await super()._read_large(scope, body, until)
        trace: Trace = scope[_TRACE]
        trace.add("decode", began, time.monotonic_ns(), {"waddle.beside": True})
        return decoded

    def _traced_decide(
        self, request: AdmissionRequest, query: bytes, received_at: float
    ) -> Outcome:
        trace = self._trace
        trace.attributes.update(_attributes(request))
        trace.review_began_ns = time.monotonic_ns()
        try:
            outcome = self._decide_untraced(request, query, received_at)
        finally:
            trace.review_ended_ns = time.monotonic_ns()
        if isinstance(outcome, Unanswerable):
            trace.error = outcome.message
        return outcome

    def _written(self, response: AdmissionResponse, api_version: str) -> bytes:
        trace, began = self._trace, time.monotonic_ns()
        if trace.review_began_ns:
            trace.review_ended_ns = began  # includes the wait
        trace.attributes["waddle.allowed"] = response.allowed
        trace.attributes["waddle.code"] = response.code
        body = super()._written(response, api_version)
        trace.add("encode", began, time.monotonic_ns())
        return body

    @property
    def _trace(self) -> Trace:
        """Of the request that is being answered."""
        trace = self._tracing.current.trace
        assert trace is not None  # set by `_answer`, which all else here is called by
        return trace

    def _finish(self, scope: dict[str, Any], code: int) -> None:
        """Hands over the trace of a request that has been answered."""
        trace: Trace = scope.pop(_TRACE)
        trace.ended_ns = time.monotonic_ns()
        trace.attributes["http.response.status_code"] = code
        if code >= 500 and not trace.error:
            trace.error = f"answered {code}"
        if trace.review_began_ns:
            trace.add(
                "review", trace.review_began_ns, trace.review_ended_ns, span_id=trace.review_id
            )
        self._tracing.tracer.finish(trace)


def _attributes(request: AdmissionRequest) -> dict[str, Attribute]:
    """Returns the attributes of a request; its user is not among them."""
    document = request.object if request.object is not None else request.old_object
    name = request.name or (name_of(document) if document else "")
    attributes: dict[str, Attribute] = {
        "k8s.admission.uid": request.uid[:_MAX],
        "k8s.admission.operation": request.operation[:_MAX],
        "k8s.object.group": request.kind.group[:_MAX],
        "k8s.object.kind": request.kind.kind[:_MAX],
        "k8s.object.name": name[:_MAX],
        "k8s.namespace.name": request.namespace[:_MAX],
    }
    return attributes
