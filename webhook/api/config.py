"""Config and SyncSet: the synced data of policies, and the excluded namespaces.

Users write both, and they are read leniently: invalid parts have no effect, as in Gatekeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.api.gvk import GroupVersionKind, text

CONFIG: Final = GroupVersionKind("config.gatekeeper.sh", "v1alpha1", "Config")
CONFIG_NAME: Final = "config"
"""The name of the only Config in force, in the webhook's own namespace."""

WEBHOOK_PROCESS: Final = "webhook"
MUTATION_PROCESS: Final = "mutation-webhook"
AUDIT_PROCESS: Final = "audit"
SYNC_PROCESS: Final = "sync"
"""The processes that a Config excludes namespaces from."""

PROCESSES: Final = (WEBHOOK_PROCESS, AUDIT_PROCESS, SYNC_PROCESS, MUTATION_PROCESS, "*")
"""All that a Config can exclude namespaces from."""

SYNC_SET: Final = GroupVersionKind("syncset.gatekeeper.sh", "v1alpha1", "SyncSet")


def excluded_namespaces(config: Mapping[str, Any], process: str) -> tuple[str, ...]:
    """The patterns of namespaces that a Config excludes from a process (``webhook``, ``sync`` …)."""
    patterns: list[str] = []
    for entry in _list(config.get("spec"), "match"):
        if type(entry) is dict and {process, "*"}.intersection(_texts(entry, "processes")):
            patterns += _texts(entry, "excludedNamespaces")
    return tuple(dict.fromkeys(patterns))


def effectless(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the parts of a Config without effect; its fields may have any type."""
    faults = []
    if text(config, "metadata", "name") != CONFIG_NAME:
        faults.append(f"config resource must have name '{CONFIG_NAME}'")
    unknown = [
        name
        for entry in _list(config.get("spec"), "match")
        if type(entry) is dict
        for name in _texts(entry, "processes")
        if name not in PROCESSES
    ]
    faults += [
        f'spec.match: unknown process "{name}": there are {", ".join(PROCESSES)}; '
        "nothing is excluded from it"
        for name in dict.fromkeys(unknown)
    ]
    return tuple(faults)


def synced_kinds(document: Mapping[str, Any]) -> frozenset[GroupVersionKind]:
    """Returns the kinds that a Config or a SyncSet lists."""
    spec = document.get("spec")
    if document.get("kind") == SYNC_SET.kind:
        entries = _list(spec, "gvks")
    else:
        entries = _list(spec.get("sync") if type(spec) is dict else None, "syncOnly")
    kinds = (
        GroupVersionKind(text(item, "group"), text(item, "version"), text(item, "kind"))
        for item in entries
    )
    return frozenset(gvk for gvk in kinds if gvk.version and gvk.kind)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merges two Configs that differ in their synced kinds only; None if they differ in more.

    Each policy of a library brings the Config that it needs, all of one name. Excluded namespaces
    are not merged: more exclusions would enforce less than was meant.
    """
    if _without_sync(first) != _without_sync(second):
        return None
    kinds = []
    for document in (first, second):
        spec = document.get("spec")
        kinds += _list(spec.get("sync") if type(spec) is dict else None, "syncOnly")
    distinct = [item for index, item in enumerate(kinds) if item not in kinds[:index]]
    return {**first, "spec": {**_without_sync(first), "sync": {"syncOnly": distinct}}}


def _without_sync(document: Mapping[str, Any]) -> dict[str, Any]:
    spec = document.get("spec")
    return {k: v for k, v in spec.items() if k != "sync"} if type(spec) is dict else {}


def _list(value: Any, name: str) -> list[Any]:
    items = value.get(name) if type(value) is dict else None
    return items if type(items) is list else []


def _texts(entry: Mapping[str, Any], name: str) -> list[str]:
    return [item for item in _list(entry, name) if type(item) is str]
