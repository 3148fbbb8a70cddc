"""Reads the Config and SyncSets of a cluster, and counts the objects of each synced kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.config import CONFIG, SYNC_SET, synced_kinds
from webhook.api.resource import Resource
from webhook.api.shapes import integer_of, object_of, objects_of
from webhook.cli.cluster_access import list_objects
from webhook.controllers.status.synced_kinds import SyncedKind, SyncFacts, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.status.convergence import Convergence


async def read_synced(
    client: ClusterClient,
    namespace: str,
    templates: Sequence[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    converged: Iterable[Convergence],
) -> list[SyncedKind]:
    """Reads the Config and the SyncSets, and counts the objects of each kind that they name.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.cluster.discovery import Discovery  # noqa: PLC0415  # brings aiohttp

    sources = [
        *await list_objects(client, Resource(CONFIG, "configs", namespaced=True), namespace),
        *await list_objects(client, Resource(SYNC_SET, "syncsets", namespaced=False)),
    ]
    discovery, counts = Discovery(client), {}
    for gvk in sorted(frozenset().union(*map(synced_kinds, sources))):
        number = await _count(client, discovery, gvk)
        if number is not None:
            counts[gvk] = number
    return rows_of(SyncFacts.of(sources, pods, converged), templates, counts)


async def _count(client: ClusterClient, discovery: Any, gvk: GroupVersionKind) -> int | None:
    """Counts the objects of a kind by a list of one object.

    None if the kind is not served, or may not be listed.
    """
    from webhook.cluster.discovery import UnknownKind  # noqa: PLC0415  # as above
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # as above

    try:
        resource = await discovery.resource(gvk)
        page = await client.request("GET", resource.collection(), query={"limit": "1"})
    except UnknownKind:
        return None
    except ApiError as error:
        if error.is_absent or error.is_forbidden:
            return None
        raise
    more = integer_of(object_of(page.get("metadata")).get("remainingItemCount"))
    return len(objects_of(page.get("items"))) + more
