"""Synced kinds: which paths of their objects replicas keep, and which templates wait for more.

Replicas derive the paths from the templates (:mod:`webhook.controllers.apply.projection`). The command
derives the same from the same templates, so no replica writes it down.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.config import CONFIG, SYNC_SET, synced_kinds
from webhook.api.gvk import name_of, text
from webhook.api.resource import Resource
from webhook.api.shapes import integer_of, object_of, objects_of, texts_of
from webhook.cli.cluster_access import list_objects
from webhook.constraint.drivers.reads import inventory_reads
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.template import read_template
from webhook.reads.read_set import WHOLE
from webhook.reads.storage import NOTHING, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.status.convergence import Convergence
    from webhook.reads.read_set import ReadSet

_WHOLE_FLAGS: Final = (
    ("--sync-projection=false",),
    ("--enable-validate-policy", "--enable-validate-policy=true"),
    ("--kyverno-policies=audit", "--kyverno-policies=enforce"),
)
"""Arguments of a replica with which objects are kept whole, in the order in which they are named."""

_KINDS: Final = re.compile("; | or ")
"""Between the kinds in the text of ``missing_data`` (:func:`webhook.controllers.requirements.missing_text`)."""


class SyncedKind(NamedTuple):
    """One synced kind.

    ``paths`` is ``("*",)`` for whole objects, and ``why_whole`` then says why; no path means that
    only the presence of objects is kept. ``objects`` is how many there are, None where that may not
    be read. ``waiting`` are the templates that wait for this kind's data.
    """

    gvk: GroupVersionKind
    paths: tuple[str, ...]
    why_whole: str
    objects: int | None
    waiting: tuple[str, ...]


def synced_kinds_of(
    sources: Iterable[Mapping[str, Any]],
    templates: Sequence[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    converged: Iterable[Convergence],
    counts: Mapping[GroupVersionKind, int],
) -> list[SyncedKind]:
    """Return a row for each kind that ``sources`` (the Config and SyncSets) name, in order."""
    reads = _reads_by_template(templates)
    flag = _whole_flag(pods)
    waiting = _waiting(converged)
    return [
        _row(gvk, reads, flag, counts.get(gvk), waiting)
        for gvk in sorted(frozenset().union(*map(synced_kinds, sources)))
    ]


def _row(
    gvk: GroupVersionKind,
    reads: Mapping[str, ReadSet],
    flag: str,
    count: int | None,
    waiting: Mapping[str, frozenset[str]],
) -> SyncedKind:
    kept, readers = NOTHING, []
    for name, one in reads.items():
        of = of_kind(one, gvk.group_version, gvk.kind)
        kept = kept | of
        readers += [name] * of.whole
    why = flag or (f"read by {', '.join(readers)}" if readers else "")
    if not why and (gvk.group_kind == ("", "Namespace") or gvk.group.endswith("gatekeeper.sh")):
        why = "replicas need them"
    paths = ("*",) if why else tuple(kept.texts)
    names = tuple(sorted(name for name, kinds in waiting.items() if str(gvk) in kinds))
    return SyncedKind(gvk, paths, why, count, names)


def _reads_by_template(templates: Sequence[Mapping[str, Any]]) -> dict[str, ReadSet]:
    """Return what each template that can be used reads of synced data."""
    reads = {}
    for document in templates:
        try:
            template = read_template(document)
        except ConstraintFrameworkError:
            continue
        read = inventory_reads(template)
        reads[name_of(document)] = WHOLE if read is None else read
    return reads


def _whole_flag(pods: Iterable[Mapping[str, Any]]) -> str:
    """Return the argument of a replica with which all objects are kept whole; empty for none."""
    given = {
        one
        for pod in pods
        for container in objects_of(object_of(pod.get("spec")).get("containers"))
        for field in ("command", "args")
        for one in texts_of(container.get(field))
    }
    return next((one for group in _WHOLE_FLAGS for one in group if one in given), "")


def _waiting(converged: Iterable[Convergence]) -> dict[str, frozenset[str]]:
    """Return the templates that a replica withholds until data has come, each with its kinds."""
    waiting: dict[str, frozenset[str]] = {}
    for item in converged:
        for standing in item.standings:
            for error in standing.errors:
                if error.get("code") == "missing_data":
                    kinds = _KINDS.split(text(error, "message").partition(": ")[2])
                    waiting[item.name] = waiting.get(item.name, frozenset()).union(kinds)
    return waiting


async def read_synced(
    client: ClusterClient,
    namespace: str,
    templates: Sequence[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    converged: Iterable[Convergence],
) -> list[SyncedKind]:
    """Read the Config, the SyncSets and how many objects there are of each kind that they name.

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
    return synced_kinds_of(sources, templates, pods, converged, counts)


async def _count(client: ClusterClient, discovery: Any, gvk: GroupVersionKind) -> int | None:
    """Return how many objects of a kind there are, from a list of one; None where it is not served."""
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
