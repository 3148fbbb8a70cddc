"""``waddle except --baseline``: makes exceptions of the violations in a cluster."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.config import AUDIT_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import GroupVersionKind, labels_of, name_of, namespace_of, split_group_version
from webhook.api.shapes import object_of, objects_of
from webhook.audit.kinds import undecided
from webhook.audit.sink import Audited, AuditSink
from webhook.cli import exit_codes
from webhook.cli.audit.report import missing
from webhook.cli.audit.run import AuditOutcome, Request, audit
from webhook.cli.cluster_access import ask_cluster, list_objects
from webhook.cli.cluster_policies import list_kind
from webhook.cli.except_.unlisted import review_unlisted
from webhook.cli.formats.document import as_stream
from webhook.cli.terminal import complain, write
from webhook.cluster.errors import ApiError
from webhook.constraint import enforcement
from webhook.constraint.match import for_process
from webhook.exceptions.baseline import (
    Owner,
    StandingViolation,
    baseline,
    closed,
    implied,
    naming_owner,
    selector_labels,
)
from webhook.exceptions.reading import IMPLIED
from webhook.policy_kinds.table import EXPANSION_TEMPLATES
from webhook.printable import quantity
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.audit.sink import SweepStart
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.constraint import Constraint
    from webhook.exceptions.writing import ExceptionTerms
    from webhook.review.policy_set import PolicySet

OWNERS_MAX: Final = 8
"""The most controllers in a chain: a Pod's ReplicaSet, its Deployment, and a margin."""

_CLAIM: Final = ("", "PersistentVolumeClaim")
_STATEFUL_SET: Final = GroupVersionKind("apps", "v1", "StatefulSet")


class Baseline(NamedTuple):
    """The cluster to audit, and the part of it that becomes exceptions.

    ``namespace`` is empty for all, ``only`` names the constraints, none for all; ``waddle`` is
    Waddle's own namespace.
    """

    kubeconfig: str | None
    context: str | None
    waddle: str
    namespace: str
    only: frozenset[str]


class _Controller(NamedTuple):
    gvk: GroupVersionKind
    name: str


class _Listed(NamedTuple):
    """A violation as the audit saw it.

    ``own_labels`` are those of the object's own selector. ``implied_by`` is the ExpansionTemplate
    by which the object implies the violating one; empty for itself.
    """

    violation: StandingViolation
    controller: _Controller | None
    own_labels: tuple[tuple[str, str], ...]
    implied_by: str


@dataclass(slots=True)
class _Violations(AuditSink):
    """Collects violations with their objects' controllers: a sink of the audit."""

    baseline: Baseline
    listed: list[_Listed] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """The parts of constraints that the webhook enforces and the audit does not see."""
    excluded: set[tuple[GroupVersionKind, str]] = field(default_factory=set)
    """The kinds and namespaces of objects that Config excludes from the audit."""

    async def start(self, start: SweepStart) -> None:
        """Keeps what the audit will not see."""
        for constraint in start.snapshot.constraints:
            if not self.baseline.only or constraint.name in self.baseline.only:
                self.unseen += _unseen(constraint)

    async def audited(self, audited: Audited) -> None:
        """Keeps the violations in the baseline's part; each constraint once for an object."""
        place, name = audited.identity.namespace, audited.identity.name
        if self.baseline.namespace and place != self.baseline.namespace:
            return
        if audited.excluded:
            self.excluded.add((audited.identity.gvk, place))
        gvk, obj, seen = audited.identity.gvk, audited.object, set()
        for result in audited.responses.results:
            constraint, template = result.constraint, _expansion_of(result.msg)
            if (
                result.cause != "violation"
                or (constraint.key, template) in seen
                or (self.baseline.only and constraint.name not in self.baseline.only)
            ):
                continue
            seen.add((constraint.key, template))
            violation = StandingViolation(
                constraint, gvk.group, gvk.kind, place, name, labels=labels_of(obj)
            )
            self.listed.append(
                _Listed(violation, _controller_of(obj), selector_labels(obj), template)
            )


def _unseen(constraint: Constraint) -> Iterator[str]:
    title, points = "/".join(constraint.key), constraint.points
    if enforcement.WEBHOOK in points and enforcement.AUDIT not in points:
        yield f"not audited: {title}: it has no action at {enforcement.AUDIT}"
    match = object_of(object_of(constraint.document.get("spec")).get("match"))
    audited, admitted = (for_process(match, name) for name in (AUDIT_PROCESS, WEBHOOK_PROCESS))
    if (excluded := audited.get("excludedNamespaces")) and "excludedNamespaces" not in admitted:
        place = ", ".join(excluded)
        yield f"not audited in {place}: {title}: its processes leave it out of the audit alone"


def _unseen_by_config(sink: _Violations, policies: PolicySet) -> Iterator[str]:
    """Yields the constraints for namespaces that Config excludes from the audit alone."""
    lines = set()
    for gvk, place in sink.excluded:
        if policies.exclusions.webhook(place):
            continue
        keys = undecided(policies.snapshot, policies.expansion, [gvk], ())
        for constraint in policies.snapshot.constraints:
            match = constraint.match
            is_meant = not sink.baseline.only or constraint.name in sink.baseline.only
            if constraint.key not in keys or not is_meant or match is None:
                continue
            if match.admits_namespace is None or match.admits_namespace(place):
                title = "/".join(constraint.key)
                lines.add(
                    f"not audited in {place}: {title}: Config excludes it from the audit alone"
                )
    yield from sorted(lines)


def _expansion_of(message: str) -> str:
    """Returns the ExpansionTemplate in the message of an implied violation; else nothing."""
    if not message.startswith(IMPLIED):
        return ""
    return message.removeprefix(IMPLIED).partition("] ")[0]


def write_baseline(part: Baseline, terms: ExceptionTerms) -> int:
    """Audits, and writes the exceptions; returns the exit code."""
    outcome, violations, unseen = ask_cluster(
        part.kubeconfig, part.context, lambda client: _audited(client, part)
    )
    lines = [*missing(outcome), *unseen]
    is_whole = outcome.whole and not unseen
    for line in lines:
        complain(line)
    for name in closed(violations):
        complain(f"{name} allows no exceptions (waddle.dev/exceptions), so its violations remain")
    documents = baseline(violations, terms)
    if documents:
        write(as_stream(documents, () if is_whole else lines))
        until = f"{quantity(len(documents), 'exception')} until {terms.expires}"
        complain(until if is_whole else f"{until}: the baseline is incomplete")
    unknown = sorted(part.only - {name for _, name in outcome.totals})
    for name in unknown:
        complain(f"--constraint {name}: the cluster has no such constraint")
    if unknown or not is_whole:
        return exit_codes.UNKNOWN
    if not documents:
        complain("no violation was found, so there is nothing to excuse")
        return exit_codes.NO
    return exit_codes.OK


async def _audited(
    client: ClusterClient, part: Baseline
) -> tuple[AuditOutcome, list[StandingViolation], list[str]]:
    """Returns the audit's outcome, its violations, and what it could not see."""
    sink = _Violations(part)
    outcome = await audit(client, Request(part.waddle), sink)
    assert outcome.policies is not None, "an audit reads its policies first"
    unseen = await review_unlisted(client, outcome.policies, part.namespace, sink)
    owners = _Owners(client)
    generated = await _generated(client) if any(item.implied_by for item in sink.listed) else {}
    violations = []
    for violation, controller, own_labels, implied_by in sink.listed:
        chain = [] if controller is None else await owners.of(controller, violation.namespace)
        owner = naming_owner(violation.name, chain) if chain else None
        if (violation.group, violation.kind) == _CLAIM:
            owner = await owners.of_claim(violation.namespace, violation.name) or owner
        violations.append(violation._replace(owner=owner))
        if violation.namespace and (kind := generated.get(implied_by)):
            itself = Owner(violation.group, violation.kind, violation.name, own_labels)
            violations.append(implied(violation, [itself, *chain], kind))
    unlisted = [f"no right to list owners: {gvk}" for gvk in sorted(owners.unlisted)]
    return (
        outcome,
        violations,
        [*sink.unseen, *_unseen_by_config(sink, outcome.policies), *unseen, *unlisted],
    )


async def _generated(client: ClusterClient) -> dict[str, tuple[str, str]]:
    """Returns the group and kind that each ExpansionTemplate makes."""
    kinds = {}
    for document in await list_objects(client, EXPANSION_TEMPLATES.resource):
        gvk = object_of(object_of(document.get("spec")).get("generatedGVK"))
        kinds[name_of(document)] = (str(gvk.get("group") or ""), str(gvk.get("kind") or ""))
    return kinds


class _Owners:
    """Finds the controllers of objects; each kind is listed once, on first use."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._kinds: dict[GroupVersionKind, dict[tuple[str, str], _Known]] = {}
        self.unlisted: set[GroupVersionKind] = set()
        """The kinds that may not be listed: the owners of their objects are not known."""

    async def of(self, controller: _Controller, namespace: str) -> list[Owner]:
        """Return an object's controller, the controller's own, and so on to the topmost."""
        owners = []
        for _ in range(OWNERS_MAX):
            of_kind = await self._of_kind(controller.gvk)
            places = ((namespace, controller.name), ("", controller.name))
            known = next((of_kind[place] for place in places if place in of_kind), None)
            labels = () if known is None else known.labels
            gvk = controller.gvk
            owners.append(Owner(gvk.group, gvk.kind, controller.name, labels))
            if known is None or known.controller is None:
                break  # the topmost; or deleted, or may not be listed: the chain ends here
            controller = known.controller
        return owners

    async def of_claim(self, namespace: str, name: str) -> Owner | None:
        """Return the StatefulSet of a PersistentVolumeClaim, by the beginning of its claims' names.

        None for a claim of any other origin. A StatefulSet names its claims by template, its own
        name and an ordinal, and most are not owned by it, so that they outlive it.
        """
        beginning, _, ordinal = name.rpartition("-")
        if not ordinal.isdecimal():
            return None
        for (place, owner), known in (await self._of_kind(_STATEFUL_SET)).items():
            if place == namespace and beginning in {f"{claim}-{owner}" for claim in known.claims}:
                return Owner(_STATEFUL_SET.group, _STATEFUL_SET.kind, beginning, known.labels)
        return None

    async def _of_kind(self, gvk: GroupVersionKind) -> dict[tuple[str, str], _Known]:
        if gvk not in self._kinds:
            try:
                objects = await list_kind(self._client, gvk)
            except ApiError as error:
                if not error.is_forbidden:
                    raise
                self.unlisted.add(gvk)
                objects = []
            self._kinds[gvk] = {
                (namespace_of(item), name_of(item)): _Known(
                    _controller_of(item), selector_labels(item), _claims_of(item)
                )
                for item in objects
            }
        return self._kinds[gvk]


class _Known(NamedTuple):
    controller: _Controller | None
    labels: tuple[tuple[str, str], ...]
    claims: tuple[str, ...]
    """The names of its volume claim templates."""


def _claims_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    templates = objects_of(object_of(document.get("spec")).get("volumeClaimTemplates"))
    return tuple(map(name_of, templates))


def _controller_of(document: Mapping[str, Any]) -> _Controller | None:
    """Returns the controller that an object's owner references name."""
    for owner in objects_of((document.get("metadata") or {}).get("ownerReferences")):
        if owner.get("controller") is True:
            group, version = split_group_version(owner.get("apiVersion"))
            gvk = GroupVersionKind(group, version, str(owner.get("kind", "")))
            return _Controller(gvk, str(owner.get("name", "")))
    return None
