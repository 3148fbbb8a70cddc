"""Finds the objects that an installation left in a cluster, and removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api import pod_status
from webhook.cli import exit_codes
from webhook.cli.cluster_access import failure_text, list_objects
from webhook.cli.terminal import complain, write
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import (
    CRDS,
    MUTATING_CONFIGURATIONS,
    PODS,
    POLICIES,
    POLICY_BINDINGS,
    WEBHOOK_CONFIGURATIONS,
)
from webhook.constraint import constraint
from webhook.constraint.template import GROUP as TEMPLATES_GROUP
from webhook.controllers.generate.objects import owner_of
from webhook.policy_kinds import known, table
from webhook.replicas.pods import AUDIT_PODS, WEBHOOK_PODS
from webhook.reports.finding import SOURCE
from webhook.reports.report import MANAGED_BY
from webhook.reports.report_api import APIS
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webhook.api.resource import Resource
    from webhook.cluster.store import Object

GROUPS: Final = tuple(
    sorted({"policy.waddle.dev", pod_status.GROUP, *known.GROUPS} - {table.CONSTRAINTS.group})
)
"""The API groups of the CRDs in the manifests."""

_GATEKEEPER: Final = "gatekeeper-validating-webhook-configuration"


@dataclass(frozen=True, slots=True)
class Uninstallation:
    """The objects to remove, and their installation."""

    webhooks: bool
    policies: bool
    name: str
    namespace: str


class MustStay(Exception):
    """The reason why no object may be removed now."""


def run(
    chosen: Uninstallation, *, remove: bool, kubeconfig: str | None, context: str | None
) -> int:
    """Lists the objects, or removes them; returns the exit code."""

    async def go() -> int:
        async with ClusterClient(load_credentials(kubeconfig, context=context)) as client:
            if chosen.policies and remove:
                await _check(client, chosen)
            count = 0
            async for resource, item in _found(client, chosen):
                metadata = item["metadata"]
                name, namespace = metadata["name"], metadata.get("namespace", "")
                if remove:
                    await client.delete(resource, name, namespace, uid=metadata["uid"])
                where = f"{namespace}/{name}" if namespace else name
                write(f"{resource.plural}/{where} {'removed' if remove else 'would be removed'}")
                count += 1
            return count

    try:
        count = event_loop.run(go())
    except MustStay as error:
        complain(str(error))
        return exit_codes.NO
    except (ApiError, ApiUnreachable, CredentialsError) as error:
        complain(failure_text(error))
        return exit_codes.UNKNOWN
    if not count:
        write("this cluster has no objects of Waddle")
    elif not remove:
        write("nothing was removed: add --yes to remove it")
    return exit_codes.OK


async def _check(client: ClusterClient, chosen: Uninstallation) -> None:
    """Raises :class:`MustStay` if Gatekeeper uses the policies, or Pods would recreate them."""
    try:
        await client.get(WEBHOOK_CONFIGURATIONS, _GATEKEEPER)
    except ApiError as error:
        if not error.is_absent:
            raise
    else:
        raise MustStay(f"Gatekeeper is installed ({_GATEKEEPER}) and uses these policies, too")
    for label in (WEBHOOK_PODS, AUDIT_PODS):
        pods = await list_objects(client, PODS, chosen.namespace, {"labelSelector": label})
        if pods:
            names = ", ".join(pod["metadata"]["name"] for pod in pods[:3])
            raise MustStay(
                f"Pods of Waddle in {chosen.namespace} ({names}) would recreate what is removed:"
                " delete its Deployments first"
            )


async def _found(
    client: ClusterClient, chosen: Uninstallation
) -> AsyncIterator[tuple[Resource, Object]]:
    """Yields the objects in the order of removal.

    Objects that may refuse a request come first, CRDs last.
    """
    if chosen.webhooks:
        for resource, kind in (
            (WEBHOOK_CONFIGURATIONS, "validating"),
            (MUTATING_CONFIGURATIONS, "mutating"),
        ):
            try:
                item = await client.get(resource, f"{chosen.name}-{kind}-webhook-configuration")
            except ApiError as error:
                if not error.is_absent:
                    raise
            else:
                yield resource, item
    if not chosen.policies:
        return
    # Bindings before policies: a policy without a binding refuses no request, a binding without a
    # policy may.
    for resource in (POLICY_BINDINGS, POLICIES):
        for item in await list_objects(client, resource):
            if _is_generated(item):
                yield resource, item
    for api in APIS.values():
        for resource in api.resources:
            labels = {"labelSelector": f"{MANAGED_BY}={SOURCE}"}
            for item in await list_objects(client, resource, query=labels):
                yield resource, item
    crds = [item for item in await list_objects(client, CRDS) if _is_ours(item)]
    # CRDs of constraints before the CRD of templates, from which replicas would create them again.
    for item in sorted(crds, key=lambda crd: crd["spec"]["group"] != constraint.GROUP):
        yield CRDS, item


def _is_generated(item: Object) -> bool:
    owner: Any = owner_of(item)
    group = str(owner.get("apiVersion", "")).partition("/")[0]
    return group in (constraint.GROUP, TEMPLATES_GROUP)


def _is_ours(crd: Object) -> bool:
    return crd["spec"]["group"] in (*GROUPS, constraint.GROUP)
