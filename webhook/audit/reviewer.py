"""Reviews one existing object as in an admission: shared by admission and audit.

The request is Gatekeeper's: no operation and no user, the unchanged object, its Namespace, source
``Original``. Unlike Gatekeeper's it has the plural of the kind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.constraint import enforcement
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject
from webhook.external_data.exchange import (
    AnswersOfOne,
    AnswersSoFar,
    AskAsync,
    ProviderAnswers,
    ProviderRequest,
    ProviderResponse,
    Unanswered,
    no_answers,
    without_providers,
)
from webhook.mutation.drift import OPERATION, Drift, drifts_of
from webhook.mutation.errors import MutationError
from webhook.mutation.mutator import UNMUTATED_GROUPS
from webhook.review.loops import NamespaceGone, review_async
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.api.resource import Resource
    from webhook.audit.namespaces import Namespaces
    from webhook.audit.scope import Scope
    from webhook.cluster.store import Object
    from webhook.constraint.result import Responses
    from webhook.log import Logger

_FoundT = TypeVar("_FoundT")


class AuditLimits:
    """Gives the limits of a review that begins now."""

    def __init__(
        self,
        review_seconds: float,
        evaluation_seconds: float,
        *,
        rest: Callable[[float], None] | None,
    ) -> None:
        """``review_seconds`` and ``evaluation_seconds`` are an admission's limits.

        ``rest`` gives way to admissions, if there are any.
        """
        self._seconds = review_seconds
        self._budget = Budget.of(evaluation_seconds * LIMIT_MULTIPLE, rest=rest, guard=Guard())

    def __call__(self) -> Limits:
        """The deadline counts from now."""
        return Limits(deadline=time.monotonic() + self._seconds, budget=self._budget)


LIMIT_MULTIPLE: Final = 10
"""An evaluation's limit as a multiple of an admission's: no request waits for it. A slower template
is suspended for the audit only."""


REQUESTS_AT_ONCE: Final = 128
"""Concurrent requests to providers: half of a provider's limit stays for admissions."""


async def set_aside(requests: tuple[ProviderRequest, ...]) -> ProviderAnswers:
    """Calls no provider: raises the missing requests to the caller."""
    raise Unanswered(requests)


class Reviewer:
    """Reviews objects for one sweep, or by one revision of policies."""

    def __init__(
        self,
        scope: Scope,
        namespaces: Namespaces,
        log: Logger,
        limits: Callable[[], Limits],
        ask: AskAsync | None = None,
    ) -> None:
        """``limits`` returns the limits of a review that begins now; ``ask`` calls providers."""
        self._ask = ask
        self._scope = scope
        self._policies = scope.policies
        self._namespaces = namespaces
        self._log = log
        self._limits = limits
        self._logged: set[str] = set()
        self.reviewed = 0
        self.faulty_templates: set[str] = set()
        """Kinds of constraints whose template had no verdict on some object."""
        self.undecided: set[tuple[str, str]] = set()
        """Constraints that matched some object and could not be decided, by kind and name."""

    async def review(self, resource: Resource, obj: Object) -> Responses | None:
        """Reviews the object by every constraint; None if it was deleted with its Namespace.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable` if the Namespace cannot be read.
        """
        return await self._answered(lambda answers: self.attempt(resource, obj, answers))

    async def _answered(self, attempt: Callable[[AnswersSoFar], Awaitable[_FoundT]]) -> _FoundT:
        """Retries with more answers of providers, until none is missing."""
        answers = no_answers()
        while True:
            try:
                return await attempt(answers)
            except Unanswered as wanting:
                requests = wanting.requests
            answers = await self.ask(answers, requests)

    async def ask(self, known: AnswersSoFar, requests: Sequence[ProviderRequest]) -> AnswersSoFar:
        """Calls providers for one more round, in batches."""
        answers: dict[ProviderRequest, ProviderResponse] = {}
        for at in range(0, len(requests), REQUESTS_AT_ONCE):
            some = tuple(requests[at : at + REQUESTS_AT_ONCE])
            answers |= without_providers(some) if self._ask is None else await self._ask(some)
        return known.more(answers)

    async def attempt(
        self, resource: Resource, obj: Object, answers: AnswersSoFar
    ) -> Responses | None:
        """Reviews like :meth:`review`, with the answers so far.

        Raises :class:`~webhook.external_data.exchange.Unanswered` for more.
        """
        subject = Subject(
            AugmentedObject(obj, None, "", "Original", resource.plural),
            point=enforcement.AUDIT,
            limits=self._limits(),
            # The sweep skips objects that Config excludes; stored objects are already mutated.
            excludes=False,
            mutates=False,
            reads_namespace=True,
            on_expansion_error="skip",
            answers=AnswersOfOne(answers.answers),
            rounds=answers.rounds,
            moment=answers.moment,
        )
        try:
            outcome = await review_async(self._policies, subject, self._namespaces.get, set_aside)
        except NamespaceGone:
            return None
        responses = outcome.responses
        if responses.answers:
            responses = responses._replace(answers=dict(responses.answers))
        if outcome.unexpanded:
            # As in an admission: without an expansion its own results stay.
            self._log_once(f"expansion: {outcome.unexpanded}", outcome.unexpanded, obj)
        self.reviewed += 1
        for item in responses.undecided:
            self.undecided.add(item.constraint.key)
            self._log_once(f"{item.constraint.key} {item.cause}", str(item), obj)
        for fault in responses.faults:
            self.faulty_templates.add(fault.kind)
            self._log_once(f"{fault.kind}: no verdict", str(fault), obj)
        return responses

    async def drifts(self, obj: Object) -> tuple[Drift, ...]:
        """Returns the changes of mutators to the object, in the order of their names.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable` if its Namespace cannot be read.
        """
        return await self._answered(lambda answers: self.attempt_drifts(obj, answers))

    async def attempt_drifts(
        self, obj: Object, answers: AnswersSoFar, plural: str = ""
    ) -> tuple[Drift, ...]:
        """Computes like :meth:`drifts`, with the answers so far.

        ``plural`` is the resource, if known. Raises
        :class:`~webhook.external_data.exchange.Unanswered` for more.
        """
        scope, gvk = self._scope, gvk_of(obj)
        foreign = scope.policies.foreign
        if not scope.reports_drift or gvk.group in UNMUTATED_GROUPS:
            return ()
        is_namespace = gvk.group_kind == ("", "Namespace")
        place = namespace_of(obj)
        namespace: Mapping[str, Any] | None = obj if is_namespace else None
        if place and not is_namespace:
            namespace = await self._namespaces.get(place)
        drifts: list[Drift] = []
        is_unmutated = scope.is_unmutated(name_of(obj) if is_namespace else place)
        if foreign.may_change(gvk):
            written = AugmentedObject(obj, namespace, OPERATION, "Original", plural)
            subject = Subject(written, point=enforcement.AUDIT, limits=self._limits())
            for stage in foreign.stages:
                # Config excludes namespaces from webhooks only.
                if not is_unmutated or getattr(stage, "mutates", "") == "API server":
                    drifts += stage.drifts(subject, scope.snapshot)
        if is_unmutated:
            return tuple(drifts)
        try:
            known = None if self._ask is None else answers.known
            return (*drifts, *drifts_of(scope.mutations, obj, namespace, place, known))
        except MutationError as error:
            self._log_once(f"drift: {error}", str(error), obj)
            return tuple(drifts)

    def _log_once(self, event: str, error: str, obj: Object) -> None:
        """Logs a fault of a policy once for a sweep: it may be equal on each object."""
        if event not in self._logged and len(self._logged) < 100:  # a bound of memory
            self._logged.add(event)
            self._log.warning(
                "some policies gave no verdict on an object",
                error=error,
                resource_kind=obj.get("kind"),
                resource_namespace=namespace_of(obj),
                resource_name=name_of(obj),
            )
