"""``/v1/admit``: the decision on one admission request, in Gatekeeper's order of checks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of
from webhook.constraint import enforcement
from webhook.constraint.errors import Deferred
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedReview
from webhook.metrics.admission import (
    EVALUATION_ERRORS,
    OVERRUNS,
    POLICY_FAULTS,
    SLOW_REVIEWS,
    VALIDATION_REQUESTS,
    VALIDATION_SECONDS,
)
from webhook.server import deadline, expansion, preparation, submission, verdict
from webhook.server.decoding import LARGE_BYTES
from webhook.server.endpoint import Unanswerable
from webhook.server.preparation import Waiting
from webhook.serving.recorder import Reviewed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.constraint.implied import Reviewing
    from webhook.constraint.limits import Budget
    from webhook.constraint.result import Responses, Undecided
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.snapshot import OnError
    from webhook.server.preparation import Preparations
    from webhook.serving.namespaces import NamespaceAnswer
    from webhook.serving.recorder import Recorder
    from webhook.serving.revision import Revision, Serving

_KNOWN_ACTIONS: Final = frozenset(enforcement.SCOPED_ACTIONS)


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """What the operator chose about deciding."""

    review_timeout_seconds: float = 10.0
    log_denies: bool = False
    any_action: bool = False
    """Whether constraints with unknown enforcement actions are admitted."""
    own_users: frozenset[str] = frozenset()
    """Users that are this webhook itself, which does not police itself."""
    expands: bool = True
    """Whether what objects imply is reviewed with them."""
    mutation_on_error: OnError = "skip"
    """What becomes of an implied resource that a mutator cannot be applied to."""
    budget: Budget | None = None
    """What an evaluation may take on this thread; deferrable only with a reviewer."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out before deciding; None where nothing was asked."""

    namespace: Future[NamespaceAnswer] | None = None
    compiled: Future[str] | None = None
    reviewed: Future[Responses] | None = None
    revision: Revision | None = None
    """What it was reviewed by: another may be in force by now."""
    began: float = 0.0
    """When, on the monotonic clock."""
    unexpanded: str = ""
    """Why what the object implies is not reviewed with it."""

    @property
    def namespace_document(self) -> dict[str, Any] | None:
        """The Namespace that was read."""
        return None if self.namespace is None else self.namespace.result().document


_UNPREPARED: Final = _Prepared()


def _namespace_fault(request: AdmissionRequest, prepared: _Prepared) -> str:
    """Why the review cannot go on without the Namespace that was asked for."""
    assert prepared.namespace is not None
    if not prepared.namespace.done():
        raise Unanswerable(504, "deadline", f"Namespace {request.namespace} was not read in time")
    answer = prepared.namespace.result()
    if answer.fault:
        raise Unanswerable(500, "namespace", f"Namespace not read: {answer.fault}")
    if answer.document:
        return ""
    return f'failed to create augmentedReview: namespaces "{request.namespace}" not found'


def _compiled(prepared: _Prepared) -> str:
    """What is wrong with the source that was compiled."""
    if prepared.compiled is None:
        return ""
    if not prepared.compiled.done():
        raise Unanswerable(504, "deadline", "the template was not compiled in time")
    return prepared.compiled.result()


def _subject(request: AdmissionRequest, prepared: _Prepared) -> AugmentedReview:
    """What is reviewed: the request with its Namespace, if that was read."""
    if request.namespace and request.kind.kind == "Namespace" and not request.kind.group:
        # Server-side apply names the Namespace here too; see Gatekeeper's issue 792.
        document = {name: value for name, value in request.document.items() if name != "namespace"}
        request = request._replace(namespace="", document=document)
    return AugmentedReview(request, prepared.namespace_document)


def _reviewed(review: Future[Responses]) -> Responses:
    """What was found beside this thread."""
    if not review.done() or review.cancelled():
        review.cancel()
        raise Unanswerable(504, "deadline", "the review did not end within its time")
    return review.result()


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
    ) -> None:
        self._serving = serving
        self._reviewer = preparations.reviewer
        self._preparations = None if preparations is preparation.NOTHING else preparations
        self._recorder = recorder
        self._found: Responses | None = None
        self._options = options
        self._registry = registry
        self._log = log
        self._seconds = {
            status: registry.histogram(VALIDATION_SECONDS, status)
            for status in ("allow", "deny", "error")
        }

    def __call__(
        self, request: AdmissionRequest, query: bytes, received_at: float
    ) -> AdmissionResponse:
        """Decide; raises :class:`~webhook.server.endpoint.Unanswerable`.

        Raises :class:`~webhook.server.preparation.Waiting` where something must be
        found out first.
        """
        if self._preparations is not None:
            self._prepare(self._preparations, request, query, received_at)
        return self._conclude(request, query, received_at, _UNPREPARED)

    def _conclude(
        self, request: AdmissionRequest, query: bytes, received_at: float, prepared: _Prepared
    ) -> AdmissionResponse:
        if self._recorder is None:
            return self._decide(request, query, received_at, prepared)
        return self._decide_recorded(self._recorder, request, query, received_at, prepared)

    def _prepare(
        self, preparations: Preparations, request: AdmissionRequest, query: bytes, received: float
    ) -> None:
        """Raise :class:`Waiting` for what deciding this request needs and has not got."""
        revision, options = self._serving.revision, self._options
        if revision is None or request.username in options.own_users:
            return
        reader, compiler = preparations.namespaces, preparations.templates
        lacks = reader is not None and self._lacks_namespace(request, revision)
        source = None if compiler is None else submission.policy_to_try(request)
        if not lacks and source is None:
            return
        try:
            seconds = deadline.seconds_for(query, options.review_timeout_seconds)
        except deadline.InvalidTimeout:
            return  # Deciding refuses it.
        left = received + seconds - time.monotonic()
        asked = reader.read(request.namespace, left) if reader is not None and lacks else None
        compiled = None if compiler is None or source is None else compiler.compile(source)
        futures: list[Future[Any]] = [item for item in (asked, compiled) if item is not None]
        prepared = _Prepared(asked, compiled)
        raise Waiting(
            preparation.finished(futures, left),
            lambda: self._conclude(request, query, received, prepared),
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

    def _decide_recorded(
        self,
        recorder: Recorder,
        request: AdmissionRequest,
        query: bytes,
        received_at: float,
        prepared: _Prepared,
    ) -> AdmissionResponse:
        """Decide, and hand what was decided, or why nothing was, to the recorder."""
        revision = prepared.revision or self._serving.revision
        snapshot = None if revision is None else revision.snapshot
        times = received_at, prepared.began or time.monotonic()
        self._found = None
        try:
            response = self._decide(request, query, received_at, prepared)
        except Unanswerable as refusal:
            reviewed = Reviewed(request, self._found, snapshot, times)
            recorder.unanswered(reviewed, refusal.code, str(refusal))
            raise
        except Waiting:
            raise
        except Exception as error:
            reviewed = Reviewed(request, self._found, snapshot, times)
            recorder.unanswered(reviewed, 500, f"bug: {type(error).__name__}")
            raise
        return recorder.answered(Reviewed(request, self._found, snapshot, times), response)

    def _decide(
        self, request: AdmissionRequest, query: bytes, received_at: float, prepared: _Prepared
    ) -> AdmissionResponse:
        try:
            seconds = deadline.seconds_for(query, self._options.review_timeout_seconds)
        except deadline.InvalidTimeout as error:
            raise Unanswerable(400, "malformed", str(error)) from None
        revision = prepared.revision or self._serving.revision
        if revision is None:
            message = "not ready: policies are not loaded yet"
            raise Unanswerable(503, "not_ready", message, retry=True)
        if request.username in self._options.own_users:
            return verdict.allowed(request.uid, "Gatekeeper does not self-manage")
        try:
            submission.check(request, revision.checks, any_action=self._options.any_action)
            if prepared is not _UNPREPARED:
                submission.check_compiled(_compiled(prepared))
        except submission.Refused as refusal:
            return verdict.errored(request.uid, refusal.code, str(refusal))
        status = "error"
        try:
            if self._excluded(request, revision):
                status = "allow"
                message = "Namespace is set to be ignored by Gatekeeper config"
                return verdict.allowed(request.uid, message)
            if prepared.namespace is not None and (fault := _namespace_fault(request, prepared)):
                return verdict.errored(request.uid, 500, fault)
            until = received_at + seconds
            try:
                response = self._review(request, revision, until, prepared)
            except Deferred:
                status = ""
                raise self._deferred(request, query, received_at, until, prepared) from None
            if response.allowed:
                status = "allow"
                if notice := submission.notice(request, revision.checks):
                    response = verdict.with_notice(response, notice)
            elif response.code == 403:
                status = "deny"
            return response
        finally:
            if status:
                dry_run = "true" if request.dry_run else "false"
                self._registry.count(VALIDATION_REQUESTS, status, dry_run)
                self._seconds[status].observe(time.monotonic() - received_at)

    def _excluded(self, request: AdmissionRequest, revision: Revision) -> bool:
        """Whether Config excludes the request's namespace; a Namespace counts as its own."""
        document = request.old_object if request.operation == "DELETE" else request.object
        if document is None:
            return False
        if document.get("kind") == "Namespace" and document.get("apiVersion") == "v1":
            return revision.is_excluded(name_of(document))
        return revision.is_excluded(request.namespace)

    def _review(
        self,
        request: AdmissionRequest,
        revision: Revision,
        until: float,
        prepared: _Prepared = _UNPREPARED,
    ) -> AdmissionResponse:
        if prepared.reviewed is None:
            if time.monotonic() > until:
                message = "the time for this review ended while it waited"
                raise Unanswerable(504, "deadline", message)
            if request.size > LARGE_BYTES and self._reviewer is not None:
                raise Deferred  # Of many constraints each would take a part of its time here.
            subject = _subject(request, prepared)
            reviewing, unexpanded = self._reviewing(revision, subject, until)
            responses = reviewing.review(
                subject,
                enforcement_point=enforcement.WEBHOOK,
                limits=Limits(until, budget=self._options.budget),
            )
        else:
            responses, unexpanded = _reviewed(prepared.reviewed), prepared.unexpanded
        self._found = responses
        if responses.results:
            self._tell(request, responses)
        if responses.undecided:
            self._tell_undecided(request, responses.undecided)
        response = verdict.judge(request.uid, responses)
        if unexpanded:
            self._log.error(
                "object not expanded",
                hookType="validation",
                error=unexpanded,
                request_uid=request.uid,
            )
            response = verdict.with_warning(response, unexpanded)
        if not response.allowed:
            return response  # What else there might be cannot change it.
        if responses.deadline_exceeded:
            raise Unanswerable(504, "deadline", "the review did not end within its time")
        if responses.faults:
            return self._faulty(request, responses)
        return response

    def _reviewing(
        self, revision: Revision, subject: AugmentedReview, until: float
    ) -> tuple[Reviewing, str]:
        """What reviews the request, and why what its object implies is not reviewed with it."""
        if not self._options.expands:
            return revision.snapshot, ""
        return expansion.reviewing(revision, subject, until, self._options.mutation_on_error)

    def _deferred(
        self,
        request: AdmissionRequest,
        query: bytes,
        received_at: float,
        until: float,
        prepared: _Prepared,
    ) -> Waiting:
        """The review goes on beside this thread; this is what its request waits for."""
        revision = self._serving.revision
        assert self._reviewer is not None  # Else no budget is deferrable.
        assert revision is not None  # It was being asked.
        subject = _subject(request, prepared)
        reviewing, unexpanded = self._reviewing(revision, subject, until)
        review = self._reviewer.review(reviewing, subject, until)
        if review is None:
            message = "too many slow reviews wait: try again or try another replica"
            raise Unanswerable(429, "overload", message, retry=True)
        self._registry.count(SLOW_REVIEWS)
        known = replace(prepared, reviewed=review, revision=revision, began=time.monotonic())
        known = replace(known, unexpanded=unexpanded)
        return Waiting(
            preparation.finished([review], until - time.monotonic()),
            lambda: self._conclude(request, query, received_at, known),
            request.api_version,
        )

    def _tell_undecided(self, request: AdmissionRequest, undecided: Sequence[Undecided]) -> None:
        """Count every constraint that could not be decided; log what just went wrong."""
        for item in undecided:
            kind = item.constraint.kind
            self._registry.count(POLICY_FAULTS, kind, item.cause, item.answer)
            if item.cause == "error":
                self._registry.count(EVALUATION_ERRORS, kind)
            elif item.cause == "overrun":
                self._registry.count(OVERRUNS, kind)
            else:
                continue  # Told when it began; not for each request.
            self._log.error(
                "constraint not decided",
                hookType="validation",
                constraint_kind=kind,
                constraint_name=item.constraint.name,
                cause=item.cause,
                answer=item.answer,
                error=item.message,
                request_uid=request.uid,
            )

    def _faulty(self, request: AdmissionRequest, responses: Responses) -> AdmissionResponse:
        """The request itself cannot be reviewed, or a template gave no verdict."""
        failed = [fault for fault in responses.faults if fault.kind]
        if not failed:
            told = "".join(f"{fault.target}: {fault.message}\n" for fault in responses.faults)
            message = f"error reviewing resource {request.name}: {told}"
            self._log.error("error executing query", hookType="validation", error=message)
            return verdict.errored(request.uid, 500, message)
        for fault in failed:
            self._registry.count(EVALUATION_ERRORS, fault.kind)
            self._log.error(
                "evaluation failed",
                hookType="validation",
                constraint_kind=fault.kind,
                error=fault.message,
            )
        told = "; ".join(f"{fault.kind}: {fault.message}" for fault in failed)
        raise Unanswerable(500, "evaluation_error", f"evaluation failed: {told}")

    def _tell(self, request: AdmissionRequest, responses: Responses) -> None:
        """Count every violation, and log it if that is wanted."""
        registry = self._registry
        for result in responses.results:
            constraint = result.constraint
            for action in result.actions:
                if action in _KNOWN_ACTIONS:
                    registry.violations.count(constraint.kind, constraint.name, action)
                else:
                    self._log.error(
                        "error validating enforcement action",
                        skipping_enforcement_action=action,
                        constraint=constraint.name,
                    )
            if result.error:
                registry.count(EVALUATION_ERRORS, constraint.kind)
        if self._options.log_denies:
            for fields in denials(request, responses):
                self._log.info(fields.pop("message"), **fields)


def denials(request: AdmissionRequest, responses: Responses) -> list[dict[str, Any]]:
    """One log event for each violation, with Gatekeeper's message and fields."""
    document = submission.submitted(request)
    # On CREATE the client may leave the name to the server.
    name = request.name or (name_of(document) if document else "")
    events = []
    for result in responses.results:
        constraint = result.constraint
        if not _KNOWN_ACTIONS.intersection(result.actions):
            continue
        version = str(constraint.document.get("apiVersion", "")).rpartition("/")[2]
        events.append(
            {
                "message": f"denied admission: {result.msg}",
                "hookType": "validation",
                "semantic": True,
                "process": "admission",
                "details": result.details,
                "event_type": "violation",
                "constraint_name": constraint.name,
                "constraint_group": "constraints.gatekeeper.sh",
                "constraint_api_version": version,
                "constraint_kind": constraint.kind,
                "constraint_action": result.enforcement_action,
                "constraint_enforcement_actions": list(result.scoped_actions),
                "resource_group": request.kind.group,
                "resource_api_version": request.kind.version,
                "resource_kind": request.kind.kind,
                "resource_namespace": request.namespace,
                "resource_name": name,
                "request_username": request.username,
            }
        )
    return events
