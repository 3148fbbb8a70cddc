"""Finds what keeps requests from the replicas, as the cluster's own objects show it.

Replicas report what they enforce. Whether a request arrives is for other objects to say: the Services
that webhooks call, their endpoints, the Pods' containers, and the CRDs of policies.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from webhook.api import pod_status
from webhook.api.config import CONFIG, CONFIG_NAME, WEBHOOK_PROCESS, excluded_namespaces
from webhook.api.gvk import GroupVersionKind, labels_of, name_of, text
from webhook.api.names import IGNORE
from webhook.api.resource import Resource
from webhook.api.shapes import object_of, objects_of
from webhook.cli.cluster_access import TEMPLATES, list_objects
from webhook.cli.cluster_policies import arguments_of
from webhook.cli.status.certificates import WEBHOOKS, bundle_faults, certificate_faults
from webhook.cli.status.workloads import read_workload_faults
from webhook.cli.terminal import complain
from webhook.cluster.discovery import Discovery
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import PODS, SECRETS
from webhook.cluster.replica_reports import ReportForbidden, read_report
from webhook.policy_kinds.known import STATUS_KINDS
from webhook.replicas.pods import AUDIT_PODS, replica

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.cluster.client import ClusterClient

SERVICES: Final = Resource(GroupVersionKind("", "v1", "Service"), "services", namespaced=True)
ENDPOINT_SLICES: Final = Resource(
    GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice"), "endpointslices", namespaced=True
)
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""The label of EndpointSlices with the name of their Service."""

SECRET_NAME: Final = "waddle-webhook-server-cert"  # noqa: S105  # a name
"""The Secret of the serving certificate, unless the replicas' flag names another."""

SHOWN: Final = 10
"""The most namespaces in one line."""


async def read_outages(
    client: ClusterClient,
    namespace: str,
    configured: Sequence[Mapping[str, Any]],
    pods: Collection[Mapping[str, Any]],
) -> list[str]:
    """Returns a sentence for each cause, with what to do next.

    ``configured`` are webhook configurations, Namespaces and Configs; ``namespace`` is Waddle's.
    Services and endpoints that the user may not list are left out. Raises
    :class:`~webhook.cluster.errors.ApiError` and :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    called = services_called(configured, namespace)
    lines = await read_workload_faults(client, namespace, pods)
    if called:
        try:
            services = await list_objects(client, SERVICES, namespace)
            slices = await list_objects(client, ENDPOINT_SLICES, namespace)
        except ApiError as error:
            if not error.is_forbidden:
                raise
        else:
            lines += service_faults(called, services, slices)
    lines += await _read_reports(client, namespace, pods)
    lines += await _certificate_faults(client, namespace, configured, called, pods)
    try:
        await client.request("GET", TEMPLATES.collection(), query={"limit": "1"})
    except ApiError as error:
        if not error.is_absent:
            raise
        lines.append(
            "the API server serves no ConstraintTemplate, so there is no policy of this kind: apply "
            "manifests/crds, then the policies"
        )
    served = await Discovery(client).kinds(pod_status.GROUP, pod_status.VERSION)
    lines += unreported([resource.gvk.kind for resource in served])
    return [*lines, *left_out(configured)]


def unreported(served: Collection[str]) -> Iterator[str]:
    """Returns the kinds of statuses whose CRD is missing, by the kinds that are served."""
    missing = [kind.kind for kind in STATUS_KINDS if kind.kind not in served]
    if missing:
        yield (
            f"the API server serves no {_list(missing)}, so replicas cannot report what they enforce, "
            "and policies look missing: apply manifests/crds"
        )


async def _certificate_faults(
    client: ClusterClient,
    namespace: str,
    configured: Sequence[Mapping[str, Any]],
    called: Iterable[str],
    pods: Iterable[Mapping[str, Any]],
) -> list[str]:
    """Returns why the API server does not trust replicas; the Secret counts if the user may read it.

    Replicas with a directory of certificates keep none in a Secret.
    """
    arguments = [argument for pod in pods for argument in arguments_of(pod)]
    if any(argument.startswith("--cert-dir=") for argument in arguments):
        return list(bundle_faults(configured, namespace, None))
    flag = "--cert-secret-name="
    named = [item.removeprefix(flag) for item in arguments if item.startswith(flag)]
    try:
        secret = await client.get(SECRETS, named[-1] if named else SECRET_NAME, namespace)
    except ApiError as error:
        if not (error.is_forbidden or error.is_absent):
            raise
        return list(bundle_faults(configured, namespace, None))
    names = [f"{service}.{namespace}.svc" for service in called]
    now = dt.datetime.now(tz=dt.UTC)
    return [
        *certificate_faults(secret, names[0] if len(names) == 1 else "", now, namespace),
        *bundle_faults(configured, namespace, secret),
    ]


def services_called(
    configured: Iterable[Mapping[str, Any]], namespace: str
) -> dict[str, set[tuple[str, str]]]:
    """Returns by Service of a namespace the webhooks that call it, each with its failure policy."""
    called: dict[str, set[tuple[str, str]]] = {}
    for webhook in _webhooks(configured):
        service = object_of(object_of(webhook.get("clientConfig")).get("service"))
        if text(service, "namespace") == namespace and (name := text(service, "name")):
            policy = text(webhook, "failurePolicy") or "Fail"
            called.setdefault(name, set()).add((text(webhook, "name"), policy))
    return called


def service_faults(
    called: Mapping[str, Iterable[tuple[str, str]]],
    services: Iterable[Mapping[str, Any]],
    slices: Iterable[Mapping[str, Any]],
) -> Iterator[str]:
    """Returns the Services that lead to no replica, with what the API server does meanwhile."""
    existing = {name_of(service) for service in services}
    ready = {
        labels_of(item).get(SERVICE_NAME)
        for item in slices
        if any(
            object_of(endpoint.get("conditions")).get("ready") is not False
            for endpoint in objects_of(item.get("endpoints"))
        )
    }
    for name in sorted(called):
        if name in ready and name in existing:
            continue
        fault, cure = "has no ready endpoint", "look at the Pods, and at the Service's selector"
        if name not in existing:
            fault, cure = "does not exist", "apply the manifests"
        webhooks = sorted(called[name])
        meanwhile = "; ".join(
            f"requests of {webhook} are {'let through' if policy == 'Ignore' else 'refused'}"
            for webhook, policy in webhooks
        )
        yield f"the Service {name} {fault}, so nothing is decided ({meanwhile}): {cure}"


def left_out(configured: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Returns the namespaces whose requests no policy decides, by label and by Config."""
    documents = list(configured)
    labelled = sorted(
        name_of(item)
        for item in documents
        if item.get("kind") == "Namespace" and IGNORE in labels_of(item)
    )
    if labelled:
        yield f"no policy decides in namespaces with the label {IGNORE}: {_list(labelled)}"
    for item in documents:
        if item.get("kind") == CONFIG.kind and name_of(item) == CONFIG_NAME:
            excluded = excluded_namespaces(item, WEBHOOK_PROCESS)
            if excluded:
                yield f"no policy decides in namespaces that Config excludes: {_list(excluded)}"


def _list(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _webhooks(configured: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for document in configured:
        if document.get("kind") in WEBHOOKS:
            yield from objects_of(document.get("webhooks"))


async def _read_reports(
    client: ClusterClient, namespace: str, pods: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Returns a sentence for each fault that replicas and audit report, with their names.

    ``pods`` are the replicas' Pods. Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    audits = await list_objects(client, PODS, namespace, {"labelSelector": AUDIT_PODS})
    reports: dict[str, asyncio.Task[list[str]]] = {}
    async with asyncio.TaskGroup() as tasks:
        for pod in (*pods, *audits):
            if not replica(pod).finished:
                report = _read_report(client, namespace, pod)
                reports[name_of(pod)] = tasks.create_task(report)
    replicas: dict[str, list[str]] = {}
    for name, report_of_pod in reports.items():
        for fault in report_of_pod.result():
            replicas.setdefault(fault, []).append(name)
    return [f"{', '.join(names)}: {fault}" for fault, names in replicas.items()]


async def _read_report(client: ClusterClient, namespace: str, pod: Mapping[str, Any]) -> list[str]:
    try:
        return await read_report(client, namespace, pod) or []
    except ReportForbidden as error:
        complain(str(error))
        return []
