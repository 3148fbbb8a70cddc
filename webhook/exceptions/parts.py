"""Removes parts from an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of
from webhook.mutation.location import Field, ListItem
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.mutation.location import Location

_POD_SPECS: Final = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
"""The paths of a Pod's spec in Pods, workloads and CronJobs."""

_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Parts:
    """Containers by their names or images, and fields by location."""

    container: Callable[[str], bool] | None = None
    image: Callable[[str], bool] | None = None
    paths: tuple[Location, ...] = ()

    def taken_from(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the object without these parts, sharing the rest; None if it has none of them."""
        without = obj
        for path in self.paths:
            without = _without(without, path)
        if self.container is not None or self.image is not None:
            for place in _POD_SPECS:
                without = _changed(without, place, self._without_containers)
        return None if without is obj else without

    def _without_containers(self, spec: dict[str, Any]) -> dict[str, Any]:
        changed = spec
        for name in _LISTS:
            containers = spec.get(name)
            if type(containers) is not list:
                continue
            remaining = [item for item in containers if not self._is_selected(object_of(item))]
            if len(remaining) < len(containers):
                changed = {**changed, name: remaining}
        return changed

    def _is_selected(self, container: dict[str, Any]) -> bool:
        name, image = container.get("name"), container.get("image")
        if self.container is not None and type(name) is str and self.container(name):
            return True
        return self.image is not None and type(image) is str and self.image(image)


def takes_all_containers(path: Location) -> bool:
    """Returns whether an object has no containers without a path: it is theirs, or leads to them."""
    last = path[-1]
    fields = path[:-1] if type(last) is ListItem and last.value is None else path
    names = [node.name if type(node) is Field else None for node in fields]
    lists = ([*place, "containers"] for place in _POD_SPECS)
    if len(fields) < len(path):
        return names in lists
    return any(names == names_of_list[: len(names)] for names_of_list in lists)


def _changed(
    obj: dict[str, Any], place: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the object with a changed place; itself without a change."""
    if not place:
        return change(obj)
    inner = obj.get(place[0])
    if type(inner) is not dict:
        return obj
    changed = _changed(inner, place[1:], change)
    return obj if changed is inner else {**obj, place[0]: changed}


def _without(value: Any, path: Sequence[Field | ListItem]) -> Any:
    """Returns the value without the value at a path."""
    node, rest = path[0], path[1:]
    if type(node) is Field:
        if type(value) is not dict or node.name not in value:
            return value
        if not rest:
            return {name: inner for name, inner in value.items() if name != node.name}
        inner = value[node.name]
        reduced = _without(inner, rest)
        return value if reduced is inner else {**value, node.name: reduced}
    assert type(node) is ListItem
    if type(value) is not list:
        return value
    items = [
        reduced
        for item in value
        for reduced in (
            [item] if not _is_selected(item, node) else [_without(item, rest)] if rest else []
        )
    ]
    same = len(items) == len(value) and all(a is b for a, b in zip(items, value, strict=True))
    return value if same else items


def _is_selected(item: Any, node: ListItem) -> bool:
    if type(item) is not dict or node.key not in item:
        return False
    key = item[node.key]
    return node.value is None or (type(key) is type(node.value) and key == node.value)
