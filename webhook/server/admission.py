"""``/v1/admit``: the decision on one admission request, in Gatekeeper's order of checks."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.api.admission import AdmissionResponse
from webhook.constraint import enforcement
from webhook.constraint.limits import ELSEWHERE, UNTIL_NOW, Limits
from webhook.constraint.placement import request_to_review
from webhook.constraint.review import AugmentedReview
from webhook.external_data.exchange import ROUNDS_MAX
from webhook.metrics.admission import SLOW_REVIEWS, VALIDATION_REQUESTS, VALIDATION_SECONDS
from webhook.review.expanding import OUT_OF_TIME, UNDECIDABLE
from webhook.review.outcome import Found, Needs
from webhook.review.releasing import RELEASED, only_releases
from webhook.review.subject import Subject
from webhook.review.walk import walk
from webhook.server import deadline, preparation, submission, verdict
from webhook.server.admission_observer import AdmissionObserver, ReviewLogOptions
from webhook.server.deadline import RequestTime
from webhook.server.excepting import check_exception, exception_of, unknown_constraints
from webhook.server.outcome import NO_ROOM, Unanswerable, no_place, not_ready
from webhook.server.preparation import Awaiting, carry_on, read_namespace
from webhook.server.provider_requests import ReviewRequests, answers_until
from webhook.server.responsibility import (
    Delay,
    ProcessorTime,
    decisive,
    responsible_for,
)
from webhook.server.undecided import answer_unread_by, attributed
from webhook.server.using import check_is_on, check_use
from webhook.serving.recorder import Reviewed
from webhook.serving.trace import CurrentTrace
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.failure_policy import FailurePolicy
    from webhook.constraint.limits import Budget, Remembering
    from webhook.constraint.result import Responses
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.passes import MutationOnError
    from webhook.review.outcome import Continuation
    from webhook.review.policy_set import PolicySet
    from webhook.server.admission_observer import GatheredViolations
    from webhook.server.outcome import Outcome
    from webhook.server.preparation import Decision, Preparations, ProviderRounds, SlowReview
    from webhook.server.responsibility import Responsible
    from webhook.server.undecided import UnreadAnswer
    from webhook.serving.recorder import Recorder
    from webhook.serving.revision import Revision, Serving

_NOT_TRIED: Final = (
    "the policy was not tried within its time, and nothing is known of it: send it again"
)
_TOO_LATE: Final = "the review did not end within its time"

CROWDED_SECONDS: Final = 0.002
"""The budget of a review on the admission thread while others wait; checked after each template.
Requests of other users wait for it: of 120 connections with Pods of 800 containers each had 20 ms.
"""


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """The operator's settings for admissions."""

    review_timeout_seconds: float
    logged: ReviewLogOptions = ReviewLogOptions()
    any_action: bool = False
    """Whether constraints with unknown enforcement actions are admitted."""
    own_users: frozenset[str] = frozenset()
    """The service accounts of this webhook itself, whose requests are not reviewed."""
    expands: bool = True
    """Whether implied objects of ExpansionTemplates are reviewed, too."""
    mutation_on_error: MutationOnError = "skip"
    """The answer if a mutator fails on an implied object."""
    blames: bool = True
    """Whether a request that is slow because of its own object or user is refused; false only in
    tests.
    """
    exceptions_longest_seconds: float = 0.0
    """The longest duration of an exception, in seconds; 0 for any."""
    budget: Budget | None = None
    """The budget of an evaluation on this thread; deferrable only with a reviewer."""
    memo: Remembering | None = None
    """The cache of findings of this thread."""

    @property
    def crowded_budget(self) -> Budget | None:
        """Returns the budget of a review while others wait."""
        budget = self.budget
        return None if budget is None else replace(budget, review_seconds=CROWDED_SECONDS)


class _Case:
    """The state of one request until its answer."""

    __slots__ = (
        "began",
        "gathered",
        "namespace",
        "provider_requests",
        "request",
        "responses",
        "revision",
        "slow",
        "span",
        "value",
        "worked_seconds",
    )

    def __init__(
        self, request: AdmissionRequest, received_at: float, providers: ProviderRounds | None
    ) -> None:
        self.request = request
        self.value = AugmentedReview(request_to_review(request))
        """The request as it is reviewed, with its Namespace if that was read for it."""
        self.provider_requests = ReviewRequests(providers, request)
        self.slow: SlowReview[Found | Needs] | Delay | None = None
        """The review on another thread, or why there was no place for it."""
        self.span = RequestTime(received_at, received_at)
        self.revision: Revision | None = None
        """The revision that decides; another one may come into force meanwhile."""
        self.responses: Responses | None = None
        """The results that led to the answer."""
        self.gathered: tuple[Responses, GatheredViolations] | None = None
        """The violations of a review on another thread, prepared for log and metrics."""
        self.began = 0.0
        """When the review began, on the monotonic clock; 0 before."""
        self.worked_seconds = 0.0
        """How long it occupied the admission thread."""


def _status(outcome: AdmissionResponse | Unanswerable) -> str:
    """Returns the status for metrics; none for a request without a place."""
    if isinstance(outcome, AdmissionResponse):
        if outcome.allowed:
            return "allow"
        return "deny" if outcome.code == 403 else "error"
    return "" if outcome.reason == NO_ROOM else "error"


class Admission:
    """Decides admission requests by the revision in force. For one thread."""

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
        """``current`` holds the trace of the request that is being decided, if it is sampled.

        ``times`` has the recent processor time of each user.
        """
        self._times = times or ProcessorTime()
        self._current = current or CurrentTrace()
        self._failure_policy: FailurePolicy | None = None
        """The failure policy of the constraints that decide; None for all constraints."""
        self._serving = serving
        self._preparations = preparations
        self._recorder = recorder
        self._names = None if recorder is None else recorder.names
        self._options = options
        self._crowded_budget = options.crowded_budget
        self._registry = registry
        self._observer = AdmissionObserver(registry, log, serving.uses, options.logged)
        self._seconds = {
            status: registry.histogram(VALIDATION_SECONDS, status)
            for status in ("allow", "deny", "error")
        }

    def part(self, failure_policy: FailurePolicy) -> Admission:
        """Returns an admission for a webhook entry with one failure policy.

        Only its constraints decide.
        """
        part = copy(self)
        part._failure_policy = failure_policy  # noqa: SLF001  # its own
        return part

    def __call__(self, request: AdmissionRequest, query: bytes, received_at: float) -> Outcome:
        """Decides a request, or returns the pending requests, or the reason for no decision."""
        return carry_on(self._decision(request, query, received_at), request.api_version)

    def answer_unread(self, namespace: str, responsible: Responsible) -> UnreadAnswer:
        """Answers an unread request; see :func:`~webhook.server.undecided.answer_unread_by`."""
        blamed = responsible if self._options.blames else "others"
        return answer_unread_by(self._serving.revision, namespace, blamed)

    def _decision(self, request: AdmissionRequest, query: bytes, received_at: float) -> Decision:
        """Decides by one revision, and records the decision or the reason for none."""
        if self._failure_policy is not None:
            request = request._replace(failure_policy=self._failure_policy)
        case = _Case(request, received_at, self._preparations.providers)
        recorder = self._recorder
        if recorder is None:
            return (yield from self._decided(case, query))
        try:
            outcome = yield from self._decided(case, query)
        except Exception as error:
            self._unanswered(recorder, case, 500, f"bug: {type(error).__name__}")
            raise
        if type(outcome) is AdmissionResponse:  # As nearly all are.
            snapshot = None if case.revision is None else case.revision.snapshot
            began = case.began or time.monotonic()
            return recorder.answered(request, case.responses, snapshot, received_at, began, outcome)
        assert isinstance(outcome, Unanswerable)
        self._unanswered(recorder, case, outcome.code, outcome.message)
        return outcome

    def _unanswered(self, recorder: Recorder, case: _Case, code: int, why: str) -> None:
        snapshot = None if case.revision is None else case.revision.snapshot
        times = case.span.received_at, case.began or time.monotonic()
        recorder.unanswered(Reviewed(case.request, case.responses, snapshot, times), code, why)

    def _decided(self, case: _Case, query: bytes) -> Decision:
        """Decides in three steps.

        Is a revision loaded, is the object a policy, do the policies admit it.
        """
        request, options = case.request, self._options
        try:
            seconds = deadline.seconds_for(query, options.review_timeout_seconds)
        except deadline.InvalidTimeout as error:
            return Unanswerable(400, "malformed", str(error))
        received_at = case.span.received_at
        case.span = RequestTime(received_at, received_at + seconds)
        revision = case.revision = self._serving.revision
        if revision is None:
            return not_ready("policies")
        if request.username in options.own_users:
            return verdict.allowed(request.uid, "Gatekeeper does not self-manage")
        if request.kind.group in submission.GROUPS:
            refused = yield from self._submitted(case, revision)
            if refused is not None:
                return refused
            revision = case.revision or revision
        try:
            outcome = yield from self._reviewed(case, revision)
        except Exception:
            self._count(case, "error")
            raise
        if isinstance(outcome, Found):  # an update that only lets an object go
            return verdict.allowed(request.uid, RELEASED)
        if status := _status(outcome):
            self._count(case, status)
        return outcome

    def _count(self, case: _Case, status: str) -> None:
        self._registry.count(
            VALIDATION_REQUESTS, status, "true" if case.request.dry_run else "false"
        )
        taken, histogram = time.monotonic() - case.span.received_at, self._seconds[status]
        histogram.observe(taken)
        if (trace := self._current.trace) is not None:
            histogram.exemplify(taken, trace.trace_id, trace.span_id)

    def _submitted(
        self, case: _Case, revision: Revision
    ) -> Generator[Awaiting, None, AdmissionResponse | Unanswerable | None]:
        """Returns why a policy object is not admitted, or why that cannot be checked.

        None if it is.
        """
        request, compiler = case.request, self._preparations.templates
        if only_releases(request):
            return verdict.allowed(request.uid, RELEASED)
        source = None if compiler is None else submission.policy_to_try(request)
        compiled = None if compiler is None or source is None else compiler.compile(source)
        if compiled is not None:
            yield Awaiting([compiled], case.span.until)
            revision = case.revision = self._serving.revision or revision
        tried = compiled.result() if compiled is not None and compiled.done() else None
        checks = (None if tried is None else tried.checks) or revision.checks
        refusal = submission.check(request, checks, any_action=self._options.any_action)
        if compiled is not None and (refusal is None or refusal.lacks_template):
            if tried is None:
                compiled.cancel()  # A retry would queue behind a trial whose result is unused.
                return Unanswerable(504, "deadline", _NOT_TRIED)
            if tried.fault is not None and tried.fault.is_passing:
                return Unanswerable(503, "environment", tried.fault.message)
            refusal = refusal or submission.check_compiled(tried.fault)
        exception = None if refusal is not None else exception_of(request)
        if exception is not None:
            refusal = yield from check_exception(
                request,
                exception,
                revision.snapshot,
                self._preparations.rights,
                self._options.exceptions_longest_seconds,
                case.span.until,
            )
        if refusal is None and self._preparations.providers is None:
            refusal = check_is_on(request)
        if refusal is None:
            providers, rights = revision.policies.providers, self._preparations.rights
            refusal = yield from check_use(request, providers, rights, case.span.until)
        return (
            None if refusal is None else verdict.errored(request.uid, refusal.code, refusal.message)
        )

    def _subject(self, case: _Case, limits: Limits) -> Subject:
        options, provider_requests = self._options, case.provider_requests
        return Subject(
            case.value,
            enforcement.WEBHOOK,
            limits,
            mutates=False,  # the mutating webhook did
            expands=options.expands,
            reads_namespace=self._preparations.namespaces is not None,
            on_expansion_error=options.mutation_on_error,
            answers=provider_requests.answers,
            rounds=provider_requests.rounds,
            moment=provider_requests.moment,
        )

    def _limits(
        self, case: _Case, until: float, budget: Budget | None, memo: Remembering | None = None
    ) -> Limits:
        return Limits(
            until,
            budget=budget,
            observer=self._current.trace,
            requester=case.provider_requests.acting_user,
            known=case.provider_requests.answering,
            begin=case.provider_requests.begin,
            moment=case.provider_requests.moment,
            memo=memo,
        )

    def _reviewed(
        self, case: _Case, revision: Revision
    ) -> Generator[Awaiting, None, AdmissionResponse | Unanswerable | Found]:
        """Reviews by the policies in force; answers requests that need no review at once."""
        request, span = case.request, case.span
        walked = self._walk(case, revision)
        while type(walked) is Needs:
            if walked.namespace:
                name = walked.namespace
                answer = yield from read_namespace(self._preparations, name, span.until)
                if isinstance(answer, Unanswerable):
                    return answer
                if answer is None:
                    fault = f'failed to create augmentedReview: namespaces "{name}" not found'
                    return verdict.errored(request.uid, 500, fault)
                revision = case.revision = self._serving.revision or revision
                case.value = case.value._replace(namespace=answer)
                walked = self._walk(case, revision)
            elif walked.requests:
                until = answers_until(span, goes_beside=self._goes_beside(case))
                yield from case.provider_requests.wait_for(walked.requests, until)
                walked = self._walk(case, revision, walked.again)
            else:
                walked = yield from self._elsewhere(case, revision)
        assert type(walked) is Found
        if walked.released:
            return walked
        if walked.excluded is not None:
            message = "Namespace is set to be ignored by Gatekeeper config"
            return verdict.allowed(request.uid, message)
        outcome = self._concluded(case, revision, walked)
        is_full = isinstance(case.slow, Delay)
        return no_place() if is_full and isinstance(outcome, Unanswerable) else outcome

    def _policies(self, revision: Revision) -> PolicySet:
        policies, failure_policy = revision.policies, self._failure_policy
        return policies if failure_policy is None else policies.part(failure_policy)

    def _goes_beside(self, case: _Case, waited_seconds: float = 0.0) -> bool:
        """Whether the review runs on another thread, from the start or after the budget here."""
        if case.slow is not None:
            return True
        reviewer = self._preparations.reviewer
        return preparation.goes_beside(reviewer, case.request, waited_seconds)

    def _walk(
        self, case: _Case, revision: Revision, again: Continuation | None = None
    ) -> Found | Needs:
        """Reviews on this thread, within the budget that other requests allow.

        ``again`` continues a review that waited for providers.
        """
        span, budget, user = case.span, self._options.budget, case.provider_requests.requester
        case.began = began = time.monotonic()
        waited = began - span.received_at
        if began < span.until and self._goes_beside(case, waited):
            budget = ELSEWHERE
        elif waited > preparation.WAITED_SECONDS:
            budget = self._crowded_budget
        limits = self._limits(case, span.until, budget, self._options.memo)
        worked_before = time.thread_time()
        if again is None:
            walked = walk(self._policies(revision), self._subject(case, limits))
        else:
            walked = again(limits, case.provider_requests.rounds)
        worked = time.thread_time() - worked_before
        case.worked_seconds += worked
        self._times.note(user, worked)
        return walked

    def _elsewhere(
        self, case: _Case, revision: Revision
    ) -> Generator[Awaiting, None, Found | Needs]:
        """Reviews on another thread; without time there, matching constraints are undecided."""
        reviewer, span, policies = self._preparations.reviewer, case.span, self._policies(revision)
        assert reviewer is not None  # Else no budget is deferrable.
        limits = self._limits(case, span.review_until, None)

        def work(budget: Budget) -> Found | Needs:
            walked = walk(policies, self._subject(case, limits._replace(budget=budget)))
            if isinstance(walked, Found) and walked.responses.results:
                # Of 5,600 violations of one Pod it took 20 ms.
                gathered = self._observer.gathered(case.request, walked.responses, rest=budget.rest)
                case.gathered = walked.responses, gathered
            return walked

        slow = case.slow = reviewer.begin(work, case.request, span)
        if not isinstance(slow, Delay):
            self._registry.count(SLOW_REVIEWS)
            case.began = time.monotonic()
            yield Awaiting([slow.future], min(slow.answer_at, span.until))
            if not slow.future.cancel() and slow.future.done() and slow.crowded_out is None:
                walked = slow.future.result()
                if isinstance(walked, Found) or not walked.time:
                    return walked
        case.provider_requests.rounds = ROUNDS_MAX  # No provider is asked any more.
        return walk(policies, self._subject(case, UNTIL_NOW))

    def _concluded(
        self,
        case: _Case,
        revision: Revision,
        walked: Found,
    ) -> AdmissionResponse | Unanswerable:
        """Returns the answer for a finished walk."""
        request, responses, unexpanded = case.request, walked.responses, walked.unexpanded
        responsible: Responsible | None = None
        if responses.deadline_exceeded or unexpanded in UNDECIDABLE:
            responsible = self._responsible(case)
            responses = (
                attributed(responses, responsible) if responses.deadline_exceeded else responses
            )
        case.responses = responses
        if unexpanded:
            unexpanded = f"unable to expand object: {unexpanded}"
        outcome = self._judge(case, responses, unexpanded)
        if responsible is not None and walked.unexpanded in UNDECIDABLE:
            if walked.unexpanded != OUT_OF_TIME and responsible == "others":
                responsible = "object"  # It is too large, however long it took.
            outcome = self._unless_unexpanded(request, outcome, responsible, revision, unexpanded)
        is_policy = request.kind.group in submission.GROUPS
        if is_policy and isinstance(outcome, AdmissionResponse) and outcome.allowed:
            notices = (
                submission.notice(request, revision.checks),
                unknown_constraints(request, revision.snapshot),
            )
            notice = "; ".join(filter(None, notices))
            outcome = verdict.with_notice(outcome, notice) if notice else outcome
        return outcome

    def _responsible(self, case: _Case) -> Responsible:
        """Returns who is responsible for the lack of time."""
        if not self._options.blames:
            return "others"
        slow = case.slow
        delay = self._times.since(case.span.received_at, case.provider_requests.requester)
        delay = delay._replace(worked_seconds=case.worked_seconds)
        if isinstance(slow, Delay):
            return responsible_for(decisive(slow, delay))
        if slow is None:
            return responsible_for(delay)
        if slow.crowded_out is not None:
            return responsible_for(decisive(slow.crowded_out, delay))
        return responsible_for(slow.delay(delay))

    def _judge(
        self, case: _Case, responses: Responses, unexpanded: str
    ) -> AdmissionResponse | Unanswerable:
        """Returns the answer for the findings, and counts and logs them."""
        request = case.request
        # Made with its name: a second answer that has one takes longer.
        name = "" if self._names is None else next(self._names)
        if responses.undecided:
            self._observer.undecided(request, responses.undecided)
        is_excused = bool(responses.excused)
        if not responses.results:
            response = verdict.judge(request.uid, responses, name)
        else:
            if case.gathered is not None and case.gathered[0] is responses:
                gathered = case.gathered[1]
                response = gathered.response._replace(decision_id=name)
            else:
                gathered = self._observer.gathered(request, responses, name)
                response = gathered.response
            self._observer.violations(gathered)
            is_excused = gathered.is_excused
        if is_excused:
            self._observer.excused(request, responses)
        if unexpanded:
            self._observer.unexpanded(request, unexpanded)
            response = verdict.with_warning(response, unexpanded)
        if not response.allowed:
            self._observer.refused(response)
            return response  # Further warnings cannot change a denial.
        if responses.deadline_exceeded:
            return Unanswerable(504, "deadline", _TOO_LATE)
        if responses.faults:
            return self._observer.faulty(request, responses)
        return response

    def _unless_unexpanded(
        self,
        request: AdmissionRequest,
        outcome: AdmissionResponse | Unanswerable,
        responsible: Responsible,
        revision: Revision,
        why: str,
    ) -> AdmissionResponse | Unanswerable:
        """Returns the answer if the implied objects are unknown, because of size or lack of time.

        Admitting the object would admit them unreviewed.
        """
        policy = revision.snapshot.isolation
        spared = request.namespace in policy.spared_namespaces
        if isinstance(outcome, Unanswerable) or not outcome.allowed or spared:
            return outcome
        if policy.on_undecidable == "ignore":
            return outcome
        if responsible == "others":
            return Unanswerable(504, "deadline", _TOO_LATE)
        refusal = verdict.undecidable(request.uid, why)
        self._observer.refused(refusal)
        return refusal
