"""``status.byPod``: the replicas' statuses, copied to the template, constraint or Config.

Each object has one writer at a time, chosen without a leader by rendezvous hashing over the
replicas. All replicas compute the same choice; when a replica comes or goes, only its own share
moves. Two replicas that disagree for a moment write the same content. Nothing is written without a
difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api import pod_status
from webhook.api.fitting import fitted, status_room
from webhook.api.shapes import Json, objects_of, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.pod_status import StatusKind


def merged_status(
    document: Mapping[str, Any],
    statuses: Sequence[Mapping[str, Any]],
    kind: StatusKind,
    live: frozenset[str] | None = None,
    *,
    has_crd: bool = True,
) -> Json | None:
    """Returns the whole ``status`` that the object should have; None if it has that already.

    Only ``byPod`` and a template's ``created`` are changed: the rest is audit's. ``live`` are the
    UIDs of the Pods that count, None for all. A status whose Pod has gone is left out even before
    the garbage collector has deleted it. ``has_crd`` is whether the API server has established the
    CRD of a template's constraints.
    """
    current: Json = dict(status_of(document))
    counted = statuses if live is None else [item for item in statuses if _owner(item) in live]
    entries = pod_status.by_pod(counted, kind, document["metadata"].get("uid", ""))
    if entries and entries != current.get("byPod"):
        # Audit results have half of the room; conditions have the rest.
        share = status_room(document) // 4 // len(entries)
        entries = [fitted(entry, share) for entry in entries]
    desired = dict(current)
    if entries:
        desired["byPod"] = entries
    else:
        desired.pop("byPod", None)
    # Once a template's CRD was made, ``created`` stays true, as in Gatekeeper.
    is_usable = any(not entry.get("errors") for entry in entries)
    if kind is pod_status.TEMPLATE and has_crd and is_usable:
        desired["created"] = True
    return None if desired == current else desired


def _owner(status: Mapping[str, Any]) -> str:
    """Returns the UID of the Pod that owns a status object; empty without an owner."""
    owners = objects_of(status["metadata"].get("ownerReferences"))
    return next((str(owner.get("uid", "")) for owner in owners if owner.get("kind") == "Pod"), "")


def orphans(statuses: Iterable[Mapping[str, Any]], live: frozenset[str]) -> list[Mapping[str, Any]]:
    """Returns the status objects whose Pod is gone.

    The garbage collector deletes them if it works; users have seen tens of thousands otherwise. An
    object without an owner is left alone.
    """
    return [item for item in statuses if (owner := _owner(item)) and owner not in live]
