"""Referential data: the tree that policies read as ``data.inventory``, and the Namespaces.

``cluster[groupVersion][kind][name]`` and
``namespace[namespace][groupVersion][kind][name]``. A published tree is never
changed: the first change after a publication copies the levels on its path.

Each level of a published tree, up to :data:`ORDERED_MAX`, is in order of its names. CEL iterates it
as it stands, so a message that depends on the order is the same on every replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.api.gvk import GroupVersionKind, split_group_version

NAMESPACES: Final = ("cluster", "v1", "Namespace")

ORDERED_MAX: Final = 10_000
"""A level with more names keeps the order of its events. Putting 10,000 names in order takes 1 ms at
each change, 100,000 names 35 ms.
"""


class Inventory:
    """The tree under construction, for one task."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        # Levels made since the last publication, by identity: they may be changed in place.
        self._own: dict[int, dict[str, Any]] = {}
        self._unordered: dict[int, dict[str, Any]] = {}
        """Own levels to which a name was added out of order."""

    def put(self, path: tuple[str, ...], value: Mapping[str, Any] | None) -> None:
        """Sets the value at a path; None removes it and levels that become empty."""
        root = self._level(self._root)
        self._root = root
        if value is None:
            self._remove(root, path)
            return
        level = root
        for name in path[:-1]:
            below = self._level(level.get(name))
            self._set(level, name, below)
            level = below
        self._set(level, path[-1], value)

    def get(self, path: tuple[str, ...]) -> Mapping[str, Any] | None:
        """Returns the value at a path; None where there is none."""
        level: Any = self._root
        for name in path:
            level = level.get(name)
            if level is None:
                return None
        value: Mapping[str, Any] = level
        return value

    def adopt(self, root: Mapping[str, Any]) -> None:
        """Begins with a published tree, without changing it."""
        self._root = dict(root)
        self._own = {}
        self._unordered = {}

    def publish(self) -> Mapping[str, Any]:
        """Returns the current tree, which is never changed afterwards."""
        for level in self._unordered.values():
            ordered = {name: level[name] for name in sorted(level)}
            level.clear()
            level.update(ordered)
        self._unordered.clear()
        self._own.clear()
        return self._root

    def publish_namespaces(self) -> Mapping[str, Any]:
        """Returns the Namespaces by name, a part of the published tree."""
        level: Mapping[str, Any] = self._root
        for name in NAMESPACES:
            level = level.get(name) or {}
        return level

    def _level(self, level: dict[str, Any] | None) -> dict[str, Any]:
        if level is not None and id(level) in self._own:
            return level
        copy = {} if level is None else dict(level)
        self._own[id(copy)] = copy
        return copy

    def _set(self, level: dict[str, Any], name: str, value: Any) -> None:
        if (
            level
            and len(level) < ORDERED_MAX
            and name not in level
            and name < next(reversed(level))
        ):
            self._unordered[id(level)] = level
        level[name] = value

    def _remove(self, level: dict[str, Any], path: tuple[str, ...]) -> None:
        name, *rest = path
        if name not in level:
            return
        if rest:
            below = self._level(level[name])
            level[name] = below
            self._remove(below, tuple(rest))
            if below:
                return
        del level[name]


def kinds_of(inventory: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
    """Yields the kinds of the objects in a published tree, again for each namespace."""
    for place in (inventory.get("cluster") or {}, *(inventory.get("namespace") or {}).values()):
        for api_version, kinds in place.items():
            for kind in kinds:
                yield GroupVersionKind(*split_group_version(api_version), kind)
