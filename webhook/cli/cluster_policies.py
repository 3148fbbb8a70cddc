"""The policies of a cluster as they are in force there: each at its stage of a roll-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api import config
from webhook.api.gvk import gvk_of, name_of
from webhook.cli.cluster_access import EXTENSIONS, TEMPLATES, list_objects
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError
from webhook.constraint import constraint, rollout
from webhook.constraint import expansion as expansions
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.mutation import mutator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.client import Client


async def read_constraints(client: ClusterClient, policies: Client) -> tuple[int, list[str]]:
    """Fill a client with templates and constraints; how many templates there are, and faults.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`, as all here.
    """
    templates = await list_objects(client, TEMPLATES)
    faults = add_each(templates, policies.add_template)
    for resource in await Discovery(client).kinds(constraint.GROUP, "v1beta1"):
        documents = await list_objects(client, resource)
        staged = [rollout.staged(item, item.get("status")) for item in documents]
        faults += add_each(staged, policies.add_constraint)
    return len(templates), faults


async def read_extensions(client: ClusterClient) -> tuple[list[dict[str, Any]], list[str]]:
    """The mutators and ExpansionTemplates, and the kinds of them that may not be listed."""
    documents, unreadable = [], []
    for kind in EXTENSIONS:
        try:
            documents += [_staged(item) for item in await list_objects(client, kind)]
        except ApiError as error:
            if not error.is_forbidden:
                raise
            unreadable.append(f"no right to list: {kind.gvk}")
    return documents, unreadable


def _staged(document: Object) -> dict[str, Any]:
    if gvk_of(document).group == expansions.GROUP:
        return document
    return dict(mutator.staged(document, document.get("status")))


async def read_configuration(client: ClusterClient, namespace: str) -> list[Mapping[str, Any]]:
    """The Config that counts, which is in Waddle's ``namespace``, and the SyncSets."""
    policies: list[Mapping[str, Any]] = []
    for gvk in (config.CONFIG, config.SYNC_SET):
        policies += [
            document
            for document in await list_kind(client, gvk)
            if gvk == config.SYNC_SET
            or (name_of(document), document["metadata"].get("namespace"))
            == (config.CONFIG_NAME, namespace)
        ]
    return policies


async def read_configs(
    client: ClusterClient, namespace: str
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The Config that counts, or why it may not be read."""
    try:
        configuration = await read_configuration(client, namespace)
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return [], [f"no right to list: {config.CONFIG}"]
    return [item for item in configuration if gvk_of(item).kind == config.CONFIG.kind], []


async def list_kind(client: ClusterClient, gvk: GroupVersionKind) -> list[Object]:
    """Every object of a kind; none where it is not served."""
    try:
        resource = await Discovery(client).resource(gvk)
    except UnknownKind:
        return []
    return await list_objects(client, resource)


def add_each(documents: Iterable[Mapping[str, Any]], add: Callable[[Any], Any]) -> list[str]:
    """Add what can be; what is refused is a fault, and costs only itself."""
    faults = []
    for document in documents:
        try:
            add(document)
        except ConstraintFrameworkError as error:
            faults.append(f"{gvk_of(document).kind}/{name_of(document)}: {error}")
    return faults
