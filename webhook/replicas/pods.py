"""The replicas as Pods: which of them count, and which of them may write for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.api.gvk import text
from webhook.api.shapes import conditions_of, object_of, objects_of, status_of, texts_of
from webhook.values import dataclass

AUDIT_OPERATION: Final = "audit"
STATUS_OPERATION: Final = "status"
WEBHOOK_OPERATION: Final = "webhook"

WEBHOOK_PODS: Final = "app.kubernetes.io/name=waddle,gatekeeper.sh/operation=webhook"
"""The label selector of Waddle's webhook Pods, as the manifests label them."""

AUDIT_PODS: Final = "app.kubernetes.io/name=waddle,gatekeeper.sh/operation=audit"
"""The Pods that audit, as the manifests label them."""

_FINISHED: Final = frozenset({"Succeeded", "Failed"})

_WEBHOOK_LABELS: Final = dict(item.split("=") for item in WEBHOOK_PODS.split(","))
_AUDIT_LABELS: Final = dict(item.split("=") for item in AUDIT_PODS.split(","))


@dataclass(frozen=True, slots=True)
class Replica:
    """A Pod of Waddle's."""

    name: str
    uid: str
    ready: bool
    terminating: bool
    finished: bool

    @property
    def counted(self) -> bool:
        """Whether it may answer admissions now."""
        return not self.finished and (self.ready or self.terminating)


@dataclass(frozen=True, slots=True)
class Replicas:
    """UIDs of Pods: ``existing`` are all of the namespace; the others are of Waddle's Pods alone.

    ``live`` are not finished, ``working`` can be relied on, ``writers`` may write for all.
    """

    existing: frozenset[str]
    live: frozenset[str]
    working: frozenset[str]
    writers: frozenset[str]


def replica(pod: Mapping[str, Any]) -> Replica:
    """Returns a Pod as a replica."""
    metadata = pod["metadata"]
    return Replica(
        metadata["name"],
        metadata["uid"],
        ready=_readiness(pod) == "True",
        terminating=bool(metadata.get("deletionTimestamp")),
        finished=_is_finished(pod),
    )


def is_webhook(pod: Mapping[str, Any]) -> bool:
    """Whether a Pod has the labels of Waddle's webhook Pods.

    A user with rights on status objects alone cannot label a Pod. A user with the right to create
    Pods beside Waddle's may use its service account, and is trusted with more.
    """
    return _has(_WEBHOOK_LABELS, pod)


def is_ours(pod: Mapping[str, Any]) -> bool:
    """Whether a Pod has the labels of Waddle's webhook or audit Pods."""
    return _has(_WEBHOOK_LABELS, pod) or _has(_AUDIT_LABELS, pod)


def _has(labels: Mapping[str, str], pod: Mapping[str, Any]) -> bool:
    stated = object_of(pod["metadata"].get("labels"))
    return all(stated.get(name) == value for name, value in labels.items())


def live(pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Returns the UIDs of unfinished Pods: a terminating Pod serves until it has ended."""
    return frozenset(pod["metadata"]["uid"] for pod in pods if not _is_finished(pod))


def working(pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The UIDs of the Pods that can be relied on to write: neither ending nor known to be unready."""
    return frozenset(
        pod["metadata"]["uid"]
        for pod in pods
        if not _is_finished(pod)
        and not pod["metadata"].get("deletionTimestamp")
        and not is_unready(pod)
    )


def ready(pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Returns the UIDs of the Pods that are ready, and neither ending nor finished."""
    return frozenset(
        pod["metadata"]["uid"]
        for pod in pods
        if not _is_finished(pod)
        and not pod["metadata"].get("deletionTimestamp")
        and _readiness(pod) == "True"
    )


def status_writers_of(status: Mapping[str, Any]) -> frozenset[str]:
    """Returns the UIDs of the Pods that own a status with the status operation."""
    if STATUS_OPERATION not in texts_of(status_of(status).get("operations")):
        return frozenset()
    return frozenset(owner.get("uid", "") for owner in owners_of(status))


def owners_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the Pods that own a status object."""
    owners = objects_of(item["metadata"].get("ownerReferences"))
    return [owner for owner in owners if owner.get("kind") == "Pod"]


def is_unready(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet reports a Pod as not Ready; a new Pod has no report yet."""
    return _readiness(pod) == "False"


def _readiness(pod: Mapping[str, Any]) -> str:
    """Returns ``True``, ``False`` or ``Unknown`` from the Pod's condition Ready; empty without it."""
    conditions = conditions_of(status_of(pod))
    return next((text(item, "status") for item in conditions if item["type"] == "Ready"), "")


def _is_finished(pod: Mapping[str, Any]) -> bool:
    return status_of(pod).get("phase") in _FINISHED
