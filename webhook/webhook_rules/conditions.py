"""Evaluates a match condition for a partly known request: true, false or undecided."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.exact.evaluator import exact_form
from webhook.cel.kubernetes import match_conditions
from webhook.cel.run.meter import Meter
from webhook.cel.syntax.ast import Call, Expr, Name, Select, children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cel.check.checker import Checked

Facts: TypeAlias = "Mapping[tuple[str, ...], str]"
"""The known fields of ``request`` by path; an empty text for a missing field."""

_ENVIRONMENT: Final = match_conditions(params=False)
_KEPT: Final = 256
"""The compiled conditions kept: each configuration has a few, and few configurations call a
webhook."""


@lru_cache(maxsize=_KEPT)
def _checked(source: str) -> Checked | None:
    try:
        return checked_expression(source, _ENVIRONMENT)
    except (CompileError, RecursionError):
        return None  # an API server refuses it


def holds(source: str, facts: Facts) -> bool | None:
    """Whether a condition holds; None if that depends on unknown fields."""
    checked = _checked(source)
    if checked is None:
        return None
    try:
        return _decided(checked.parsed.root, checked, facts)
    except RecursionError:
        return None


def _decided(node: Expr, checked: Checked, facts: Facts) -> bool | None:
    match node:
        case Call(function="_&&_"):
            return _all([_decided(arg, checked, facts) for arg in node.args])
        case Call(function="_||_"):
            return _negated(_all([_negated(_decided(arg, checked, facts)) for arg in node.args]))
        case Call(function="!_"):
            return _negated(_decided(node.args[0], checked, facts))
        case Call(function="_?_:_"):
            test, then, other = (_decided(arg, checked, facts) for arg in node.args)
            if test is None:
                return then if then is other else None
            return then if test else other
    return _evaluated(node, checked, facts) if _is_known(node, facts) else None


def _all(values: list[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _negated(value: bool | None) -> bool | None:  # in three-valued logic
    return None if value is None else not value


def _is_known(node: Expr, facts: Facts) -> bool:
    """Whether all fields that an expression reads are known."""
    path = _path(node)
    if path is not None:
        return path in facts
    if isinstance(node, Name):
        return node.name not in _ENVIRONMENT.variables
    return all(_is_known(child, facts) for child in children(node))


def _path(node: Expr) -> tuple[str, ...] | None:
    """Returns the path of a field of ``request``, read or tested; None for anything else."""
    fields: list[str] = []
    while isinstance(node, Select):
        fields.append(node.field)
        node = node.operand
    is_request = isinstance(node, Name) and node.name == "request" and fields
    return tuple(reversed(fields)) if is_request else None


def _evaluated(node: Expr, checked: Checked, facts: Facts) -> bool | None:
    request: dict[str, Any] = {}
    for path, value in facts.items():
        if value or len(path) > 1:  # a group may be empty, yet exists
            at = request
            for name in path[:-1]:
                at = at.setdefault(name, {})
            at[path[-1]] = value
    run = exact_form(replace(checked, parsed=replace(checked.parsed, root=node)))
    try:
        value = run({"request": request}, Meter())
    except EvaluationError:
        return None
    return value if type(value) is bool else None
