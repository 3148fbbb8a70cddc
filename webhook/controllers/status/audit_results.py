"""Merges the results of several audits into the constraint's status.

A single audit writes its totals itself. Several audits each take a share of the objects, and their
totals are added here. While shares move from one audit to another, the old total stays, until all
audits have reported the same shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api import audit_shard, pod_status
from webhook.api.fitting import first_of, status_room
from webhook.api.shapes import Json, status_of, texts_of
from webhook.replicas import pods
from webhook.replicas.pods import AUDIT_OPERATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.controllers.status_kinds import LabelledSubject


def merged(
    subject: LabelledSubject,
    document: Mapping[str, Any],
    status: Json | None,
    statuses: Sequence[Mapping[str, Any]],
    pod_objects: Iterable[Mapping[str, Any]],
) -> Json | None:
    """Returns the whole status with the audits' results; None if the object has it already.

    ``status`` is the new status without these results, None if nothing else differs. It is returned
    as it is in three cases: the subject is no constraint; at most one audit works; the audits have
    not yet reported the same shares.
    """
    if subject.kind != pod_status.CONSTRAINT.kind:
        return status
    working = pods.working(pod_objects)
    shards: dict[str, Mapping[str, Any]] = {}
    live: set[str] = set()
    metadata = document["metadata"]
    for item in statuses:
        current = status_of(item)
        auditors = {owner["uid"] for owner in pods.owners_of(item)} & working
        if AUDIT_OPERATION not in texts_of(current.get("operations")) or not auditors:
            continue
        live |= auditors
        is_of_now = (current.get("constraintUID"), current.get("observedGeneration")) == (
            metadata.get("uid"),
            metadata.get("generation", 0),
        )
        shard = audit_shard.read_shard(current)
        if is_of_now and shard is not None:
            shards |= dict.fromkeys(auditors, shard)
    results = audit_shard.merged(shards, live) if len(live) > 1 else None
    if results is None:
        return status
    # In the format of a single audit.
    shown = first_of(results["violations"][::-1], status_room(document) // 2)[::-1]
    results = results | {"violations": shown}
    before: Json = dict(status_of(document))
    if _same(before, results):
        return status
    whole = (before if status is None else status) | results
    if not results["violations"]:
        whole.pop("violations")
    return whole


def _same(status: Mapping[str, Any], results: Mapping[str, Any]) -> bool:
    """Returns whether the status has the same results, from this audit or a later one."""
    return bool(
        status.get("totalViolations") == results["totalViolations"]
        and (status.get("violations") or []) == results["violations"]
        and str(status.get("auditTimestamp", "")) >= results["auditTimestamp"]
    )
