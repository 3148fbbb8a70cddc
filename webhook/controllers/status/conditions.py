"""``status.conditions`` of a template or constraint: what all replicas together do about it.

Of a mutator there may be a fifth, ``Fighting``: whether the same change is made to an object again
and again, because somebody undoes it.

Made from what each replica says of itself (:mod:`webhook.controllers.status.convergence`),
so that any of them may write it. Four types, each ``True`` or ``False``:

- ``Active``: every replica enforces this generation;
- ``Degraded``: some do not, and which and why;
- ``Error``: none does, and why;
- ``Enforced``: ``N/M replicas at generation G``, and while some do not, which share of
  requests meets it.

Active, Degraded and Error exclude one another. None of them holds while the
object is rolled back by annotation, or is being deleted, or while the API server asks
nobody about what it is for (``NotAsked``), which the reason of all says. A replica that
has merely not followed yet is given :data:`BEHIND_SECONDS`: nothing is said of a
generation before it is settled, and an ``observedGeneration`` below the object's
tells that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from webhook.api.gvk import text
from webhook.api.shapes import integer_of, status_of, texts_of
from webhook.controllers.status.convergence import converge
from webhook.replicas import pods
from webhook.replicas.pods import WEBHOOK_OPERATION, Replica, replica
from webhook.values import dataclass
from webhook.webhook_rules.coverage import REASON, WHOLLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.controllers.status.convergence import Convergence, Standing
    from webhook.webhook_rules.coverage import CoverageState

TYPES: Final = ("Active", "Degraded", "Error", "Enforced")

BEHIND_SECONDS: Final = 5.0
"""How long a replica may be behind before that is trouble: replicas follow one another within
some 10 ms, a loaded one or a torn watch within a second or two."""

REPLICAS_SHOWN: Final = 5
FAULT_CHARACTERS_MAX: Final = 300
"""Of one replica's fault in a message; its own status has the whole."""

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
"""Of a fault that is the only one there is, by the code of its status error."""

_DELETED: Final = "it is being deleted: no replica enforces it any more"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of an object; ``reason`` is one word, ``faults`` and ``enforced`` are sentences."""

    state: ConditionState
    generation: int
    reason: str
    enforced: str
    faults: str
    is_awaited: bool = False
    """Whether some replica has not followed yet."""
    fighting: str = ""
    """The field that a mutator fights about, and the replicas; empty where it does not."""

    @property
    def message(self) -> str:
        """All of it."""
        return f"{self.enforced}. {self.faults}" if self.faults else self.enforced

    def documents(self, now: str) -> list[Json]:
        """The conditions, as they would stand if all of them had just become so."""
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
    """All conditions that the object should have: ours over what it has, others' as they are.

    Ours are first: the printer column ``state`` shows the first that holds.

    ``current`` are those that :func:`~webhook.api.shapes.conditions_of` reads.

    The time of a condition is that of the change of its status; one that differs
    in nothing is left as it is.
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
    """Return the state in conditions, and its generation; an empty text for none."""
    known = {item["type"]: item for item in conditions}
    for name in ("Active", "Degraded", "Error"):
        if known.get(name, {}).get("status") == "True":
            return name, integer_of(known[name].get("observedGeneration"))
    enforced = known.get("Enforced")
    if enforced is None:
        return "", 0
    return text(enforced, "reason"), integer_of(enforced.get("observedGeneration"))


# --- which replicas, and what they do -------------------------------------------------------------


def replicas(
    pod_objects: Iterable[Mapping[str, Any]], statuses: Iterable[Mapping[str, Any]]
) -> list[Replica]:
    """The replicas that may count: webhook Pods that say something of the object, or should.

    A Pod without the webhook's labels never counts: whoever may write status objects can have
    any Pod of the namespace own one.

    A Pod that is ending is believed for as long as it says something. One that is
    starting answers nobody, so it is not missed until it is ready. ``ready`` is
    false for a Pod that is known not to be, and does not answer either.
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
    """Judge an object by the statuses of the replicas; None where there is none.

    With ``overdue`` those that are behind have been for long enough. ``coverage`` says how far the API
    server asks about it, where that is known.
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
        return f"no request that it is for is ever sent: {coverage.text}"
    missing = (
        f"some requests that it is for are not sent: {coverage.text}" if coverage.missing else ""
    )
    return "; ".join(filter(None, (missing, *coverage.cautions)))


def _fights_text(statuses: Iterable[Mapping[str, Any]]) -> str:
    """Lists the objects that mutators fight about, whichever replica says so."""
    about = {text(status_of(item), "fighting") for item in statuses} - {""}
    if not about:
        return ""
    shown = ", ".join(sorted(about)[:REPLICAS_SHOWN])
    return f"the same change is made again and again, and undone each time: {_shortened(shown)}"


def _counted(convergence: Convergence) -> Convergence:
    """Without those that answer nobody and do not enforce it either.

    So that neither a replica that starts is trouble, nor a probe that fails now and
    then a write for each policy. Where nobody answers, all count.
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
        (item.active_generation, item.active_digest)
        for item in convergence.standings
        if item.state != "enforced" and item.active_generation
    )
    for (generation, digest), count in sorted(others.items(), reverse=True):
        shown = f" ({digest})" if digest else ""
        text += f"; {count}/{total} enforce generation {generation}{shown} meanwhile"
    return text


def _faults_text(convergence: Convergence, standings: Sequence[Standing]) -> str:
    """Lists the replicas that do not enforce it, and why; those of one fault together."""
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
