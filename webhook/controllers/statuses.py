"""This replica's status objects: which they are, and when one differs from what is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.pod_status import POD_LABEL
from webhook.cluster.reflector import Selection

if TYPE_CHECKING:
    from webhook.api.pod_status import Json, Pod


def own_statuses(pod: Pod) -> Selection:
    """The status objects of this replica and of no other: N replicas watch N shares, not N²."""
    return Selection(pod.namespace, labels=f"{POD_LABEL}={pod.name}")


def overlay_status(wanted: Json, current: Json) -> Json | None:
    """The wanted status over the current object; None where status, labels and owner are right."""
    ours, theirs = wanted["metadata"], current["metadata"]
    if (
        wanted["status"] == current.get("status")
        and ours["labels"] == theirs.get("labels")
        and ours["ownerReferences"] == theirs.get("ownerReferences")
    ):
        return None
    return wanted | {"metadata": theirs | ours}
