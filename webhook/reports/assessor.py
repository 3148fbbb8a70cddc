"""Reviews a resource for its report with the audit's own review, so that both agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import namespace_of
from webhook.audit.namespaces import Namespaces
from webhook.audit.reviewer import Reviewer
from webhook.constraint import enforcement
from webhook.constraint.review import AugmentedObject
from webhook.constraint.selection import Selection, about, select
from webhook.mutation.drift import OPERATION
from webhook.reports.admitted import admission_only, state_of
from webhook.reports.finding import Assessment, Finding, Policy, is_reportable
from webhook.reports.results import Descriptions, findings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.gvk import GroupKind, GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.audit.scope import Scope
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.mutation.drift import Drift
    from webhook.reports.finding import ReportResult, ReportSubject


class ReportedFindings:
    """The reported findings of a review."""

    def __init__(self, stored: frozenset[ReportResult], results_max: int | None) -> None:
        self._stored = stored
        self._results_max = results_max
        self._descriptions = Descriptions()

    def of(
        self,
        responses: Responses,
        snapshot: Snapshot,
        obj: Mapping[str, Any],
        drifts: Iterable[Drift] = (),
    ) -> tuple[Finding, ...]:
        """Returns the findings of an object's review, which must have a verdict."""
        selected = Selection((), ())
        if self._stored & {"pass", "skip"}:
            namespace = snapshot.namespaces.get(namespace_of(obj))
            selected = select(snapshot, AugmentedObject(dict(obj), namespace), enforcement.AUDIT)
        return findings_of(
            responses,
            snapshot,
            self._descriptions,
            self._stored,
            selected,
            self._results_max,
            drifts=drifts,
        )


class SnapshotAssessor:
    """Reviews resources by the policies in force. Used on one event loop."""

    def __init__(
        self,
        client: ClusterClient,
        scope: Callable[[], Scope | None],
        findings: ReportedFindings,
        log: Logger,
        limits: Callable[[], Limits],
        ask: AskAsync | None = None,
    ) -> None:
        """``limits`` returns the limits of a review that begins now; ``ask`` calls providers."""
        self._ask = ask
        self._client = client
        self._scope = scope
        self._findings = findings
        self._log = log
        self._limits = limits
        self._reviewer: tuple[Scope, Reviewer] | None = None

    async def assess(self, resource: Resource, obj: Object) -> Assessment | None:
        """Returns the findings; None before there are policies, and after a timeout.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        scope = self._scope()
        if scope is None:
            return None
        kind = resource.gvk.group_kind
        policies = policies_about(scope.snapshot, kind) | _others_about(scope, resource.gvk)
        place = obj["metadata"]["name"] if kind == ("", "Namespace") else namespace_of(obj)
        if not is_reportable(kind) or scope.is_excluded(place):
            return Assessment((), policies)
        responses = await self._reviewer_of(scope).review(resource, obj)
        if responses is None:
            return Assessment((), policies)
        if responses.deadline_exceeded:
            return None
        drifts = await self._reviewer_of(scope).drifts(obj)
        findings = self._findings.of(responses, scope.snapshot, obj, drifts)
        only = admission_only(scope.snapshot, kind)
        return Assessment(findings, policies, state_of(obj) if only else "", only)

    def policies(self, subject: ReportSubject) -> Mapping[Policy, str]:
        """Returns the policies that may have results for this kind's resources, with their UIDs."""
        scope = self._scope()
        if scope is None:
            return {}
        policies = policies_about(scope.snapshot, subject.group_kind)
        return policies | _others_about(scope, subject.gvk)

    def _reviewer_of(self, scope: Scope) -> Reviewer:
        """Returns the reviewer of a revision: it caches Namespaces, and logged faults."""
        if self._reviewer is None or self._reviewer[0] != scope:
            namespaces = Namespaces(self._client, scope.snapshot.namespaces)
            reviewer = Reviewer(scope, namespaces, self._log, self._limits, self._ask)
            self._reviewer = scope, reviewer
        return self._reviewer[1]


def _others_about(scope: Scope, gvk: GroupVersionKind) -> dict[Policy, str]:
    """Returns which other policies may find something in objects of a kind; reports are not owned by them.

    That is mutators that may change them, and policies of others.
    """
    mutations = scope.mutations.preview or scope.mutations
    plan = mutations.plan(gvk, OPERATION) if scope.reports_drift else None
    others = () if plan is None else plan.mutators
    policies = {Policy(*item.id): "" for item in others}
    for stage in scope.policies.foreign.stages:
        if stage.concerns(gvk):
            policies |= {Policy(*key): "" for key in stage.keys}
    return policies


def policies_about(snapshot: Snapshot, kind: GroupKind) -> dict[Policy, str]:
    """The constraints that may match a kind, and their templates, with the constraints' UIDs.

    Those that only admissions enforce, too.
    """
    policies: dict[Policy, str] = {}
    for point in (enforcement.AUDIT, enforcement.WEBHOOK):
        for constraint in about(snapshot, kind, point):
            uid = (constraint.document.get("metadata") or {}).get("uid", "")
            policies[Policy(constraint.kind, constraint.name)] = uid
            policies[Policy(constraint.kind, "")] = ""
    return policies
