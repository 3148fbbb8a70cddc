"""``status.conditions`` of a template, constraint or mutator, summed over all replicas.

They are computed from the statuses of the replicas (:mod:`webhook.controllers.status.convergence`),
so any replica may write them. There are four types, each ``True`` or ``False``:

- ``Active``: every replica enforces this generation;
- ``Degraded``: some replicas do not; the message names them and their errors;
- ``Error``: no replica does; the message has the errors;
- ``Enforced``: ``N/M replicas at generation G``, and the share of requests that meet it, while some
  replicas do not.

A mutator may have a fifth, ``Fighting``: the same change is made to an object again and again,
because another writer undoes it.

Active, Degraded and Error exclude one another. None of them is ``True`` in three cases: the object
is rolled back by annotation; it is being deleted; the API server sends no requests for it
(``NotAsked``). The reason then names the case.

A replica that has not followed yet is given :data:`BEHIND_SECONDS`. A generation that is still
spreading gets no conditions: until then ``observedGeneration`` is below the object's generation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from webhook.api.gvk import text
from webhook.api.shapes import Json, integer_of, status_of, texts_of
from webhook.controllers.status.convergence import Convergence, Standing, converge
from webhook.replicas import pods
from webhook.replicas.pods import WEBHOOK_OPERATION, Replica, replica
from webhook.values import dataclass
from webhook.webhook_rules.coverage import REASON, WHOLLY, CoverageState

TYPES: Final = ("Active", "Degraded", "Error", "Enforced")

BEHIND_SECONDS: Final = 5.0
"""How long a replica may be behind before that is a fault. Replicas follow one another within some
10 ms, under load or after a broken watch within a second or two."""

REPLICAS_SHOWN: Final = 5
FAULT_CHARACTERS_MAX: Final = 300
"""The most characters of one replica's fault in a message; the replica's own status has the whole
text."""

FIGHTING: Final = "Fighting"

ConditionState: TypeAlias = Literal[
    "Active",
    "Degraded",
    "Error",
    "RolledBack",
    "Previewed",
    "NotAsked",
    "Progressing",
    "Terminating",
]

_GOOD: Final = frozenset({"enforced", "rolledback", "previewed"})

_REASONS: Final = {
    "missing_data": "DataMissing",
    "suspended": "Suspended",
    "crd_not_established": "CrdNotEstablished",
    "engine": "EngineMissing",
    "environment": "NotCompiledHere",
    "other_target": "OtherTarget",
}
"""The reasons for a single kind of fault, by the code of its status error."""

_DELETED: Final = "it is being deleted: no replica enforces it any more"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of an object.

    ``reason`` is one word, ``faults`` and ``enforced`` are sentences.
    """

    state: ConditionState
    generation: int
    reason: str
    enforced: str
    faults: str
    is_awaited: bool = False
    """Whether some replica has not followed yet."""
    fighting: str = ""
    """The field that other writers keep changing back, and the replicas; empty without a fight."""

    @property
    def message(self) -> str:
        """All of it."""
        return f"{self.enforced}. {self.faults}" if self.faults else self.enforced

    def documents(self, now: str) -> list[Json]:
        """Returns the conditions, with this time as that of their last change."""
        held = {"Enforced"} if self.state == "Active" else set()
        return [
            {
                "type": name,
                "status": "True" if name == self.state or name in held else "False",
                "observedGeneration": self.generation,
                "lastTransitionTime": now,
                "reason": self.reason,
                "message": self.enforced if name == "Enforced" else self.message,
            }
            for name in TYPES
        ]


def merged(current: Iterable[Mapping[str, Any]], verdict: Judgement, now: str) -> list[Json]:
    """Returns all conditions that the object should have; those of other writers stay unchanged.

    Ours are first: the printer column ``state`` shows the first condition that is true. ``current``
    are the conditions read by :func:`~webhook.api.shapes.conditions_of`. The time of a condition is
    that of the last change of its status; a condition without any change stays as it is.
    """
    known = {item["type"]: dict(item) for item in current}
    conditions = []
    desired = verdict.documents(now)
    if verdict.fighting or FIGHTING in known:
        desired.append(_fighting(verdict, now))
    for condition in desired:
        before = known.get(condition["type"])
        if before is not None and before.get("status") == condition["status"]:
            condition["lastTransitionTime"] = before.get("lastTransitionTime", now)
        conditions.append(condition)
    return conditions + [item for name, item in known.items() if name not in (*TYPES, FIGHTING)]


def _fighting(verdict: Judgement, now: str) -> Json:
    return {
        "type": FIGHTING,
        "status": "True" if verdict.fighting else "False",
        "observedGeneration": verdict.generation,
        "lastTransitionTime": now,
        "reason": "UndoneEachTime" if verdict.fighting else "NotFighting",
        "message": verdict.fighting or "no change of it is undone again and again",
    }


def state_of(conditions: Iterable[Mapping[str, Any]]) -> tuple[str, int]:
    """Returns the state in conditions, and its generation; an empty text for none."""
    known = {item["type"]: item for item in conditions}
    for name in ("Active", "Degraded", "Error"):
        if known.get(name, {}).get("status") == "True":
            return name, integer_of(known[name].get("observedGeneration"))
    enforced = known.get("Enforced")
    if enforced is None:
        return "", 0
    return text(enforced, "reason"), integer_of(enforced.get("observedGeneration"))


# --- replicas and their reports -------------------------------------------------------------------


def replicas(
    pod_objects: Iterable[Mapping[str, Any]], statuses: Iterable[Mapping[str, Any]]
) -> list[Replica]:
    """Returns the replicas that may count: webhook Pods that have, or should have, a status of it.

    A Pod without the webhook's labels never counts: a user with rights on status objects can make
    any Pod of the namespace their owner. A terminating Pod counts as long as it has a status. A Pod
    that is starting answers no requests, so it is expected only once it is ready. ``ready`` is
    false for a Pod that is known to be unready and answers no requests either.
    """
    speaking = {
        owner["uid"]
        for item in statuses
        if WEBHOOK_OPERATION in texts_of(status_of(item).get("operations"))
        for owner in pods.owners_of(item)
    }
    known = []
    for pod in pod_objects:
        item = replica(pod)
        if item.finished or not pods.is_webhook(pod):
            continue
        if item.uid in speaking or (item.ready and not item.terminating):
            ready = item.terminating or not pods.is_unready(pod)
            known.append(
                Replica(item.name, item.uid, ready=ready, terminating=False, finished=False)
            )
    return sorted(known, key=lambda item: item.name)


def judge(
    document: Mapping[str, Any],
    statuses: Sequence[Mapping[str, Any]],
    pod_objects: Iterable[Mapping[str, Any]],
    *,
    overdue: bool,
    coverage: CoverageState | None = None,
) -> Judgement | None:
    """Judges an object by the statuses of the replicas; None if no replica has a status.

    ``overdue`` is whether replicas have been behind for too long. ``coverage`` is the share of
    requests that the API server sends for the object, if known.
    """
    convergence = _counted(converge(document, statuses, replicas(pod_objects, statuses)))
    if convergence.is_deleted:
        return Judgement("Terminating", convergence.generation, "Terminating", _DELETED, "")
    if not any(standing.observed_generation for standing in convergence.standings):
        return None
    good = [item for item in convergence.standings if item.state in _GOOD]
    faulty = [item for item in convergence.standings if item.state in ("error", "unenforced")]
    behind = [item for item in convergence.standings if item not in good and item not in faulty]
    state = _state(convergence, good, faulty, behind, overdue=overdue)
    gaps = ""
    if state == "Active" and coverage is not None and coverage != WHOLLY:
        if coverage.extent == "not at all":
            state = REASON
        gaps = _gaps_text(coverage)
    return Judgement(
        state,
        convergence.generation,
        _reason(state, faulty),
        f"{_enforced_text(convergence)}, but {gaps}"
        if state == REASON
        else _enforced_text(convergence),
        "" if state == REASON else gaps or _faults_text(convergence, [*faulty, *behind]),
        is_awaited=bool(behind),
        fighting=_fights_text(statuses),
    )


def _gaps_text(coverage: CoverageState) -> str:
    """Name the requests of a policy that the API server does not send."""
    if coverage.extent == "not at all":
        return f"no request that it matches is sent: {coverage.text}"
    missing = (
        f"some requests that it matches are not sent: {coverage.text}" if coverage.missing else ""
    )
    return "; ".join(filter(None, (missing, *coverage.cautions)))


def _fights_text(statuses: Iterable[Mapping[str, Any]]) -> str:
    """Lists the objects on which mutators' changes are undone, from the statuses of all replicas."""
    about = {text(status_of(item), "fighting") for item in statuses} - {""}
    if not about:
        return ""
    shown = ", ".join(sorted(about)[:REPLICAS_SHOWN])
    return f"the same change is made again and again, and undone each time: {_shortened(shown)}"


def _counted(convergence: Convergence) -> Convergence:
    """Leaves out replicas that neither answer requests nor enforce the object.

    So a starting replica is no fault, and a failing probe does not cause a write for each policy.
    If no replica answers requests, all count.
    """
    counted = tuple(
        item for item in convergence.standings if item.replica.ready or item.state in _GOOD
    )
    return replace(convergence, standings=counted) if counted else convergence


def _state(
    convergence: Convergence,
    good: Sequence[Standing],
    faulty: Sequence[Standing],
    behind: Sequence[Standing],
    *,
    overdue: bool,
) -> ConditionState:
    if len(good) == len(convergence.standings):
        states = {item.state for item in good}
        if "previewed" in states:
            return "Previewed"
        return "RolledBack" if "rolledback" in states else "Active"
    if behind and not overdue:
        return "Progressing"
    return "Error" if len(faulty) == len(convergence.standings) else "Degraded"


def _reason(state: ConditionState, faulty: Sequence[Standing]) -> str:
    match state:
        case "Active":
            return "EnforcedByAll"
        case "RolledBack" | "Progressing" | "Previewed" | "NotAsked":
            return state
    if not faulty:
        return "ReplicasBehind"
    reasons = {_REASONS.get(error.get("code", ""), "") for item in faulty for error in item.errors}
    return (reasons.pop() if len(reasons) == 1 else "") or "NotEnforceable"


def _enforced_text(convergence: Convergence) -> str:
    total = len(convergence.standings)
    enforced = sum(item.state == "enforced" for item in convergence.standings)
    text = f"{enforced}/{total} replicas at generation {convergence.generation}"
    if (share := convergence.request_share) is not None and 0 < share < 1:
        text += f", {share:.0%} of requests"
    stages = Counter(item.action for item in convergence.standings if item.state == "enforced")
    if any(stages):
        # At a stage of a roll-out: which, and how many replicas have followed to it.
        shown = ", ".join(
            f"{count} {action or 'unstaged'}" for action, count in sorted(stages.items())
        )
        text += f" ({shown})"
    others = Counter(
        (item.generation_meanwhile, item.active_digest)
        for item in convergence.standings
        if item.generation_meanwhile
    )
    for (generation, digest), count in sorted(others.items(), reverse=True):
        shown = f" ({digest})" if digest else ""
        text += f"; {count}/{total} enforce generation {generation}{shown} meanwhile"
    return text


def _faults_text(convergence: Convergence, standings: Sequence[Standing]) -> str:
    """Lists the replicas that do not enforce the object, grouped by their fault."""
    by_fault: dict[str, list[str]] = {}
    for item in standings:
        by_fault.setdefault(_shortened(item.reason), []).append(item.replica.name)
    for item in convergence.standings:
        if item.state == "rolledback":
            by_fault.setdefault(_shortened(item.reason), []).append(item.replica.name)
    return "; ".join(f"{_names(names)}: {fault}" for fault, names in sorted(by_fault.items()))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:REPLICAS_SHOWN])
    more = len(names) - REPLICAS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _shortened(text: str) -> str:
    if len(text) <= FAULT_CHARACTERS_MAX:
        return text
    return f"{text[: FAULT_CHARACTERS_MAX - 1]}…"
