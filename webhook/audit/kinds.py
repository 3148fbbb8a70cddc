"""Finds the kinds that can be listed, and those of them that a constraint can match.

One version of each resource is audited, the group's preferred one, as in Gatekeeper. The API server
returns all kinds in two responses (aggregated discovery, Kubernetes 1.27).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.api.gvk import GroupKind, GroupVersionKind, name_of, text
from webhook.api.resource import Resource
from webhook.api.shapes import Json, object_of, objects_of, texts_of
from webhook.cluster.errors import ApiUnreachable
from webhook.constraint import enforcement
from webhook.constraint.targets import admission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from webhook.cluster.client import ClusterClient
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot

_LIST: Final = "APIGroupDiscoveryList"
_ACCEPT: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as={_LIST}"
    for version in ("v2", "v2beta1")
)


async def listable(client: ClusterClient) -> tuple[Resource, ...]:
    """Returns every kind that the API server lists, in order of group and kind.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    kinds: dict[GroupVersionKind, Resource] = {}
    for path in ("/api", "/apis"):
        answer = await client.request("GET", path, accept=_ACCEPT)
        content = object_of(answer)
        groups = content.get("items")
        is_list = groups is None or type(groups) is list  # Go writes an empty one as null.
        if content.get("kind") != _LIST or not is_list:
            raise ApiUnreachable(f"{path}: no aggregated discovery: Kubernetes 1.27 has it")
        for group in objects_of(groups):
            if path == "/apis" and not name_of(group):
                continue  # Only the core group has no name.
            for resource in _preferred(group):
                # A kind under two plurals is one kind.
                kinds.setdefault(resource.gvk, resource)
    return tuple(resource for _, resource in sorted(kinds.items()))


def _preferred(group: Json) -> Iterator[Resource]:
    """Returns a group's resources at their first version: versions are in order of preference.

    Entries of another shape are left out.
    """
    name = name_of(group)
    seen: set[str] = set()
    for version in objects_of(group.get("versions")):
        stated = text(version, "version")
        for entry in objects_of(version.get("resources")):
            plural = text(entry, "resource")
            if not stated or not plural or plural in seen:
                continue
            seen.add(plural)
            kind = text(entry, "responseKind", "kind")
            if kind and "list" in texts_of(entry.get("verbs")):
                gvk = GroupVersionKind(name, stated, kind)
                yield Resource(gvk, plural, namespaced=entry.get("scope") == "Namespaced")


def is_matchable(snapshot: Snapshot, expansion: Expansion, gvk: GroupVersionKind) -> bool:
    """Returns whether a constraint at the audit's point can match this kind, or its implied kinds.

    Broken constraints count, too: each object is then reported as undecided.
    """
    plans = (
        snapshot.plan(enforcement.AUDIT, admission.NAME, key) for key in group_kinds(expansion, gvk)
    )
    return any(plan.steps or plan.broken for plan in plans)


def group_kinds(expansion: Expansion, gvk: GroupVersionKind) -> frozenset[GroupKind]:
    """Returns the kinds reviewed with an object of this kind: its own, and the implied ones."""
    return frozenset({gvk.group_kind, *(item.group_kind for item in expansion.implied(gvk))})


def undecided(
    snapshot: Snapshot,
    expansion: Expansion,
    failed: Iterable[GroupVersionKind],
    faulty_templates: Collection[str],
) -> frozenset[tuple[str, str]]:
    """Returns constraints with a failed kind or template, by kind and name."""
    keys = frozenset().union(*(group_kinds(expansion, gvk) for gvk in failed))
    return frozenset(
        constraint.key
        for constraint in snapshot.constraints
        if constraint.kind in faulty_templates or any(_selects(constraint, key) for key in keys)
    )


def unseen(
    snapshot: Snapshot,
    expansion: Expansion,
    seen: Iterable[GroupVersionKind],
    unseen_kinds: Iterable[GroupVersionKind],
) -> frozenset[tuple[str, str]]:
    """Returns the constraints without reviewed objects, although kinds for them exist."""
    looked_at = frozenset().union(*(group_kinds(expansion, gvk) for gvk in seen))
    others = frozenset().union(*(group_kinds(expansion, gvk) for gvk in unseen_kinds))
    return frozenset(
        constraint.key
        for constraint in snapshot.constraints
        if any(_selects(constraint, key) for key in others)
        and not any(_selects(constraint, key) for key in looked_at)
    )


def _selects(constraint: Constraint, key: GroupKind) -> bool:
    if not enforcement.applies(constraint, (enforcement.AUDIT,)):
        return False
    return constraint.match is None or constraint.match.selects(key)
