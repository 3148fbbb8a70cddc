"""The replicas as Pods: which of them count, and which of them may write for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import conditions_of, objects_of, status_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STATUS_OPERATION: Final = "status"

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


def live(pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The UIDs of the Pods that are not finished: one that terminates serves until it has ended."""
    return frozenset(
        pod["metadata"]["uid"] for pod in pods if status_of(pod).get("phase") not in _FINISHED
    )


def working(pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The UIDs of the Pods that can be relied on to write: neither ending nor known to be unready."""
    return frozenset(
        pod["metadata"]["uid"]
        for pod in pods
        if status_of(pod).get("phase") not in _FINISHED
        and not pod["metadata"].get("deletionTimestamp")
        and not is_unready(pod)
    )


def writers(
    statuses: Iterable[Mapping[str, Any]], working_pods: frozenset[str], own_uid: str
) -> frozenset[str]:
    """The UIDs of the replicas that run the status operation, as their statuses say; ours is one."""
    found = {own_uid}
    for item in statuses:
        if STATUS_OPERATION in texts_of(status_of(item).get("operations")):
            found |= {owner.get("uid", "") for owner in owners_of(item)} & working_pods
    return frozenset(found)


def owners_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The Pods that own a status object."""
    owners = objects_of(item["metadata"].get("ownerReferences"))
    return [owner for owner in owners if owner.get("kind") == "Pod"]


def is_unready(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet says that a Pod is not Ready; it says nothing of one that is new."""
    conditions = conditions_of(status_of(pod))
    return any(item["type"] == "Ready" and item.get("status") == "False" for item in conditions)
