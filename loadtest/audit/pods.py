"""A cluster full of Pods, half of which violate policies."""

import asyncio
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials

BODIES = Path(__file__).resolve().parent.parent / "bodies"
SPACES = 20
"""Namespaces that the Pods are usually spread over."""

AT_ONCE = 12

PODS = Resource(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
NAMESPACES = Resource(GroupVersionKind("", "v1", "Namespace"), "namespaces", namespaced=False)
ACCOUNTS = Resource(
    GroupVersionKind("", "v1", "ServiceAccount"), "serviceaccounts", namespaced=True
)


def fill(kubeconfig: Path, first: int, last: int, spaces: int = SPACES) -> None:
    """Make Pods of these numbers, spread over so many namespaces."""
    event_loop.run(_fill(kubeconfig, first, last, spaces))


def change(kubeconfig: Path, numbers: Collection[int], value: str) -> None:
    """Give an annotation of Pods of these numbers another value."""
    if numbers:
        event_loop.run(_change(kubeconfig, numbers, value))


async def _change(kubeconfig: Path, numbers: Collection[int], value: str) -> None:
    async with ClusterClient(load_credentials(kubeconfig)) as client:
        for number in numbers:
            body = {"metadata": {"annotations": {"changed": value}}}
            await client.merge(PODS, f"pod-{number}", _space(number % SPACES), body)


async def _fill(kubeconfig: Path, first: int, last: int, spaces: int) -> None:
    bodies = [_pod(name) for name in ("pod", "pod_bad")]
    async with ClusterClient(load_credentials(kubeconfig)) as client:
        for number in range(spaces):
            await client.apply(NAMESPACES, _object("v1", "Namespace", _space(number)))
            account = _object("v1", "ServiceAccount", "default", _space(number))
            await client.apply(ACCOUNTS, account)
        numbers = iter(range(first, last))

        async def work() -> None:
            for number in numbers:
                pod = bodies[number % len(bodies)]
                space = _space(number % spaces)
                metadata = {**pod["metadata"], "name": f"pod-{number}", "namespace": space}
                await client.create(PODS, {**pod, "metadata": metadata}, space)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(work())


def _space(number: int) -> str:
    return f"audited-{number}"


def _object(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _pod(name: str) -> dict[str, Any]:
    """The Pod of a benchmark's body, as a user would make it: it has no owner that is gone."""
    pod: dict[str, Any] = json.loads((BODIES / f"{name}.json").read_text())["request"]["object"]
    metadata = {
        key: value for key, value in pod["metadata"].items() if key in ("labels", "annotations")
    }
    spec = {key: value for key, value in pod["spec"].items() if key not in _NOT_OURS}
    for container in spec["containers"]:
        context = container.get("securityContext", {})
        if context.get("privileged"):
            context["allowPrivilegeEscalation"] = True  # the API server admits no other
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_NOT_OURS = ("nodeName", "serviceAccountName", "serviceAccount", "priorityClassName", "priority")
"""Fields that the API server fills in, or that refer to objects of the cluster."""
