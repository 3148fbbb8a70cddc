"""Builds a cluster's picture from its objects: pure, and safe for any content."""

from __future__ import annotations

import sys
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of, text
from webhook.api.revision import InvalidRevision, PolicyRevision, read_revision
from webhook.api.shapes import integer_of, object_of, objects_of, status_of
from webhook.api.timestamp import seconds_of
from webhook.console.exception_states import shown_exception
from webhook.console.foreign import ForeignRows
from webhook.console.picture import (
    Picture,
    PictureState,
    ReplicaPod,
    ReplicaStanding,
    ShownCertificate,
    ShownPolicy,
    ShownViolation,
)
from webhook.console.replica_notes import AWAITED
from webhook.console.sorts import action_of, category_of, described
from webhook.console.violations import gravity
from webhook.console.visitor import Right
from webhook.constraint.rollout import read_record, stage_of
from webhook.controllers.status.convergence import Convergence, by_subject, converge, subject_for
from webhook.controllers.status.synced_kinds import SyncFacts
from webhook.policies.advice import advice_on_document
from webhook.policies.request_coverage import is_judged, read_coverage
from webhook.policy_kinds.table import EXCEPTIONS
from webhook.replicas.pods import replica
from webhook.reports.report import finding_in, of_source, subject_in
from webhook.values import dataclass
from webhook.webhook_rules.coverage import REASON, CoverageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.resource import Resource
    from webhook.reports.finding import ReportSubject

    Object = dict[str, Any]

BAD: Final = frozenset({"fail", "warn", "error"})
ROWS: Final = "rows"
"""The field of what is kept of a report."""

FROM_STATUSES: Final = (
    "violations are those in the statuses of constraints, which hold the first few of each: "
    "no policy report has any"
)
NOWHERE: Final = "no audit has published any, and no policy report has any"


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects of a cluster at one moment. ``reports`` is None where none are served."""

    policies: Sequence[Object] = ()
    statuses: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    revisions: Sequence[Object] = ()
    reports: Sequence[Object] | None = None
    foreign: Sequence[Object] = ()
    """The API server's own policies, and Kyverno's."""
    around: Sequence[Object] = ()
    """The objects that decide which policies a request reaches: configurations, Config and
    Namespaces."""
    sync_sources: Sequence[Object] = ()
    """The Config and SyncSets."""
    around_read: Sequence[str] = ()
    """The kinds of configurations that have been listed."""
    kinds: Sequence[Mapping[str, Any]] = ()
    trouble: Sequence[str] = ()
    certificates: Sequence[ShownCertificate] = ()
    carriers: Sequence[Right] = ()
    version: str = ""
    namespace: str = ""
    context: str = ""
    place: str = ""
    taken: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The faults that replicas report, by their Pods' names."""


def picture_of(objects: ClusterObjects, foreign: ForeignRows | None = None) -> Picture:
    """Returns the picture of these objects; ``foreign`` caches compiled foreign policies."""
    replicas = sorted(
        (pod for pod in map(replica, objects.pods) if not pod.finished), key=lambda pod: pod.name
    )
    statuses = by_subject(objects.statuses)
    revisions, unreadable = _revisions(objects.revisions)
    coverage = read_coverage(
        [*objects.policies, *objects.around], objects.namespace, objects.around_read
    )
    policies, standings = [], []
    for document in objects.policies:
        category = category_of(document)
        if category is None:
            continue
        if category == EXCEPTIONS.name:
            policies.append(shown_exception(document))
            continue
        kept = revisions.get(text(document, "metadata", "uid"), ())
        converged = converge(document, statuses.get(subject_for(document), ()), replicas, kept)
        standings.append(converged)
        asking = coverage(document) if is_judged(document) else None
        policies.append(_policy(document, category, converged, revisions, asking))
    policies += (foreign or ForeignRows()).shown(objects.foreign, coverage)
    policies = described(sorted(policies, key=lambda item: (item.category, *item.key)))
    by_key = {item.key: item for item in policies}
    violations, trouble, why = _violations(objects, by_key)
    return Picture(
        over="cluster",
        place=objects.place,
        version=objects.version,
        taken=objects.taken,
        policies=tuple(policies),
        violations=violations,
        why_no_violations=why,
        pods=noted(
            (ReplicaPod(pod.name, pod.ready, pod.terminating) for pod in replicas), objects.notes
        ),
        trouble=(*objects.trouble, *trouble),
        faults=tuple(unreadable),
        kinds=tuple(objects.kinds),
        certificates=tuple(objects.certificates),
        namespace=objects.namespace,
        context=objects.context,
        carriers=tuple(objects.carriers),
        sync=SyncFacts.of(objects.sync_sources, objects.pods, standings),
        by_key=by_key,
    )


def noted(
    pods: Iterable[ReplicaPod], notes: Mapping[str, tuple[str, ...]]
) -> tuple[ReplicaPod, ...]:
    """Returns the replicas with the faults that they report, by their Pods' names."""
    return tuple(replace(pod, notes=notes.get(pod.name, (AWAITED,))) for pod in pods)


def _policy(
    document: Object,
    category: Any,
    converged: Convergence,
    revisions: Mapping[str, Sequence[PolicyRevision]],
    asking: CoverageState | None,
) -> ShownPolicy:
    metadata = object_of(document["metadata"])
    counted = converged.counted
    state, gaps = _state(converged), "" if asking is None else asking.text
    if state == "active" and asking is not None and asking.extent == "not at all":
        state = "not asked"
    record = read_record(document.get("status")) if category == "constraint" else None
    return ShownPolicy(
        category,
        gvk_of(document).kind,
        name_of(document),
        document,
        state,
        action=(stage_of(document) or action_of(document)) if category == "constraint" else "",
        generation=integer_of(metadata.get("generation")),
        resource_version=text(metadata, "resourceVersion"),
        audited=_audited(document) if category == "constraint" else 0,
        faults=(
            *dict.fromkeys(filter(None, (standing.fault for standing in converged.standings))),
            *((f"{REASON}: {gaps}",) if state == "not asked" else ()),
        ),
        advice=(
            *(
                (problem.message for problem in advice_on_document(document))
                if category == "constraint"
                else ()
            ),
            *(() if asking is None else asking.notes),
        ),
        standings=tuple(
            ReplicaStanding(
                standing.replica.name,
                standing.state,
                standing.active_generation,
                standing.since,
                standing.reason,
            )
            for standing in converged.standings
        ),
        enforcing=sum(standing.state == "enforced" for standing in counted),
        counted=len(counted),
        rollout=None if record is None else record.document(),
        revisions=tuple(revisions.get(text(metadata, "uid"), ())),
    )


def _audited(document: Object) -> int:
    try:
        return int(seconds_of(text(status_of(document), "auditTimestamp")))
    except ValueError:
        return 0


def _state(converged: Convergence) -> PictureState:
    states = [standing.state for standing in converged.counted]
    if converged.is_deleted or all(item.is_unreported for item in converged.counted):
        return "pending"
    if all(state in {"enforced", "previewed"} for state in states):
        return "degraded" if any(item.overrun for item in converged.counted) else "active"
    wrong = [
        standing for standing in converged.counted if standing.state in {"error", "unenforced"}
    ]
    if wrong and not all((standing.active_generation or 0) > 0 for standing in wrong):
        return "error"
    return "degraded"


def _revisions(
    objects: Iterable[Object],
) -> tuple[dict[str, list[PolicyRevision]], list[str]]:
    """Returns stored revisions by the UID of their subject, the newest first; and invalid ones."""
    by_uid: dict[str, list[PolicyRevision]] = {}
    unreadable = []
    for item in objects:
        try:
            revision = read_revision(item)
        except InvalidRevision as error:
            unreadable.append(str(error))
        else:
            by_uid.setdefault(revision.uid, []).append(revision)
    for listed in by_uid.values():
        listed.sort(key=lambda kept: -kept.generation)
    return by_uid, unreadable


def _violations(
    objects: ClusterObjects, policies: Mapping[tuple[str, str], ShownPolicy]
) -> tuple[tuple[ShownViolation, ...] | None, tuple[str, ...], str]:
    """Returns violations of reports, else of statuses; gaps; and why there are none.

    Reports may be served and never be written: other products bring their CRDs, too.
    """
    rows = [row for report in objects.reports or () for row in report[ROWS]]
    gaps: tuple[str, ...] = ()
    if not rows:
        constraints = [policy for policy in objects.policies if category_of(policy) == "constraint"]
        audited = any("totalViolations" in status_of(constraint) for constraint in constraints)
        if not audited and not objects.reports:
            return None, (), NOWHERE
        rows = [row for constraint in constraints for row in _in_status(constraint, policies)]
        gaps = (FROM_STATUSES,) if rows else ()
    rows.sort(key=gravity)
    return tuple(rows), gaps, ""


def _in_status(
    document: Object, policies: Mapping[tuple[str, str], ShownPolicy]
) -> Iterable[ShownViolation]:
    key = gvk_of(document).kind, name_of(document)
    policy, severity = sys.intern("/".join(key)), policies[key].severity
    for item in objects_of(status_of(document).get("violations")):
        group, version = text(item, "group"), text(item, "version")
        yield ShownViolation(
            policy,
            text(item, "enforcementAction"),
            f"{group}/{version}" if group else version,
            text(item, "kind"),
            text(item, "namespace"),
            text(item, "name"),
            text(item, "message"),
            severity,
        )


@lru_cache(maxsize=10_000)
def carrier(group: str, plural: str, namespace: str) -> Right:
    """Returns the right to read the reports of a namespace; one shared value for all of them."""
    return Right(group, plural, namespace)


def kept_report(document: Object, resource: Resource) -> Object:
    """Return the kept part of a report: its identity, and its failures as rows, in little memory."""
    metadata = document["metadata"]
    right = carrier(resource.gvk.group, resource.plural, metadata.get("namespace", ""))
    rows = tuple(
        ShownViolation(
            sys.intern(f"{finding.policy}/{finding.rule}" if finding.rule else finding.policy),
            sys.intern(finding.action or finding.verdict),
            sys.intern(subject.gvk.group_version),
            sys.intern(subject.gvk.kind),
            sys.intern(subject.namespace),
            subject.name,
            sys.intern(finding.message),
            sys.intern(finding.severity),
            since=_since(result),
            carrier=right,
        )
        for result in of_source(document)["results"]
        if (finding := finding_in(result)).verdict in BAD
        for subject in _subjects(document, result)
    )
    kept = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "resourceVersion")
        if name in metadata
    }
    if "namespace" in kept:
        kept["namespace"] = sys.intern(kept["namespace"])
    return {"metadata": kept, ROWS: rows}


def _subjects(document: Object, result: Object) -> Iterable[ReportSubject]:
    scope = document.get("scope")
    return map(subject_in, [scope] if scope else result.get("resources") or ())


def _since(result: Object) -> int:
    """Returns the time of the first finding; repeated results keep it."""
    return integer_of(object_of(result.get("timestamp")).get("seconds"))


def newest(versions: Iterable[str]) -> str:
    """The greatest of resource versions, as the API server counts them; of others all."""
    known = [version for version in versions if version]
    if all(version.isascii() and version.isdigit() for version in known):
        return str(max(map(int, known), default=""))
    return ", ".join(sorted(set(known)))
