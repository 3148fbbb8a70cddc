"""Reads a cluster's webhook configurations, and the objects that decide about their coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of, objects_of
from webhook.cluster.kinds import MUTATING_CONFIGURATIONS, NAMESPACES, WEBHOOK_CONFIGURATIONS
from webhook.policy_kinds.table import CONFIGS, EXPANSION_TEMPLATES, TEMPLATES

if TYPE_CHECKING:
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient

_KINDS: Final = (
    WEBHOOK_CONFIGURATIONS,
    MUTATING_CONFIGURATIONS,
    TEMPLATES.resource,
    EXPANSION_TEMPLATES.resource,
    NAMESPACES,
)


async def read_webhook_configurations(
    client: ClusterClient, namespace: str
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """Reads these objects of a cluster; returns them, and the kinds that could be read.

    A kind that the user may not read is left out without an error.
    """
    documents: list[dict[str, Any]] = []
    read = []
    for resource in _KINDS:
        listed = await _listed(client, resource)
        if listed is not None:
            documents += listed
            read.append(resource.gvk.kind)
    documents += await _listed(client, CONFIGS.resource, namespace) or ()
    return documents, frozenset(read)


async def _listed(
    client: ClusterClient, resource: Resource, namespace: str = ""
) -> list[dict[str, Any]] | None:
    """Reads all objects of a kind; None if the kind is not served, or may not be listed."""
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # brings aiohttp

    try:
        answer = await client.request("GET", resource.collection(namespace))
    except ApiError as error:
        if error.is_absent or error.is_forbidden:
            return None
        raise
    gvk = resource.gvk
    named = {"apiVersion": gvk.group_version, "kind": gvk.kind}
    return [{**item, **named} for item in objects_of(object_of(answer).get("items"))]
