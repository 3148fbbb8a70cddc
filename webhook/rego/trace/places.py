"""Where OPA's parser says that literals stand which ours has no place for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.syntax import ast


def branches(module: ast.Module) -> Iterator[tuple[ast.Rule, bool]]:
    """The rules of a module with their branches, and whether each is an ``else``."""
    for first in module.rules:
        rule: ast.Rule | None = first
        while rule is not None:
            yield rule, rule is not first
            rule = rule.else_


def implied_place(rule: ast.Rule, *, is_else: bool) -> Location:
    """Returns the place of the implied literal `true` of a body without literals."""
    if rule.default:
        place = rule.location
        return Location(place.file, place.row, place.col, place.offset, "default")
    if rule.body:
        return whole_place(rule, is_else=is_else) or rule.body[0].location
    if is_else:
        return rule.location
    return rule.head.ref.location if rule.head.value is None else rule.head.value.location


def whole_place(rule: ast.Rule, *, is_else: bool) -> Location | None:
    """The place of all literals of ``else if x``: the branch and all behind it."""
    if not is_else or len(rule.body) != 1:
        return None
    before = rule.location.text[: rule.body[0].location.offset - rule.location.offset]
    return rule.location if before.rstrip().endswith("if") else None
