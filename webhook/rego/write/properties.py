"""Stage 10: which members of a set of objects a pattern seeks: those with properties known before.

Sought by them they save the iterations that would find others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.check.tree import Node


def given_properties(
    node: Node, pattern: ir.Object, bound: Callable[[ir.Term], bool]
) -> list[str] | None:
    """Names of the pattern's bound properties; None where members cannot be sought by them."""
    names = property_names(pattern)
    if names is None or not node.rules:
        return None
    members = []
    for rule in node.rules:
        theirs = property_names(rule.key) if isinstance(rule.key, ir.Object) else None
        if theirs is None or theirs.keys() != names.keys():
            return None
        members.append(theirs)
    given = [key for key, value in names.items() if bound(value)]
    if not given or len(given) == len(names):
        return None
    for theirs in members:
        if not all(isinstance(theirs[key], ir.Var | ir.Const) for key in given):
            return None
    return given


def property_names(term: ir.Object) -> dict[str, ir.Term] | None:
    """The properties of an object term by name, if all names are constant strings."""
    properties: dict[str, ir.Term] = {}
    for key, value in term.items:
        if not isinstance(key, ir.Const) or type(key.value) is not str or key.value in properties:
            return None
        properties[key.value] = value
    return properties
