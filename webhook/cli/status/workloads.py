"""Why Pods of Waddle do not run, differ, or cannot be replaced: Pods, Deployments and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind, name_of, text
from webhook.api.resource import Resource
from webhook.api.shapes import conditions_of, integer_of, object_of, objects_of, status_of
from webhook.cli.cluster_access import list_objects
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.cluster.client import ClusterClient

BUDGETS: Final = Resource(
    GroupVersionKind("policy", "v1", "PodDisruptionBudget"), "poddisruptionbudgets", namespaced=True
)

_BAD: Final = {"ReplicaFailure": "True", "Progressing": "False"}
"""Conditions of a Deployment that say that it cannot make its Pods, by the status that says so."""


async def read_workload_faults(
    client: ClusterClient, namespace: str, pods: Collection[Mapping[str, Any]]
) -> list[str]:
    """Returns a sentence for each fault, with what to do next.

    What the user may not list is left out. Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    lines = [line for pod in pods for line in pod_faults(pod)]
    lines += version_faults(pods, namespace)
    for resource, faults in ((DEPLOYMENTS, deployment_faults), (BUDGETS, budget_faults)):
        try:
            documents = await list_objects(client, resource, namespace)
        except ApiError as error:
            if not error.is_forbidden:
                raise
        else:
            lines += [line for item in documents for line in faults(item, namespace)]
    return lines


def pod_faults(pod: Mapping[str, Any]) -> Iterator[str]:
    """Returns why a Pod does not run, or how its container ended."""
    status = status_of(pod)
    for condition in conditions_of(status):
        if condition["type"] == "PodScheduled" and condition.get("status") == "False":
            yield f"{name_of(pod)}: not scheduled: {text(condition, 'message')}"
    for container in objects_of(status.get("containerStatuses")):
        ended = object_of(object_of(container.get("lastState")).get("terminated"))
        waiting = object_of(object_of(container.get("state")).get("waiting"))
        parts = []
        if text(waiting, "reason") not in ("", "ContainerCreating"):
            parts.append(": ".join(filter(None, (waiting["reason"], text(waiting, "message")))))
        if ended:
            times, reason = integer_of(container.get("restartCount")), text(ended, "reason")
            cure = ": raise its memory limit" if reason == "OOMKilled" else ""
            cause = reason if cure else f"{reason}, exit code {ended.get('exitCode')}"
            at = text(ended, "finishedAt")
            parts.append(f"{times} restarts, the last after {cause} at {at}{cure}")
        if parts:
            yield f"{name_of(pod)}: container {text(container, 'name')}: {'; '.join(parts)}"


def version_faults(pods: Iterable[Mapping[str, Any]], namespace: str) -> Iterator[str]:
    """Returns which replicas run another image than others."""
    images: dict[str, list[str]] = {}
    for pod in pods:
        containers = objects_of(object_of(pod.get("spec")).get("containers"))
        for container in containers:
            if text(container, "name") == "webhook":
                images.setdefault(text(container, "image"), []).append(name_of(pod))
    if len(images) > 1:
        listed = "; ".join(f"{image} on {', '.join(names)}" for image, names in images.items())
        yield (
            f"replicas run different images: {listed}: a roll-out goes on, or does not end (kubectl -n "
            f"{namespace} rollout status deployment/waddle-webhook)"
        )


def deployment_faults(deployment: Mapping[str, Any], namespace: str) -> Iterator[str]:
    """Returns why a Deployment of Waddle cannot make its Pods, or does not end its roll-out."""
    if text(deployment, "metadata", "labels", "app.kubernetes.io/name") != "waddle":
        return
    name = name_of(deployment)
    for condition in conditions_of(status_of(deployment)):
        if condition.get("status") == _BAD.get(condition["type"]):
            yield (
                f"Deployment {name}: {text(condition, 'reason')}: {text(condition, 'message')}: kubectl "
                f"-n {namespace} describe replicaset -l app.kubernetes.io/name=waddle has the events"
            )


def budget_faults(budget: Mapping[str, Any], namespace: str) -> Iterator[str]:
    """Returns that a PodDisruptionBudget allows no eviction of Waddle's Pods now."""
    status = status_of(budget)
    expected, allowed = integer_of(status.get("expectedPods")), status.get("disruptionsAllowed")
    if text(budget, "metadata", "labels", "app.kubernetes.io/name") != "waddle" or not expected:
        return
    if allowed == 0:
        healthy, needed = (
            integer_of(status.get(key)) for key in ("currentHealthy", "desiredHealthy")
        )
        yield (
            f"the PodDisruptionBudget {name_of(budget)} allows no eviction, so that no node with a "
            f"replica can be drained: {healthy} of {expected} Pods are ready, and {needed} are needed: "
            f"bring those back that are not ready (kubectl -n {namespace} get pods)"
        )
