"""``/v1/mutate``: applies the mutators to an object, with Gatekeeper's order of checks.

Mutators work on the admission thread within the budget of an evaluation. Large objects, and those
beyond the budget, are mutated on another thread, as slow reviews are.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.api.admission import AdmissionResponse
from webhook.api.gvk import gvk_of, name_of, text
from webhook.api.shapes import object_of
from webhook.constraint.isolation import on_undecidable_for
from webhook.constraint.limits import ELSEWHERE, Limits
from webhook.constraint.review import AugmentedReview
from webhook.metrics.admission import SLOW_REVIEWS
from webhook.metrics.mutation import MUTATION_ITERATIONS, MUTATION_REQUESTS, MUTATION_SECONDS
from webhook.mutation.errors import MutationError, NotConverging, OutOfTime
from webhook.mutation.mutator import OPERATIONS
from webhook.mutation.patch import NO_PATCH
from webhook.review.mutating import Changes, changes
from webhook.review.outcome import Needs
from webhook.review.releasing import only_releases
from webhook.review.subject import Subject
from webhook.server import deadline, preparation, submission, verdict
from webhook.server.mutation_observer import MutationObserver
from webhook.server.outcome import Unanswerable, no_place, not_ready
from webhook.server.preparation import Awaiting, carry_on, read_namespace
from webhook.server.provider_requests import ReviewRequests, answers_until
from webhook.server.responsibility import (
    Delay,
    ProcessorTime,
    decisive,
    responsible_for,
)
from webhook.serving.recorder import MutationReviewed
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.limits import Budget
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.mutator import MutationSource
    from webhook.mutation.passes import MutationOnError
    from webhook.review.policy_set import PolicySet
    from webhook.server.deadline import RequestTime
    from webhook.server.outcome import Outcome
    from webhook.server.preparation import Decision, Preparations, ProviderRounds
    from webhook.server.responsibility import Responsible
    from webhook.server.undecided import UnreadAnswer
    from webhook.serving.recorder import MutationRecorder
    from webhook.serving.revision import Revision, Serving

_Attempt: TypeAlias = "Changes | Needs | MutationError | Delay"
"""The result of mutating; a :class:`Delay` says why there was no time, or no place."""

_TOO_LATE: Final = "the time limit of mutating this object passed"
_REASONS: Final = {
    "object": "its mutators used up the time limit",
    "requester": "other requests of the same user used up the time limit",
}

NOT_MUTATED: Final = "Resource was not mutated"


class _Case:
    """The state of one request until its answer."""

    __slots__ = ("began", "is_slow", "namespace", "provider_requests", "request", "span")

    def __init__(
        self, request: AdmissionRequest, span: RequestTime, providers: ProviderRounds | None
    ) -> None:
        self.request = request
        self.span = span
        self.namespace: dict[str, Any] | None = None
        """The Namespace of the request, if it was read for it."""
        # Gatekeeper's mutation has no cache: a tag may be another image by now.
        self.provider_requests = ReviewRequests(providers, request, fresh=True)
        self.is_slow = False
        """Whether it went on beside the admission thread."""
        self.began = span.received_at
        """When its mutators began last, on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """The operator's choices about mutating."""

    review_timeout_seconds: float
    on_error: MutationOnError = "skip"
    """The effect on a request of a mutator that cannot be applied to its object."""
    annotations: bool = False
    log_mutations: bool = False
    own_users: frozenset[str] = frozenset()
    """Users that are this webhook itself."""
    blames: bool = True
    """As in :class:`~webhook.server.admission.AdmissionOptions`."""
    budget: Budget | None = None
    """The bounds of all mutators of an object on this thread; only with a reviewer."""


class Mutation:
    """Mutates the objects of admissions by the mutators in force. For one thread."""

    def __init__(
        self,
        serving: Serving,
        options: MutationOptions,
        registry: Registry,
        log: Logger,
        preparations: Preparations = preparation.NOTHING,
        recorder: MutationRecorder | None = None,
        *,
        times: ProcessorTime | None = None,
    ) -> None:
        """``recorder`` takes applied, previewed and failed mutations.

        ``times`` has the recent processor time of each user.
        """
        self._times = times or ProcessorTime()
        self._serving = serving
        self._options = options
        self._registry = registry
        self._preparations = preparations
        self._observer = MutationObserver(
            registry,
            log,
            serving.fights,
            recorder,
            logs_mutations=options.log_mutations,
        )
        self._seconds = {
            status: registry.histogram(MUTATION_SECONDS, status)
            for status in ("success", "skip", "error")
        }
        self._iterations = {
            success: registry.histogram(MUTATION_ITERATIONS, success)
            for success in ("true", "false")
        }

    def __call__(self, request: AdmissionRequest, query: bytes, received_at: float) -> Outcome:
        """Answers a request, or returns the pending requests, or the reason for no answer."""
        return carry_on(self._decision(request, query, received_at), request.api_version)

    def answer_unread(self, namespace: str, responsible: Responsible) -> UnreadAnswer:
        """Answers a request that is not read: refused where a mutator might concern it."""
        revision = self._serving.revision
        if responsible == "others" or revision is None or not self._options.blames:
            return "fail"
        policy = revision.snapshot.isolation
        is_spared = namespace in policy.spared_namespaces or policy.on_undecidable == "ignore"
        if is_spared or revision.policies.exclusions.mutation(namespace):
            return "warn"
        return "refuse" if revision.policies.mutates else "warn"

    def _decision(self, request: AdmissionRequest, query: bytes, received_at: float) -> Decision:
        """Decides in this order.

        Skipped requests, requests that no mutator concerns, then mutation.
        """
        options = self._options
        try:
            seconds = deadline.seconds_for(query, options.review_timeout_seconds)
        except deadline.InvalidTimeout as error:
            return Unanswerable(400, "malformed", str(error))
        revision = self._serving.revision
        if revision is None:
            return not_ready("mutators")
        if request.username in options.own_users:
            return verdict.allowed(request.uid, "Gatekeeper does not self-manage")
        if request.operation not in OPERATIONS:
            return verdict.allowed(request.uid, "Mutating only on create or update")
        if request.kind.group in submission.GROUPS:
            return verdict.allowed(request.uid, "Not mutating gatekeeper resources")
        obj = request.object
        if obj is None or not text(obj, "kind"):
            message = "couldn't get version/kind; json parse error: the request has no object"
            return self._counted("error", received_at, verdict.errored(request.uid, 500, message))
        is_namespace = request.kind.group_kind == ("", "Namespace")
        if revision.policies.exclusions.mutation(
            name_of(obj) if is_namespace else request.namespace
        ):
            message = "Namespace is set to be ignored by Gatekeeper config"
            return self._counted("skip", received_at, verdict.allowed(request.uid, message))
        # The review would see a mutator's change to an object in deletion, which may be immutable.
        in_webhook = revision.policies.in_webhook
        concerned = revision.mutations.concerns(gvk_of(obj), request.operation) or (
            in_webhook is not None and bool(in_webhook.concerned(request))
        )
        if not concerned or only_releases(request):
            response = verdict.allowed(request.uid, NOT_MUTATED)
            return self._counted("success", received_at, response)
        span = deadline.RequestTime(received_at, received_at + seconds)
        case = _Case(request, span, self._preparations.providers)
        attempt = self._attempt(case, revision.policies)
        while type(attempt) is Needs:
            if attempt.namespace:
                name = attempt.namespace
                document = yield from read_namespace(self._preparations, name, span.until)
                if isinstance(document, Unanswerable):
                    return document
                if document is None:
                    message = f'namespaces "{name}" not found'
                    response = verdict.errored(request.uid, 500, message)
                    return self._counted("error", received_at, response)
                case.namespace = document
                attempt = self._attempt(case, revision.policies)
            elif attempt.requests:
                until = answers_until(span, goes_beside=self._goes_beside(case))
                yield from case.provider_requests.wait_for(attempt.requests, until)
                attempt = self._attempt(case, revision.policies)
            else:
                attempt = yield from self._elsewhere(case, revision.policies)
        return self._concluded(case, revision, attempt)

    def _subject(self, case: _Case, until: float, budget: Budget | None) -> Subject:
        return Subject(
            AugmentedReview(case.request, case.namespace),
            limits=Limits(until, budget=budget),
            reads_namespace=self._preparations.namespaces is not None,
            on_mutation_error=self._options.on_error,
            answers=case.provider_requests.answers,
            rounds=case.provider_requests.rounds,
        )

    def _goes_beside(self, case: _Case, waited_seconds: float = 0.0) -> bool:
        """Whether its mutators are not begun on the admission thread, or were ended there."""
        if case.is_slow:
            return True
        reviewer = self._preparations.reviewer
        return preparation.goes_beside(reviewer, case.request, waited_seconds)

    def _attempt(self, case: _Case, policies: PolicySet) -> _Attempt:
        """Mutate on this thread, for as long as others can wait."""
        budget, user = self._options.budget, case.provider_requests.requester
        case.began = time.monotonic()
        if self._preparations.reviewer is None:
            budget = None
        elif self._goes_beside(case, case.began - case.span.received_at):
            budget = ELSEWHERE
        worked_before = time.thread_time()
        subject = self._subject(case, case.span.until, budget)
        attempt = _changes(policies, subject, annotates=self._options.annotations)
        worked = time.thread_time() - worked_before
        self._times.note(user, worked)
        if type(attempt) is OutOfTime:
            since = self._times.since(case.span.received_at, user)
            return since._replace(worked_seconds=worked)
        return attempt

    def _elsewhere(self, case: _Case, policies: PolicySet) -> Generator[Awaiting, None, _Attempt]:
        """Mutate beside this thread, in the lane of slow reviews."""
        reviewer, span = self._preparations.reviewer, case.span
        assert reviewer is not None  # Else there is no budget.
        user, annotates = case.provider_requests.requester, self._options.annotations
        case.is_slow = True
        case.began = time.monotonic()

        def work(budget: Budget) -> _Attempt:
            subject = self._subject(case, span.review_until, budget)
            return _changes(policies, subject, annotates=annotates)

        slow = reviewer.begin(work, case.request, span)
        if isinstance(slow, Delay):
            return decisive(slow, self._times.since(span.received_at, user))
        self._registry.count(SLOW_REVIEWS)
        yield Awaiting([slow.future], min(slow.answer_at, span.until))
        if slow.crowded_out is not None:
            return decisive(slow.crowded_out, self._times.since(span.received_at, user))
        if not slow.future.cancel() and slow.future.done():
            attempt = slow.future.result()
            if type(attempt) is not OutOfTime:
                return attempt
        return slow.delay(self._times.since(span.received_at, user))

    def _concluded(
        self, case: _Case, revision: Revision, attempt: _Attempt
    ) -> AdmissionResponse | Unanswerable:
        """Returns the answer to the result of a mutation, and records it."""
        request, span = case.request, case.span
        times = span.received_at, case.began
        reviewed = MutationReviewed(request, None, NO_PATCH, None, times)
        if type(attempt) is Changes:
            response = self._answer(request, attempt)
            mutated, patch, _, preview, answers = attempt
            reviewed = MutationReviewed(request, mutated, patch, preview, times, answers or None)
        elif isinstance(attempt, MutationError):
            response = self._failed(request, attempt)
        else:
            assert isinstance(attempt, Delay)  # Nothing is needed any more.
            undone = self._unmutated(request, revision, attempt)
            if isinstance(undone, Unanswerable):
                return undone
            response = undone
        response = self._observer.answered(reviewed, response)
        status = "success" if response.allowed else "error"
        return self._counted(status, span.received_at, response)

    def _unmutated(
        self, request: AdmissionRequest, revision: Revision, delay: Delay
    ) -> AdmissionResponse | Unanswerable:
        """Returns the answer if the mutators had no time.

        A user must not avoid mutators by making an object slow: if the request itself is
        responsible it is refused, unless the operator has it admitted.
        """
        self._iterations["false"].observe(1)
        responsible = responsible_for(delay) if self._options.blames else "others"
        if responsible == "others":
            if delay.places:
                return no_place()
            return Unanswerable(504, "deadline", _TOO_LATE)
        assert request.object is not None
        policy = revision.snapshot.isolation
        plan = revision.mutations.plan(gvk_of(request.object), request.operation)
        in_webhook = revision.policies.in_webhook
        concerned: list[MutationSource] = [] if plan is None else list(plan.mutators)
        concerned += () if in_webhook is None else in_webhook.concerned(request)
        is_refused = request.namespace not in policy.spared_namespaces and any(
            on_undecidable_for(mutator.document, {}, policy.on_undecidable) == "refuse"
            for mutator in concerned
            if object_of(mutator.document.get("spec")).get("failurePolicy") != "Ignore"
        )
        why = _REASONS[responsible]
        if is_refused:
            response = verdict.unmutated(request.uid, responsible, why)
        else:
            response = verdict.allowed(request.uid, NOT_MUTATED)
            response = verdict.with_notice(response, f"no mutator is applied: {why}")
        self._observer.unfinished(request, response, why)
        return response

    def _answer(self, request: AdmissionRequest, done: Changes) -> AdmissionResponse:
        mutated = done.mutated
        self._iterations["true"].observe(mutated.iterations)
        if done.answer:
            response = AdmissionResponse(request.uid, allowed=True, patch=done.answer.base64)
        else:
            response = verdict.allowed(request.uid, NOT_MUTATED)
        for name, fault in mutated.skipped.items():
            shown = f"mutator {name} is not applied: {fault}"
            response = verdict.with_notice(response, shown)
        return response

    def _failed(self, request: AdmissionRequest, error: MutationError) -> AdmissionResponse:
        """Refuses the request; or let it go as it came, where no single mutator can be left out."""
        self._iterations["false"].observe(error.iterations)
        is_passed = self._options.on_error == "skip" and isinstance(error, NotConverging)
        answer: MutationOnError = "skip" if is_passed else "reject"
        self._observer.skipped(request, error.mutator, str(error), answer)
        if is_passed:
            response = verdict.allowed(request.uid, NOT_MUTATED)
            return verdict.with_notice(response, f"no mutator is applied: {error}")
        return verdict.errored(request.uid, 500, str(error))

    def _counted(
        self, status: str, received_at: float, response: AdmissionResponse
    ) -> AdmissionResponse:
        self._registry.count(MUTATION_REQUESTS, status)
        self._seconds[status].observe(time.monotonic() - received_at)
        return response


def _changes(
    policies: PolicySet, subject: Subject, *, annotates: bool
) -> Changes | Needs | MutationError:
    """Returns the changes of mutators, or the error, without a traceback that keeps the object."""
    try:
        return changes(policies, subject, annotates=annotates)
    except MutationError as error:
        return error.with_traceback(None)
