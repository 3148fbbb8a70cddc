"""Computes whether all replicas enforce an object, from its status objects and the Pods.

Waddle's webhook Pods count that are Ready, or terminating but not finished: an API server may still
have a connection to these. A starting replica answers no requests, and ``spec.replicas`` is only
the desired number. Objects and Pods are matched by UID, so a successor with the same name is never
mistaken for its predecessor (docs/adr/0013).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from webhook.api import pod_status
from webhook.api.gvk import text
from webhook.api.shapes import integer_of, is_deleted, objects_of, status_of, texts_of
from webhook.constraint import template
from webhook.controllers.status.context import WARNINGS
from webhook.controllers.status_kinds import LabelledSubject, subject_of
from webhook.policy_kinds.known import STATUS_KINDS, kind_of_document
from webhook.replicas.pods import WEBHOOK_OPERATION, Replica
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.pod_status import StatusKind
    from webhook.api.revision import PolicyRevision
    from webhook.api.revision_outcome import TrialOutcome


TEMPLATE_KIND: Final = template.KIND


OVERRUN: Final = (
    "evaluations exceed the budget, and requests that it matches can be refused (PolicyFault)"
)


ReplicaState: TypeAlias = Literal[
    "enforced",
    "terminating",
    "missing",
    "trying",
    "behind",
    "error",
    "unenforced",
    "rolledback",
    "previewed",
]


UNSEEN: Final[frozenset[ReplicaState]] = frozenset({"missing", "behind"})
"""The states of replicas that have not seen a generation, or wait for its trial."""


def status_kind_of(document: Mapping[str, Any]) -> StatusKind:
    """Returns the kind of the status objects about an object."""
    row = kind_of_document(document)
    return pod_status.CONSTRAINT if row is None or row.status is None else row.status


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one object at one replica."""

    replica: Replica
    state: ReplicaState
    observed_generation: int = 0
    active_generation: int | None = None
    active_digest: str = ""
    since: str = ""
    errors: tuple[Mapping[str, Any], ...] = ()
    action: str = ""
    """The action of the object at its stage of a roll-out."""
    overrun: str = ""
    """The message of its last overrun; empty if its evaluations keep to their budget."""
    warnings: tuple[str, ...] = ()
    """Warnings about the object's code, each with its place."""
    trial: TrialOutcome | None = None
    """The trial that the replica waits for."""
    is_enforcing: bool = True
    """Whether the replica evaluates the generation in force; not while it is suspended."""

    @property
    def generation_meanwhile(self) -> int:
        """Returns the generation that the replica enforces despite its state; 0 if none."""
        if self.state == "enforced" or not self.is_enforcing:
            return 0
        return self.active_generation or 0

    @property
    def reason(self) -> str:
        """Returns why the object is not enforced, in a few words; empty if it is."""
        match self.state:
            case "enforced":
                return ""
            case "terminating":
                return "the pod is terminating, and serves until it has ended"
            case "missing":
                return "no status yet"
            case "trying" if self.trial is not None:
                tried = f"{self.trial.pod} tries it first, since {self.trial.time}"
                seen = self.observed_generation
                return f"at generation {seen}; {tried}" if seen else tried
            case "behind" | "trying":
                return f"at generation {self.observed_generation}"
            case "unenforced":
                return "not enforced"
            case "previewed":
                return "only previewed, as its annotation says"
            case "rolledback":
                return f"rolled back to generation {self.active_generation} by annotation"
            case "error":
                return "; ".join(_error_text(error) for error in self.errors)

    @property
    def is_unreported(self) -> bool:
        """Whether the replica has reported no generation of the object yet."""
        is_first = self.state == "trying" and not self.observed_generation
        return self.state == "missing" or is_first

    @property
    def fault(self) -> str:
        """Returns what is wrong with the policy itself; empty if nothing is.

        A replica enforces a policy whose evaluations exceed their budget, and refuses its requests.
        """
        if self.errors:
            return self.reason
        if not self.overrun:
            return ""
        return f"{OVERRUN}: {self.overrun}"


@dataclass(frozen=True, slots=True)
class Convergence:
    """One object and its state at each replica."""

    kind: str
    name: str
    uid: str
    generation: int
    standings: tuple[Standing, ...]
    is_deleted: bool = False
    """Whether the object is being deleted: replicas treat it as deleted, regardless of their
    statuses."""

    @property
    def counted(self) -> tuple[Standing, ...]:
        """The standings of the replicas that count."""
        return tuple(standing for standing in self.standings if standing.replica.counted)

    @property
    def enforced(self) -> bool:
        """Whether all replicas that may answer, and at least one, enforce the current generation."""
        counted = self.counted
        return bool(counted and not self.is_deleted) and all(
            standing.state == "enforced" for standing in counted
        )

    @property
    def request_share(self) -> float | None:
        """The share of requests that meet the current generation; None if no replica answers.

        Requests go to all ready replicas equally often, since a Service spreads connections. This
        is the current value of P(t) in `waddle simulate`.
        """
        answering = [item for item in self.standings if item.replica.ready]
        if not answering or self.is_deleted:
            return None
        return sum(item.state == "enforced" for item in answering) / len(answering)

    @property
    def since(self) -> str:
        """The time since when all replicas enforce it; empty if one does not, or gives no time."""
        times = [standing.since for standing in self.counted]
        return max(times) if self.enforced and all(times) else ""


IN_FORCE: Final = frozenset({"Active", "Unused"})
"""The states of an exception that excuses."""

NOT_SEEN: Final = "not seen yet"


@dataclass(frozen=True, slots=True)
class ExceptionStanding:
    """The status of an exception, which all replicas have in common.

    ``state`` is :data:`NOT_SEEN` if no status is about its current generation.
    """

    kind: str
    namespace: str
    name: str
    state: str
    message: str
    expires: str
    last_used: str
    constraints: tuple[str, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ExceptionStanding:
        """Reads a document's own standing."""
        metadata, spec, status = document["metadata"], document.get("spec"), status_of(document)
        is_seen = status.get("observedGeneration") == metadata.get("generation")
        constraints = spec.get("constraints") if isinstance(spec, dict) else ()
        return cls(
            document["kind"],
            text(metadata, "namespace"),
            metadata["name"],
            (is_seen and text(status, "state")) or NOT_SEEN,
            text(status, "message") if is_seen else "",
            text(document, "spec", "expires"),
            text(status, "lastUsed"),
            tuple(
                f"{text(constraint, 'kind')}/{text(constraint, 'name')}"
                for constraint in objects_of(constraints)
            ),
        )


def by_subject(
    statuses: Iterable[Mapping[str, Any]],
) -> dict[LabelledSubject, list[Mapping[str, Any]]]:
    """Groups status objects by their subject, from their labels."""
    kinds = {kind.kind: kind for kind in STATUS_KINDS}
    statuses_of: dict[LabelledSubject, list[Mapping[str, Any]]] = {}
    for status in statuses:
        statuses_of.setdefault(subject_of(kinds[status["kind"]], status), []).append(status)
    return statuses_of


def subject_for(document: Mapping[str, Any]) -> LabelledSubject:
    """Returns the subject that the labels of status objects name."""
    kind, name = status_kind_of(document), document["metadata"]["name"]
    return LabelledSubject(kind.kind, document["kind"] if kind.kind_label else "", name)


def converge(
    document: Mapping[str, Any],
    statuses: Iterable[Mapping[str, Any]],
    replicas: Sequence[Replica],
    revisions: Iterable[PolicyRevision] = (),
) -> Convergence:
    """Sum up the standings of an object at all replicas, by the status objects about it.

    ``revisions`` of the object tell which replica still tries its generation.
    """
    kind = status_kind_of(document)
    by_pod = {_owner(status): status_of(status) for status in statuses}
    metadata = document["metadata"]
    standings = [_standing(item, by_pod.get(item.uid), metadata, kind) for item in replicas]
    trial = _trial(metadata, revisions)
    if trial is not None:
        standings = [
            replace(item, state="trying", trial=trial) if item.state in UNSEEN else item
            for item in standings
        ]
    return Convergence(
        document["kind"],
        metadata["name"],
        metadata["uid"],
        metadata.get("generation", 0),
        tuple(standings),
        is_deleted=is_deleted(document),
    )


def _trial(metadata: Mapping[str, Any], revisions: Iterable[PolicyRevision]) -> TrialOutcome | None:
    """Returns the unfinished trial of an object's generation."""
    for revision in revisions:
        if (revision.uid, revision.generation) == (metadata["uid"], metadata.get("generation")):
            outcome = revision.outcome
            return None if outcome is None or outcome.is_final else outcome
    return None


def _standing(
    item: Replica, entry: Mapping[str, Any] | None, metadata: Mapping[str, Any], kind: StatusKind
) -> Standing:
    if entry is None or entry.get(kind.uid_field) != metadata["uid"]:
        return Standing(item, "terminating" if item.terminating else "missing")
    return Standing(
        item,
        _state(item, entry, metadata.get("generation", 0), kind),
        integer_of(entry.get("observedGeneration")),
        integer_of(entry["activeGeneration"]) if "activeGeneration" in entry else None,
        text(entry, "activeDigest"),
        text(entry, "since"),
        tuple(objects_of(entry.get("errors"))),
        text(entry, "enforcementAction"),
        text(entry, "breaker", "message"),
        tuple(
            f"{text(warning, 'fieldRef')}: {text(warning, 'warning')}"
            for warning in objects_of(entry.get(WARNINGS))
        ),
        is_enforcing=entry.get("enforced") is not False,
    )


def _state(
    item: Replica, entry: Mapping[str, Any], generation: int, kind: StatusKind
) -> ReplicaState:
    if item.terminating:
        return "terminating"
    if WEBHOOK_OPERATION not in texts_of(entry.get("operations")):
        return "missing"
    if entry.get("observedGeneration") != generation:
        return "behind"
    if entry.get("errors"):
        return "error"
    if entry.get("preview") is True:
        return "previewed"
    if kind.reports_enforced and entry.get("enforced") is not True:
        return "unenforced"
    if entry.get("rolledBackTo") and entry.get("activeGeneration") != generation:
        return "rolledback"
    return "enforced"


def _owner(status: Mapping[str, Any]) -> str:
    owners = objects_of(status["metadata"].get("ownerReferences"))
    return next((text(owner, "uid") for owner in owners if owner.get("kind") == "Pod"), "")


def _error_text(error: Mapping[str, Any]) -> str:
    code, message, location = (str(error.get(name, "")) for name in ("code", "message", "location"))
    text = f"{code}: {message}" if code else message
    return f"{text} ({location})" if location else text
