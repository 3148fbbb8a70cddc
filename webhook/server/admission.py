"""``/v1/admit``: the decision on one admission request, in Gatekeeper's order of checks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api.admission import AdmissionResponse
from webhook.api.gvk import name_of
from webhook.constraint import enforcement
from webhook.constraint.limits import UNTIL_NOW, Limits
from webhook.constraint.placement import placed
from webhook.constraint.result import DEFERRED
from webhook.constraint.review import AugmentedReview
from webhook.metrics.admission import SLOW_REVIEWS, VALIDATION_REQUESTS, VALIDATION_SECONDS
from webhook.review.evaluation import evaluation
from webhook.review.releasing import RELEASED, only_releases
from webhook.server import deadline, expansion, preparation, submission, verdict
from webhook.server.admission_telling import AdmissionTelling
from webhook.server.decoding import LARGE_BYTES
from webhook.server.outcome import Pending, Unanswerable, not_ready
from webhook.server.responsibility import (
    Delay,
    ProcessorTime,
    requester,
    responsible_for,
)
from webhook.server.undecided import answer_unread_by, attributed
from webhook.serving.recorder import Reviewed
from webhook.serving.trace import CurrentTrace
from webhook.values import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.limits import Budget
    from webhook.constraint.result import Responses
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.passes import MutationOnError
    from webhook.review.evaluation import Reviewing
    from webhook.server.deadline import RequestTime
    from webhook.server.outcome import Outcome
    from webhook.server.preparation import Preparations, SlowReview
    from webhook.server.responsibility import Responsible
    from webhook.server.submission import Inadmissible, TriedSubmission
    from webhook.server.undecided import UnreadAnswer
    from webhook.serving.namespaces import NamespaceAnswer
    from webhook.serving.recorder import Recorder
    from webhook.serving.revision import Revision, Serving

_NO_ROOM: Final = "overload"
_NOT_TRIED: Final = (
    "the policy was not tried within its time, and nothing is known of it: send it again"
)
_TOO_LATE: Final = "the review did not end within its time"
_NO_PLACE: Final = "too many slow reviews wait: try again or try another replica"


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """What the operator chose about deciding."""

    review_timeout_seconds: float
    log_denies: bool = False
    any_action: bool = False
    """Whether constraints with unknown enforcement actions are admitted."""
    own_users: frozenset[str] = frozenset()
    """Users that are this webhook itself, which does not police itself."""
    expands: bool = True
    """Whether what objects imply is reviewed with them."""
    mutation_on_error: MutationOnError = "skip"
    """What becomes of an implied resource that a mutator cannot be applied to."""
    blames: bool = True
    """Whether what is slow by its own doing is refused; never without, but where a test wants it."""
    budget: Budget | None = None
    """What an evaluation may take on this thread; deferrable only with a reviewer."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out before deciding; None where nothing was asked."""

    namespace: Future[NamespaceAnswer] | None = None
    compiled: Future[TriedSubmission] | None = None
    slow: SlowReview | None = None
    reviewing: Reviewing | None = None
    """What carries that out."""
    began: float = 0.0
    """When, on the monotonic clock."""
    unexpanded: str = ""
    """Why what the object implies is not reviewed with it."""

    @property
    def namespace_document(self) -> dict[str, Any] | None:
        """The Namespace that was read."""
        return None if self.namespace is None else self.namespace.result().document


_UNPREPARED: Final = _Prepared()

_Concluded: TypeAlias = "tuple[Outcome, Responses | None]"
"""What was decided, and what the review found that led to it; a bare tuple, as each request makes
one."""


def _namespace_fault(
    request: AdmissionRequest, prepared: _Prepared
) -> AdmissionResponse | Unanswerable | None:
    """What the request gets if the Namespace that was asked for is not here; None if it is."""
    assert prepared.namespace is not None
    if not prepared.namespace.done():
        message = f"Namespace {request.namespace} was not read in time"
        return Unanswerable(504, "deadline", message)
    answer = prepared.namespace.result()
    if answer.fault:
        return Unanswerable(500, "namespace", f"Namespace not read: {answer.fault}")
    if answer.document:
        return None
    fault = f'failed to create augmentedReview: namespaces "{request.namespace}" not found'
    return verdict.errored(request.uid, 500, fault)


def _status(outcome: Outcome) -> str:
    """What is counted; nothing for what goes on elsewhere, or finds no room to."""
    if isinstance(outcome, AdmissionResponse):
        if outcome.allowed:
            return "allow"
        return "deny" if outcome.code == 403 else "error"
    return "" if isinstance(outcome, Pending) or outcome.reason == _NO_ROOM else "error"


def _not_reviewed(reviewing: Reviewing, subject: AugmentedReview) -> Responses:
    """What is left undecided where nothing is evaluated: every constraint that matches."""
    return reviewing.review(subject, enforcement_point=enforcement.WEBHOOK, limits=UNTIL_NOW)


def _subject(request: AdmissionRequest, prepared: _Prepared) -> AugmentedReview:
    """What is reviewed: the request with its Namespace, if that was read."""
    return AugmentedReview(placed(request), prepared.namespace_document)


class Admission:
    """Decides admission requests against the revision in force. For one thread."""

    def __init__(
        self,
        serving: Serving,
        options: AdmissionOptions,
        registry: Registry,
        log: Logger,
        recorder: Recorder | None = None,
        preparations: Preparations = preparation.NOTHING,
        *,
        current: CurrentTrace | None = None,
        times: ProcessorTime | None = None,
    ) -> None:
        """``current`` has the trace of the request that is being decided, if it has one.

        ``times`` knows who had the processor lately.
        """
        self._times = times or ProcessorTime()
        self._current = current or CurrentTrace()
        self._serving = serving
        self._reviewer = preparations.reviewer
        self._preparations = None if preparations is preparation.NOTHING else preparations
        self._recorder = recorder
        self._names = None if recorder is None else recorder.names
        self._options = options
        self._registry = registry
        self._telling = AdmissionTelling(registry, log, log_denies=options.log_denies)
        self._seconds = {
            status: registry.histogram(VALIDATION_SECONDS, status)
            for status in ("allow", "deny", "error")
        }

    def __call__(self, request: AdmissionRequest, query: bytes, received_at: float) -> Outcome:
        """Decide, or say what must be found out first, or why there is no decision."""
        revision = self._serving.revision  # Once: another may be in force a line later.
        if self._preparations is not None:
            awaited = self._prepare(self._preparations, request, query, received_at, revision)
            if awaited is not None:
                return awaited
        return self._conclude(request, query, received_at, _UNPREPARED, revision)

    def answer_unread(self, namespace: str, whose: Responsible) -> UnreadAnswer:
        """What a request gets that is not read; see :func:`~webhook.server.undecided.answer_unread_by`."""
        blamed = whose if self._options.blames else "others"
        return answer_unread_by(self._serving.revision, namespace, blamed)

    def _prepare(
        self,
        preparations: Preparations,
        request: AdmissionRequest,
        query: bytes,
        received: float,
        revision: Revision | None,
    ) -> Pending | None:
        """What deciding this request needs and has not got; None where it has everything."""
        options = self._options
        if revision is None or request.username in options.own_users:
            return None
        reader, compiler = preparations.namespaces, preparations.templates
        lacks = reader is not None and self._lacks_namespace(request, revision)
        source = None if compiler is None else submission.policy_to_try(request)
        if not lacks and source is None:
            return None
        try:
            seconds = deadline.seconds_for(query, options.review_timeout_seconds)
        except deadline.InvalidTimeout:
            return None  # Deciding refuses it.
        left = received + seconds - time.monotonic()
        asked = reader.read(request.namespace, left) if reader is not None and lacks else None
        compiled = None if compiler is None or source is None else compiler.compile(source)
        futures: list[Future[Any]] = [item for item in (asked, compiled) if item is not None]
        prepared = _Prepared(asked, compiled)
        return Pending(
            preparation.finished(futures, left),
            lambda: self._conclude(request, query, received, prepared, self._serving.revision),
            request.api_version,
        )

    def _lacks_namespace(self, request: AdmissionRequest, revision: Revision) -> bool:
        name = request.namespace
        return (
            bool(name)
            and name not in revision.snapshot.namespaces
            and request.kind.group_kind != ("", "Namespace")
            and not revision.is_excluded(name)
        )

    def _conclude(
        self,
        request: AdmissionRequest,
        query: bytes,
        received_at: float,
        prepared: _Prepared,
        revision: Revision | None,
    ) -> Outcome:
        """Decide by one revision, and hand what was decided, or why nothing was, to the recorder."""
        recorder = self._recorder
        if recorder is None:
            return self._decide(request, query, received_at, prepared, revision)[0]
        snapshot = None if revision is None else revision.snapshot
        began = prepared.began or time.monotonic()
        try:
            outcome, responses = self._decide(request, query, received_at, prepared, revision)
        except Exception as error:
            what = f"bug: {type(error).__name__}"
            reviewed = Reviewed(request, None, snapshot, (received_at, began))
            recorder.unanswered(reviewed, 500, what)
            raise
        if type(outcome) is AdmissionResponse:  # As nearly all are.
            return recorder.answered(request, responses, snapshot, received_at, began, outcome)
        if isinstance(outcome, Unanswerable):
            reviewed = Reviewed(request, responses, snapshot, (received_at, began))
            recorder.unanswered(reviewed, outcome.code, outcome.message)
        return outcome

    def _decide(
        self,
        request: AdmissionRequest,
        query: bytes,
        received_at: float,
        prepared: _Prepared,
        revision: Revision | None,
    ) -> _Concluded:
        try:
            seconds = deadline.seconds_for(query, self._options.review_timeout_seconds)
        except deadline.InvalidTimeout as error:
            return Unanswerable(400, "malformed", str(error)), None
        if revision is None:
            return not_ready("policies"), None
        if request.username in self._options.own_users:
            return verdict.allowed(request.uid, "Gatekeeper does not self-manage"), None
        if only_releases(request):
            return verdict.allowed(request.uid, RELEASED), None
        refusal = self._refusal(request, revision, prepared.compiled)
        if isinstance(refusal, Unanswerable):
            return refusal, None
        if refusal is not None:
            return verdict.errored(request.uid, refusal.code, refusal.message), None
        status = "error"
        try:
            span = deadline.RequestTime(received_at, received_at + seconds)
            concluded = self._decide_in_force(request, revision, span, prepared)
            if concluded is None:
                concluded = self._defer(request, query, span, prepared, revision)
            status = _status(concluded[0])
            return concluded
        finally:
            if status:
                dry_run = "true" if request.dry_run else "false"
                self._registry.count(VALIDATION_REQUESTS, status, dry_run)
                taken, histogram = time.monotonic() - received_at, self._seconds[status]
                histogram.observe(taken)
                if (trace := self._current.trace) is not None:
                    histogram.exemplify(taken, trace.trace_id, trace.span_id)

    def _refusal(
        self,
        request: AdmissionRequest,
        revision: Revision,
        compiled: Future[TriedSubmission] | None,
    ) -> Inadmissible | Unanswerable | None:
        """Why a resource of Gatekeeper's is not admitted, or nothing can be said of it."""
        tried = compiled.result() if compiled is not None and compiled.done() else None
        checks = (None if tried is None else tried.checks) or revision.checks
        refusal = submission.check(request, checks, any_action=self._options.any_action)
        if compiled is None or (refusal is not None and not refusal.lacks_template):
            return refusal
        if tried is None:
            compiled.cancel()  # Else those who ask again stand behind what nobody waits for.
            return Unanswerable(504, "deadline", _NOT_TRIED)
        if tried.fault is not None and tried.fault.is_passing:
            return Unanswerable(503, "environment", tried.fault.message)
        return refusal or submission.check_compiled(tried.fault)

    def _decide_in_force(
        self, request: AdmissionRequest, revision: Revision, span: RequestTime, prepared: _Prepared
    ) -> _Concluded | None:
        """Decide by the policies in force; None for what takes too long on this thread."""
        if self._excluded(request, revision):
            message = "Namespace is set to be ignored by Gatekeeper config"
            return verdict.allowed(request.uid, message), None
        if prepared.namespace is not None:
            fault = _namespace_fault(request, prepared)
            if fault is not None:
                return fault, None
        concluded = self._review(request, revision, span, prepared)
        if concluded is None:
            return None
        responses, unexpanded = concluded
        outcome = self._judge(request, responses, unexpanded)
        if unexpanded == expansion.OUT_OF_TIME:
            outcome = self._unless_late(request, outcome, span, revision)
        if isinstance(outcome, AdmissionResponse) and outcome.allowed:
            notice = submission.notice(request, revision.checks)
            outcome = verdict.with_notice(outcome, notice) if notice else outcome
        return outcome, responses

    def _excluded(self, request: AdmissionRequest, revision: Revision) -> bool:
        """Whether Config excludes the request's namespace; a Namespace counts as its own."""
        document = request.old_object if request.operation == "DELETE" else request.object
        if document is None:
            return False
        if document.get("kind") == "Namespace" and document.get("apiVersion") == "v1":
            return revision.is_excluded(name_of(document))
        return revision.is_excluded(request.namespace)

    def _review(
        self, request: AdmissionRequest, revision: Revision, span: RequestTime, prepared: _Prepared
    ) -> tuple[Responses, str] | None:
        """What is found, and why what the object implies was not reviewed with it.

        None for what takes too long on this thread.
        """
        subject = _subject(request, prepared)
        if (slow := prepared.slow) is not None:
            assert prepared.reviewing is not None
            if slow.future.cancel() or slow.future.cancelled() or not slow.future.done():
                responses = _not_reviewed(prepared.reviewing, subject)
            else:
                responses = slow.future.result()
            return self._attributed(request, responses, span, slow), prepared.unexpanded
        began = time.monotonic()
        if request.size > LARGE_BYTES and self._reviewer is not None and began < span.until:
            return None  # Of many constraints each would take a part of its time here.
        whose = requester(request)
        reviewing, unexpanded = self._reviewing(revision, subject, span.until)
        responses = reviewing.review(
            subject,
            enforcement_point=enforcement.WEBHOOK,
            limits=Limits(
                span.until,
                budget=self._options.budget,
                observer=self._current.trace,
                requester=whose,
            ),
        )
        self._times.note(whose, time.monotonic() - began)
        if responses is DEFERRED:
            return None
        return self._attributed(request, responses, span), unexpanded

    def _attributed(
        self,
        request: AdmissionRequest,
        responses: Responses,
        span: RequestTime,
        slow: SlowReview | None = None,
    ) -> Responses:
        """What was found, and whose doing it is that it is not all."""
        if not responses.deadline_exceeded:
            return responses
        if slow is not None and slow.crowded_out is not None:
            return attributed(responses, self._responsible(slow.crowded_out))
        delay = self._times.since(span.received_at, requester(request))
        worked = 0.0 if slow is None else slow.worked_seconds
        return attributed(responses, self._responsible(delay._replace(worked_seconds=worked)))

    def _responsible(self, delay: Delay) -> Responsible:
        return responsible_for(delay) if self._options.blames else "others"

    def _judge(
        self, request: AdmissionRequest, responses: Responses, unexpanded: str
    ) -> AdmissionResponse | Unanswerable:
        """The answer to what was found, which is counted and logged."""
        if responses.results:
            self._telling.violations(request, responses)
        if responses.undecided:
            self._telling.undecided(request, responses.undecided)
        # Made with its name: a second answer that has one takes longer.
        name = "" if self._names is None else next(self._names)
        response = verdict.judge(request.uid, responses, name)
        if unexpanded:
            self._telling.unexpanded(request, unexpanded)
            response = verdict.with_warning(response, unexpanded)
        if not response.allowed:
            self._telling.refused(response)
            return response  # What else there might be cannot change it.
        if responses.deadline_exceeded:
            return Unanswerable(504, "deadline", _TOO_LATE)
        if responses.faults:
            return self._telling.faulty(request, responses)
        return response

    def _reviewing(
        self, revision: Revision, subject: AugmentedReview, until: float
    ) -> tuple[Reviewing, str]:
        """What reviews the request, and why what its object implies is not reviewed with it."""
        if not self._options.expands:
            return evaluation(revision.snapshot), ""
        return expansion.reviewing(revision, subject, until, self._options.mutation_on_error)

    def _unless_late(
        self,
        request: AdmissionRequest,
        outcome: AdmissionResponse | Unanswerable,
        span: RequestTime,
        revision: Revision,
    ) -> AdmissionResponse | Unanswerable:
        """The answer where there was no time to find out what the object implies.

        What does not hold for what is not known is not known either.
        """
        policy = revision.snapshot.isolation
        spared = request.namespace in policy.spared_namespaces
        if isinstance(outcome, Unanswerable) or not outcome.allowed or spared:
            return outcome
        if policy.on_undecidable == "ignore":
            return outcome
        delay = self._times.since(span.received_at, requester(request))
        if self._responsible(delay) == "others":
            return Unanswerable(504, "deadline", _TOO_LATE)
        refusal = verdict.undecidable(request.uid, expansion.OUT_OF_TIME)
        self._telling.refused(refusal)
        return refusal

    def _defer(
        self,
        request: AdmissionRequest,
        query: bytes,
        span: RequestTime,
        prepared: _Prepared,
        revision: Revision,
    ) -> _Concluded:
        """The review goes on beside this thread; this is what its request waits for."""
        assert self._reviewer is not None  # Else no budget is deferrable.
        subject = _subject(request, prepared)
        began = time.monotonic()
        reviewing, unexpanded = self._reviewing(revision, subject, span.until)
        self._times.note(requester(request), time.monotonic() - began)
        slow = self._reviewer.review(reviewing, subject, span.review_until, self._current.trace)
        if isinstance(slow, Delay):
            responses = attributed(_not_reviewed(reviewing, subject), self._responsible(slow))
            outcome = self._judge(request, responses, unexpanded)
            if unexpanded == expansion.OUT_OF_TIME:
                outcome = self._unless_late(request, outcome, span, revision)
            if isinstance(outcome, Unanswerable):
                outcome = Unanswerable(429, _NO_ROOM, _NO_PLACE, retry=True)
            return outcome, responses
        self._registry.count(SLOW_REVIEWS)
        now = time.monotonic()
        known = replace(prepared, slow=slow, reviewing=reviewing, began=now, unexpanded=unexpanded)
        awaited = Pending(
            preparation.finished([slow.future], span.until - now),
            lambda: self._conclude(request, query, span.received_at, known, revision),
            request.api_version,
        )
        return awaited, None
