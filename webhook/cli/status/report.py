"""``waddle status`` on the terminal and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cli.formats.document import as_json as document_json
from webhook.cli.table import table
from webhook.cli.terminal import styled
from webhook.controllers.status.convergence import TEMPLATE_KIND
from webhook.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.controllers.status.convergence import Convergence, Standing
    from webhook.replicas.pods import Replica

_PRUNED: Final = (
    "since when is not known: the CRDs of statuses are Gatekeeper's own, which do not keep it; "
    "manifests/crds are a superset"
)


def as_table(replicas: Sequence[Replica], objects: Sequence[Convergence], namespace: str) -> str:
    """A line for each object and a column for each replica, then what is wrong, in full."""
    lines = [_replica_line(item) for item in replicas]
    if not lines:
        lines = [f"no replica of Waddle's webhook in namespace {namespace}"]
    if not objects:
        return "\n".join([*lines, "", "no template, no constraint and no mutator"])
    shared = _shared_prefix([item.name for item in replicas])
    head = ["OBJECT", "GENERATION", "ENFORCED", "SINCE"]
    head += [item.name[shared:].upper() for item in replicas]
    ordered = sorted(objects, key=lambda item: (item.kind != TEMPLATE_KIND, item.kind, item.name))
    rows = table([head, *(_row(item) for item in ordered)])
    faults = [printable(line) for item in ordered for line in _faults(item)]
    if any(_lacks_fields(item) for item in objects):
        faults.append(_PRUNED)
    return "\n".join([*lines, "", *rows, *(["", *faults] if faults else [])])


def _lacks_fields(item: Convergence) -> bool:
    """Whether a status says less than replicas write: they always name the generation in force."""
    return any(
        standing.observed_generation and standing.active_generation is None
        for standing in item.standings
    )


def _replica_line(item: Replica) -> str:
    if item.terminating:
        state = styled("terminating", fg="yellow")
    else:
        state = styled("ready", fg="green") if item.ready else styled("not ready", fg="yellow")
    return f"{printable(item.name)}: {state}"


def _shared_prefix(names: Sequence[str]) -> int:
    """How many characters all the names begin with, to the last dash: a column needs the rest."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first.rfind("-", 0, same) + 1


def _row(item: Convergence) -> list[str]:
    counted = item.counted
    enforcing = sum(standing.state == "enforced" for standing in counted)
    if item.is_deleted:
        enforcing = 0
    share = item.request_share
    requests = f" {share:.0%}" if share is not None and 0 < share < 1 else ""
    return [
        f"{item.kind}/{item.name}",
        str(item.generation),
        f"{enforcing}/{len(counted)}{requests}",
        item.since or "-",
        *("deleting" if item.is_deleted else _cell(standing) for standing in item.standings),
    ]


def _cell(standing: Standing) -> str:
    match standing.state:
        case "enforced":
            return "yes"
        case "behind":
            return standing.reason
        case "rolledback":
            return f"rolled back to {standing.active_generation}"
        case "error" if 0 < (standing.active_generation or 0) < standing.observed_generation:
            return f"error, {standing.active_generation} in force"
        case state:
            return state


def _faults(item: Convergence) -> list[str]:
    deleted = [f"{item.kind}/{item.name}: it is being deleted"] if item.is_deleted else []
    return deleted + [
        f"{item.kind}/{item.name} on {standing.replica.name}: {standing.reason}"
        for standing in item.standings
        if standing.errors or standing.state == "rolledback"
    ]


def as_json(replicas: Sequence[Replica], objects: Sequence[Convergence]) -> str:
    """Everything, for programs."""
    document = {
        "replicas": [_replica(item) for item in replicas],
        "objects": [
            {
                "kind": item.kind,
                "name": item.name,
                "uid": item.uid,
                "generation": item.generation,
                "enforced": item.enforced,
                "deleting": item.is_deleted,
                "requestShare": item.request_share,
                "since": item.since or None,
                "replicas": [_standing(standing) for standing in item.standings],
            }
            for item in objects
        ],
    }
    return document_json(document)


def _replica(item: Replica) -> dict[str, Any]:
    return {
        "name": item.name,
        "uid": item.uid,
        "ready": item.ready,
        "terminating": item.terminating,
        "counted": item.counted,
    }


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "name": standing.replica.name,
        "uid": standing.replica.uid,
        "counted": standing.replica.counted,
        "state": standing.state,
        "observedGeneration": standing.observed_generation,
        "activeGeneration": standing.active_generation,
        "activeDigest": standing.active_digest or None,
        "since": standing.since or None,
        "errors": list(standing.errors),
    }
