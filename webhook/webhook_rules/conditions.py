"""Evaluates a match condition for a partly known request: true, false or undecided.

Most conditions, and all that we ship, only compare texts of the request. These are decided without
the engine of CEL, which a replica would otherwise load as it starts (docs/adr/0060).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.cel.errors import CompileError, EvaluationError, ParseError
from webhook.cel.syntax.ast import Call, Constant, Expr, ListOf, Name, Select, children
from webhook.cel.syntax.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment

    DecideLeaf: TypeAlias = Callable[[Expr], bool | None]
    """Decides an expression without a logical operator."""

Facts: TypeAlias = "Mapping[tuple[str, ...], str]"
"""The known fields of ``request`` by path; an empty text for a missing field."""

_TEXTS: Final = frozenset(
    {
        *(("operation",), ("name",), ("namespace",), ("subResource",), ("requestSubResource",)),
        *((at, field) for at in ("resource", "requestResource") for field in ("group", "resource")),
        *((at, field) for at in ("kind", "requestKind") for field in ("group", "kind")),
        ("userInfo", "username"),
    }
)
"""Fields of ``request`` that are texts, so that a comparison with a text has the type that it must
have."""

_LOGICAL: Final = frozenset({"_&&_", "_||_", "!_", "_?_:_"})
_KEPT: Final = 256
"""The compiled conditions kept: each configuration has a few, and few configurations call a
webhook."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from webhook.cel.kubernetes import match_conditions  # noqa: PLC0415  # the engine, see above

    return match_conditions(params=False)


@lru_cache(maxsize=_KEPT)
def _checked(source: str) -> Checked | None:
    from webhook.cel.engine import checked_expression  # noqa: PLC0415  # the engine, see above

    try:
        return checked_expression(source, _environment())
    except (CompileError, RecursionError):
        return None  # an API server refuses it


@lru_cache(maxsize=_KEPT)
def _comparisons(source: str) -> Expr | None:
    """Returns an expression that consists of comparisons of texts; None for any other."""
    try:
        root = parse(source).root
        return root if _compares(root) else None
    except (ParseError, RecursionError):
        return None


def holds(source: str, facts: Facts) -> bool | None:
    """Whether a condition holds; None if that depends on unknown fields."""
    root = _comparisons(source)
    if root is not None:
        return _decided(root, lambda node: _compared(node, facts))
    checked = _checked(source)
    if checked is None:
        return None
    try:
        return _decided(checked.parsed.root, lambda node: _evaluated(node, checked, facts))
    except RecursionError:
        return None


def _decided(node: Expr, leaf: DecideLeaf) -> bool | None:
    match node:
        case Call(function="_&&_"):
            return _all([_decided(arg, leaf) for arg in node.args])
        case Call(function="_||_"):
            return _negated(_all([_negated(_decided(arg, leaf)) for arg in node.args]))
        case Call(function="!_"):
            return _negated(_decided(node.args[0], leaf))
        case Call(function="_?_:_"):
            test, then, other = (_decided(arg, leaf) for arg in node.args)
            if test is None:
                return then if then is other else None
            return then if test else other
    return leaf(node)


def _all(values: list[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _negated(value: bool | None) -> bool | None:  # in three-valued logic
    return None if value is None else not value


def _compares(node: Expr) -> bool:
    match node:
        case Call(function=function, args=args) if function in _LOGICAL:
            return all(map(_compares, args))
        case Call(function="_==_" | "_!=_", args=[field, Constant(value=str())]):
            return _is_text(field)
        case Call(function="@in", args=[field, ListOf(items=items, optional=optional)]) if items:
            texts = all(isinstance(item, Constant) and type(item.value) is str for item in items)
            return texts and not optional and _is_text(field)
    return False


def _is_text(node: Expr) -> bool:
    """Whether an expression reads a field of ``request`` that is a text."""
    path, at = _path(node), node
    while isinstance(at, Select):
        if at.tests or at.optional:
            return False
        at = at.operand
    return path in _TEXTS


def _compared(node: Expr, facts: Facts) -> bool | None:
    """Decides a comparison of texts; None if its field is unknown or missing."""
    assert isinstance(node, Call)
    field, other = node.args
    path = _path(field)
    value = facts.get(path) if path is not None else None
    if value is None or path is None or not _exists(path, value):
        return None
    if isinstance(other, ListOf):
        return any(isinstance(item, Constant) and item.value == value for item in other.items)
    assert isinstance(other, Constant)
    return (value == other.value) is (node.function == "_==_")


def _exists(path: tuple[str, ...], value: str) -> bool:
    return bool(value) or len(path) > 1  # a group may be empty, yet exists


def _is_known(node: Expr, facts: Facts) -> bool:
    """Whether all fields that an expression reads are known."""
    path = _path(node)
    if path is not None:
        return path in facts
    if isinstance(node, Name):
        return node.name not in _environment().variables
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
    if not _is_known(node, facts):
        return None
    from webhook.cel.exact.evaluator import exact_form  # noqa: PLC0415  # the engine, see above
    from webhook.cel.run.meter import Meter  # noqa: PLC0415

    request: dict[str, Any] = {}
    for path, value in facts.items():
        if _exists(path, value):
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
