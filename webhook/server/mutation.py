"""``/v1/mutate``: what the mutators make of an admission's object, in Gatekeeper's order of checks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.api.admission import AdmissionResponse
from webhook.api.gvk import gvk_of, name_of, text
from webhook.metrics.mutation import MUTATION_ITERATIONS, MUTATION_REQUESTS, MUTATION_SECONDS
from webhook.mutation.annotations import annotated, id_for
from webhook.mutation.errors import MutationError, NotConverging, OutOfTime
from webhook.mutation.external import resolved
from webhook.mutation.mutator import OPERATIONS
from webhook.mutation.patch import NO_PATCH, PatchTooLarge, patch_between
from webhook.mutation.previewing import previewed
from webhook.mutation.setting import Context
from webhook.review.releasing import only_releases
from webhook.server import deadline, preparation, submission, verdict
from webhook.server.mutation_telling import MutationTelling
from webhook.server.outcome import Pending, Unanswerable, not_ready
from webhook.serving.recorder import MutationReviewed
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from typing import Any

    from webhook.api.admission import AdmissionRequest
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.passes import MutationOnError
    from webhook.mutation.patch import Patch
    from webhook.mutation.plan import Mutated
    from webhook.server.outcome import Outcome
    from webhook.server.preparation import NamespaceReader
    from webhook.serving.namespaces import NamespaceAnswer
    from webhook.serving.recorder import MutationRecorder
    from webhook.serving.revision import Revision, Serving

NOT_MUTATED: Final = "Resource was not mutated"


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """What the operator chose about mutating."""

    review_timeout_seconds: float
    on_error: MutationOnError = "skip"
    """What a request gets whose object a mutator cannot be applied to."""
    annotations: bool = False
    log_mutations: bool = False
    own_users: frozenset[str] = frozenset()
    """Users that are this webhook itself."""


class Mutation:
    """Mutates the objects of admissions by the mutators in force. For one thread."""

    def __init__(
        self,
        serving: Serving,
        options: MutationOptions,
        registry: Registry,
        log: Logger,
        namespaces: NamespaceReader | None = None,
        recorder: MutationRecorder | None = None,
    ) -> None:
        """``recorder`` takes what mutators did, would do and could not."""
        self._serving = serving
        self._options = options
        self._registry = registry
        self._namespaces = namespaces
        self._telling = MutationTelling(
            registry,
            log,
            serving.fights,
            recorder,
            on_error=options.on_error,
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
        """Answer a request, or say what it needs first, or why there is no answer."""
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
        return self._begin(request, revision, received_at, received_at + seconds)

    def _begin(
        self, request: AdmissionRequest, revision: Revision, received_at: float, until: float
    ) -> Outcome:
        obj = request.object
        if obj is None or not text(obj, "kind"):
            message = "couldn't get version/kind; json parse error: the request has no object"
            return self._counted("error", received_at, verdict.errored(request.uid, 500, message))
        is_namespace = request.kind.group_kind == ("", "Namespace")
        place = name_of(obj) if is_namespace else request.namespace
        if revision.is_excluded_from_mutation(place):
            message = "Namespace is set to be ignored by Gatekeeper config"
            return self._counted("skip", received_at, verdict.allowed(request.uid, message))
        # What a mutator adds to an object that goes would be reviewed, and may not be changeable.
        concerned = revision.mutations.concerns(gvk_of(obj), request.operation)
        if not concerned or only_releases(request):
            response = verdict.allowed(request.uid, NOT_MUTATED)
            return self._counted("success", received_at, response)
        if is_namespace:
            return self._mutate(request, obj, revision, received_at, until, (obj, ""))
        if not place:
            return self._mutate(request, obj, revision, received_at, until, (None, ""))
        known = revision.snapshot.namespaces.get(place)
        if known is None and self._namespaces is not None:
            left = until - time.monotonic()
            asked = self._namespaces.read(place, left)
            return Pending(
                preparation.finished([asked], left),
                lambda: self._resume(request, obj, revision, received_at, until, asked),
                request.api_version,
            )
        return self._mutate(request, obj, revision, received_at, until, (known, place))

    def _resume(
        self,
        request: AdmissionRequest,
        obj: dict[str, Any],
        revision: Revision,
        received_at: float,
        until: float,
        asked: Future[NamespaceAnswer],
    ) -> Outcome:
        """Go on with the Namespace that was asked for."""
        name = request.namespace
        if not asked.done():
            return Unanswerable(504, "deadline", f"Namespace {name} was not read in time")
        answer = asked.result()
        if answer.fault:
            return Unanswerable(500, "namespace", f"Namespace not read: {answer.fault}")
        if answer.document is None:
            message = f'namespaces "{name}" not found'
            return self._counted("error", received_at, verdict.errored(request.uid, 500, message))
        return self._mutate(request, obj, revision, received_at, until, (answer.document, name))

    def _mutate(
        self,
        request: AdmissionRequest,
        obj: dict[str, Any],
        revision: Revision,
        received_at: float,
        until: float,
        namespace: tuple[Mapping[str, Any] | None, str],
    ) -> Outcome:
        """Mutate, with the Namespace and the name of the one that the object counts as being in."""
        context = Context(request.operation, *namespace, request.username)
        mutations, gvk = revision.mutations, gvk_of(obj)
        times = received_at, time.monotonic()
        try:
            mutated = mutations.mutate(
                obj, context, on_error=self._options.on_error, until=until, gvk=gvk
            )
            patch = _patch_of(obj, mutated)
            response = self._answer(request, mutated, self._annotated(obj, mutated, patch))
        except OutOfTime as error:
            self._iterations["false"].observe(error.iterations)
            return Unanswerable(504, "deadline", str(error))
        except MutationError as error:
            response = self._failed(request, error)
            reviewed = MutationReviewed(request, None, NO_PATCH, None, times)
        else:
            preview = None
            if mutations.preview is not None:
                final = resolved(mutated, {})
                preview = previewed(mutations, obj, final, context, gvk, until)
            reviewed = MutationReviewed(request, mutated, patch, preview, times)
        response = self._telling.answered(reviewed, response)
        status = "success" if response.allowed else "error"
        return self._counted(status, received_at, response)

    def _annotated(self, obj: dict[str, Any], mutated: Mutated, patch: Patch) -> Patch:
        """The patch with the annotations that name who changed the object, where they are on."""
        if not self._options.annotations or not patch:
            return patch
        final = resolved(mutated, {})
        return _between(obj, annotated(final, mutated.passes, id_for(mutated.passes)), mutated)

    def _answer(
        self, request: AdmissionRequest, mutated: Mutated, patch: Patch
    ) -> AdmissionResponse:
        self._iterations["true"].observe(mutated.iterations)
        if patch:
            response = AdmissionResponse(request.uid, allowed=True, patch=patch.base64)
        else:
            response = verdict.allowed(request.uid, NOT_MUTATED)
        for name, fault in mutated.skipped.items():
            shown = f"mutator {name} is not applied: {fault}"
            response = verdict.with_notice(response, shown)
        return response

    def _failed(self, request: AdmissionRequest, error: MutationError) -> AdmissionResponse:
        """Refuse the request; or let it go as it came, where no single mutator can be left out."""
        self._iterations["false"].observe(error.iterations)
        self._telling.skipped(request, error.mutator, str(error))
        if self._options.on_error == "skip" and isinstance(error, NotConverging):
            response = verdict.allowed(request.uid, NOT_MUTATED)
            return verdict.with_notice(response, f"no mutator is applied: {error}")
        return verdict.errored(request.uid, 500, str(error))

    def _counted(
        self, status: str, received_at: float, response: AdmissionResponse
    ) -> AdmissionResponse:
        self._registry.count(MUTATION_REQUESTS, status)
        self._seconds[status].observe(time.monotonic() - received_at)
        return response


def _patch_of(obj: dict[str, Any], mutated: Mutated) -> Patch:
    if not mutated.iterations or mutated.patch:
        return mutated.patch
    # No provider is asked yet: each placeholder is what its failure policy says.
    return _between(obj, resolved(mutated, {}), mutated)


def _between(obj: dict[str, Any], final: dict[str, Any], mutated: Mutated) -> Patch:
    try:
        return patch_between(obj, final)
    except PatchTooLarge as error:
        raise MutationError(str(error), mutated.iterations) from None
