"""The output of ``waddle status``: text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.cli.formats.document import as_json as document_json
from webhook.cli.table import table
from webhook.cli.terminal import styled
from webhook.controllers.status.convergence import (
    TEMPLATE_KIND,
    Convergence,
    ExceptionStanding,
    Standing,
)
from webhook.printable import printable
from webhook.webhook_rules.coverage import REASON, CoverageState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.cli.cluster_policies import KyvernoStanding
    from webhook.cli.status.admission_policies import AdmissionPolicyStanding
    from webhook.controllers.status.synced_kinds import SyncedKind
    from webhook.replicas.pods import Replica

_PRUNED: Final = (
    "times are not known: the CRDs of statuses are Gatekeeper's own, without these "
    "fields; apply manifests/crds to keep them"
)

PATHS_SHOWN: Final = 5
"""The number of paths of a synced kind in the table; JSON has all."""


class ClusterStanding(NamedTuple):
    """The replicas, their states of each object, the exceptions, and the coverage.

    ``coverage`` by UID is how many of an object's requests the API server sends.
    ``admission_policies`` are the API server's own, ``kyverno_policies`` Kyverno's, ``synced`` the
    kinds whose objects policies read. ``outages`` say what keeps requests from the replicas.
    """

    replicas: Sequence[Replica]
    objects: Sequence[Convergence]
    exceptions: Sequence[ExceptionStanding]
    coverage: Mapping[str, CoverageState]
    admission_policies: Sequence[AdmissionPolicyStanding] = ()
    kyverno_policies: Sequence[KyvernoStanding] = ()
    synced: Sequence[SyncedKind] = ()
    outages: Sequence[str] = ()


def as_table(standing: ClusterStanding, namespace: str) -> str:
    """Returns a line for each object and a column for each replica, then exceptions and faults."""
    replicas, objects, exceptions, coverage, admission_policies, kyverno, synced, _ = standing
    others = [
        *_exceptions(exceptions),
        *_admission_policies(admission_policies),
        *_kyverno_policies(kyverno),
        *_synced(synced),
    ]
    nobody = f"the namespace {namespace} has no replica of Waddle's webhook; -n names another"
    lines = [_replica_line(item) for item in replicas] or [nobody]
    lines += map(printable, standing.outages)
    if not objects:
        lines += ["", "there are no templates, constraints or mutators"]
        return "\n".join([*lines, *others])
    shared = _shared_prefix([item.name for item in replicas])
    head = ["OBJECT", "GENERATION", "ENFORCED", "SINCE"]
    head += [item.name[shared:].upper() for item in replicas]
    ordered = sorted(objects, key=lambda item: (item.kind != TEMPLATE_KIND, item.kind, item.name))
    rows = table([head, *(_row(item, coverage.get(item.uid)) for item in ordered)])
    faults = [
        printable(line)
        for item in ordered
        for line in (*_faults(item), *_warnings(item), *_gaps(item, coverage.get(item.uid)))
    ]
    if any(_lacks_fields(item) for item in objects):
        faults.append(_PRUNED)
    lines += ["", *rows, *(["", *faults] if faults else [])]
    return "\n".join([*lines, *others])


def _admission_policies(policies: Sequence[AdmissionPolicyStanding]) -> list[str]:
    """Returns a line for each of the API server's own policies, then notes."""
    if not policies:
        return []
    rows = [
        [
            item.title,
            item.state,
            ", ".join(map(_binding, item.bindings)) or "-",
            "-" if item.cost is None else _share(item.cost),
        ]
        for item in policies
    ]
    notes = [printable(f"{item.title}: {note}") for item in policies for note in item.notes]
    head = ["ADMISSION POLICY", "STATE", "BINDINGS", "COST"]
    return ["", *table([head, *rows]), *(["", *notes] if notes else [])]


def _binding(binding: tuple[str, tuple[str, ...]]) -> str:
    name, actions = binding
    return f"{name} ({'+'.join(actions)})" if actions else name


def _share(cost: float) -> str:
    """Returns a part of a limit, in percent."""
    return "<1%" if cost < 0.01 else f"{cost:.0%}"


def _kyverno_policies(policies: Sequence[KyvernoStanding]) -> list[str]:
    """Returns a line for each of Kyverno's policies, then notes."""
    if not policies:
        return []
    rows = [[item.title, item.state, "+".join(item.actions) or "-"] for item in policies]
    notes = [printable(f"{item.title}: {note}") for item in policies for note in item.notes]
    head = ["KYVERNO POLICY", "STATE", "ACTIONS"]
    return ["", *table([head, *rows]), *(["", *notes] if notes else [])]


def _synced(synced: Sequence[SyncedKind]) -> list[str]:
    """Returns a line for each synced kind: its objects, kept paths, and waiting templates."""
    if not synced:
        return []
    rows = [
        [
            f"{item.gvk.group_version}/{item.gvk.kind}",
            "?" if item.objects is None else str(item.objects),
            _kept(item),
            ", ".join(item.waiting) or "-",
        ]
        for item in synced
    ]
    return ["", *table([["SYNCED KIND", "OBJECTS", "KEPT", "WAITING"], *rows])]


def _kept(item: SyncedKind) -> str:
    if item.why_whole:
        return f"whole: {item.why_whole}"
    shown = ", ".join(item.paths[:PATHS_SHOWN])
    more = len(item.paths) - PATHS_SHOWN
    return shown + (f" and {more} more" if more > 0 else "") or "names alone"


def _exceptions(exceptions: Sequence[ExceptionStanding]) -> list[str]:
    """Returns a line for each exception, the earliest end first, then notes."""
    if not exceptions:
        return []
    ordered = sorted(exceptions, key=lambda item: (item.expires or "~", _shown(item)))
    rows = [
        [_shown(item), item.state, item.expires or "never", item.last_used or "-"]
        for item in ordered
    ]
    notes = [printable(f"{_shown(item)}: {item.message}") for item in ordered if item.message]
    head = ["EXCEPTION", "STATE", "EXPIRES", "LAST USED"]
    return ["", *table([head, *rows]), *(["", *notes] if notes else [])]


def _shown(item: ExceptionStanding) -> str:
    return "/".join(filter(None, (item.kind, item.namespace, item.name)))


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
    """Returns the length of the names' common prefix, to the last dash, to shorten columns."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first.rfind("-", 0, same) + 1


def _is_not_asked(coverage: CoverageState | None) -> bool:
    return coverage is not None and coverage.extent == "not at all"


def _gaps(item: Convergence, coverage: CoverageState | None) -> list[str]:
    if coverage is None:
        return []
    notes = (f"{REASON}: {coverage.text}",) if _is_not_asked(coverage) else coverage.notes
    return [f"{item.kind}/{item.name}: {note}" for note in notes]


def _row(item: Convergence, coverage: CoverageState | None) -> list[str]:
    counted, enforcing = item.counted, 0
    if not item.is_deleted:
        enforcing = sum(standing.state == "enforced" for standing in counted)
    share = item.request_share
    requests = f" {share:.0%}" if share is not None and 0 < share < 1 else ""
    return [
        f"{item.kind}/{item.name}",
        str(item.generation),
        REASON if _is_not_asked(coverage) else f"{enforcing}/{len(counted)}{requests}",
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
        case "error" if standing.generation_meanwhile:
            return f"error, {standing.generation_meanwhile} in force"
        case state:
            return state


def _faults(item: Convergence) -> list[str]:
    deleted = [f"{item.kind}/{item.name}: it is being deleted"] if item.is_deleted else []
    replicas: dict[str, list[str]] = {}
    for each in item.standings:
        if text := each.fault or (each.reason if each.state in ("rolledback", "trying") else ""):
            replicas.setdefault(text, []).append(each.replica.name)
    return deleted + [
        f"{item.kind}/{item.name} on {', '.join(names)}: {text}" for text, names in replicas.items()
    ]


def _warnings(item: Convergence) -> list[str]:
    """Returns what replicas found unintended in an object's code, each once."""
    texts = dict.fromkeys(text for standing in item.standings for text in standing.warnings)
    return [f"{item.kind}/{item.name}: {text}" for text in texts]


def as_json(standing: ClusterStanding) -> str:
    """Returns all data, for programs."""
    replicas, objects, exceptions, coverage, admission_policies, kyverno, synced, _ = standing
    document = {
        "outages": list(standing.outages),
        "replicas": [_replica(item) for item in replicas],
        "objects": [
            {
                "kind": item.kind,
                "name": item.name,
                "uid": item.uid,
                "generation": item.generation,
                "enforced": item.enforced and not _is_not_asked(coverage.get(item.uid)),
                "asked": None if (state := coverage.get(item.uid)) is None else state.extent,
                "notSent": list(state.missing) if state is not None else [],
                "deleting": item.is_deleted,
                "requestShare": item.request_share,
                "since": item.since or None,
                "replicas": [_standing(standing) for standing in item.standings],
            }
            for item in objects
        ],
        "exceptions": [_exception_document(item) for item in exceptions],
        "admissionPolicies": [
            {
                "kind": item.kind,
                "name": item.name,
                "state": item.state,
                "bindings": [
                    {"name": name, "validationActions": list(actions)}
                    for name, actions in item.bindings
                ],
                "costOfLimit": item.cost,
                "costliestField": item.costliest or None,
                "notes": list(item.notes),
            }
            for item in admission_policies
        ],
        "kyvernoPolicies": [
            {
                "name": item.title,
                "state": item.state,
                "validationActions": list(item.actions),
                "notes": list(item.notes),
            }
            for item in kyverno
        ],
        "syncedKinds": [_synced_document(item) for item in synced],
    }
    return document_json(document)


def _exception_document(item: ExceptionStanding) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "namespace": item.namespace or None,
        "name": item.name,
        "state": item.state,
        "message": item.message,
        "expires": item.expires or None,
        "lastUsed": item.last_used or None,
        "constraints": list(item.constraints),
    }


def _synced_document(item: SyncedKind) -> dict[str, Any]:
    return {
        "group": item.gvk.group,
        "version": item.gvk.version,
        "kind": item.gvk.kind,
        "objects": item.objects,
        "paths": list(item.paths),
        "whyWhole": item.why_whole or None,
        "waitingTemplates": list(item.waiting),
    }


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
        "overrun": standing.overrun or None,
        "warnings": list(standing.warnings),
    }
