"""Assigning at a location: parts on the way are copied, and all other parts shared.

The rules are those of Gatekeeper (pkg/mutation/mutators/core): fields that are missing on the way
are made, an object where a list should be is an error, and path tests end the way without one.
Objects are never changed in place; if no field changes, the result is the given object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.mutation.errors import ApplyError
from webhook.mutation.location import Field, ListItem, Location
from webhook.mutation.pace import LOOK_ITEMS
from webhook.mutation.values import MISSING, go_type

if TYPE_CHECKING:
    from webhook.mutation.path_tests import Allowed
    from webhook.mutation.setting import Context, Setter

NOWHERE: Any = None
"""The result of a walk that assigned nothing; any value, since it is not reviewed."""


class Assignment(NamedTuple):
    """A location, the conditions on its path, and the value to assign."""

    location: Location
    allowed: tuple[Allowed, ...]
    setter: Setter
    null_is_missing: bool = False
    """Whether ``labels: null`` on the way is as if there were none."""

    def apply(self, root: dict[str, Any], context: Context) -> tuple[bool, dict[str, Any]]:
        """Whether anything was assigned, the value that was there included, and the object.

        Raises :class:`~webhook.mutation.errors.ApplyError`.
        """
        if not self.location:
            raise ApplyError("attempting to mutate an empty target location")
        assigned, changed = self.walk(root, 0, root, context)
        return (True, changed) if assigned else (False, root)

    def walk(
        self, current: Any, depth: int, root: dict[str, Any], context: Context
    ) -> tuple[bool, Any]:
        """Assigns from a depth of the location on; returns whether it did, and the result."""
        node = self.location[depth]
        if type(node) is Field:
            return self._into_field(node.name, current, depth, root, context)
        assert type(node) is ListItem
        if type(current) is not list:
            raise ApplyError(_mismatch("List", current, node))
        if depth == len(self.location) - 1:
            return self._set_item(node, current, depth, root, context)
        return self._into_items(node, current, depth, root, context)

    def _into_field(
        self, name: str, current: Any, depth: int, root: dict[str, Any], context: Context
    ) -> tuple[bool, Any]:
        if type(current) is not dict:
            raise ApplyError(_mismatch("object", current, self.location[depth]))
        existing = current.get(name, MISSING)
        if existing is None and self.null_is_missing and depth < len(self.location) - 1:
            existing = MISSING
        allowed = self.allowed[depth]
        if not (allowed.missing if existing is MISSING else allowed.present):
            return False, NOWHERE
        if depth == len(self.location) - 1:
            new = self.setter(existing, root, context)
        else:
            below = self._made(depth) if existing is MISSING else existing
            assigned, new = self.walk(below, depth + 1, root, context)
            if not assigned:
                return False, NOWHERE
        return True, current if new is existing else {**current, name: new}

    def _into_items(
        self, node: ListItem, current: list[Any], depth: int, root: dict[str, Any], context: Context
    ) -> tuple[bool, Any]:
        is_glob, allowed = node.value is None, self.allowed[depth]
        if is_glob and not allowed.present:
            return False, NOWHERE  # That there are no items at all is nothing to assign to.
        changed: list[Any] | None = None
        is_there = any_assigned = False
        for place, item in enumerate(current):
            if place & LOOK_ITEMS == LOOK_ITEMS:
                context.pace.look()
            if not is_glob and not _has_key(item, node):
                continue
            is_there = True
            if not allowed.present:
                return False, NOWHERE
            assigned, new = self.walk(item, depth + 1, root, context)
            if assigned:
                any_assigned = True
                if new is not item:
                    changed = list(current) if changed is None else changed
                    changed[place] = new
        if not is_there and not is_glob:
            if not allowed.missing:
                return False, NOWHERE
            assigned, new = self.walk(
                {node.key: node.value, **self._made(depth)}, depth + 1, root, context
            )
            return (True, [*current, new]) if assigned else (False, NOWHERE)
        return any_assigned, current if changed is None else changed

    def _set_item(
        self, node: ListItem, current: list[Any], depth: int, root: dict[str, Any], context: Context
    ) -> tuple[bool, Any]:
        for place, item in enumerate(current):
            if place & LOOK_ITEMS == LOOK_ITEMS:
                context.pace.look()
            if type(item) is not dict:
                raise ApplyError(
                    f"cast error, unable to case {go_type(item)} to map[string]interface{{}}"
                )
            if not _has_key(item, node):
                continue
            new = self.setter(item, root, context)
            if not _has_key(new, node):
                raise ApplyError("key value of replaced object must not change")
            if not self.allowed[depth].present:
                return False, NOWHERE
            if new is item:
                return True, current
            return True, [*current[:place], new, *current[place + 1 :]]
        if not self.allowed[depth].missing:
            return False, NOWHERE
        return True, [*current, self.setter(MISSING, root, context)]

    def _made(self, depth: int) -> Any:
        """Makes the missing value that the next node leads into."""
        return {} if type(self.location[depth + 1]) is Field else []


def _has_key(item: Any, node: ListItem) -> bool:
    if type(item) is not dict:
        return False
    value = item.get(node.key)
    return type(value) is type(node.value) and bool(value == node.value)


def _mismatch(expected: str, current: Any, node: Field | ListItem) -> str:
    return (
        f"mismatch between path entry (type: {expected}) "
        f"and received object (type: {go_type(current)}). Path: {node}"
    )
