"""Stage 10: finds the literals of two rules that differ only in the names of their variables.

Rules of one set often begin alike: each iterates over the same containers and skips the same
containers. ``rule_bodies`` writes equal literals once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS
from webhook.rego.run.weight import SCALARS

Names = dict[str, str]
"""Variables of one rule, and the corresponding variables of another rule."""


_VISIBLE_CALLS: Final = frozenset({"trace", "internal.print"})
"""Calls with visible output: each rule makes its own."""


def literals(first: ir.Lit, other: ir.Lit, names: Names) -> bool:
    """Whether both literals mean the same; adds the corresponding variables to ``names``.

    If they differ, ``names`` is no longer valid.
    """
    if (
        type(first) is not type(other)
        or first.withs
        or other.withs
        or first.negated != other.negated
    ):
        return False
    compare = _COMPARE_LITERALS.get(type(first))
    return compare is not None and compare(first, other, names)


def bodies(first: ir.Body, other: ir.Body, names: Names) -> bool:
    """Whether two whole bodies mean the same."""
    return len(first) == len(other) and all(
        literals(a, b, names) for a, b in zip(first, other, strict=True)
    )


def terms(first: ir.Term, other: ir.Term | None, names: Names) -> bool:
    """Whether both terms have the same value."""
    compare = _COMPARE.get(type(first))
    return type(first) is type(other) and compare is not None and compare(first, other, names)


def _all(first: Sequence[ir.Term], other: Sequence[ir.Term], names: Names) -> bool:
    return len(first) == len(other) and all(
        terms(a, b, names) for a, b in zip(first, other, strict=True)
    )


def _optional(first: ir.Term | None, other: ir.Term | None, names: Names) -> bool:
    return other is None if first is None else terms(first, other, names)


def _constants(first: ir.Const, other: ir.Const, names: Names) -> bool:  # noqa: ARG001  # as others
    return _values(first.value, other.value)


def _values(first: Any, other: Any) -> bool:
    """Equal and of the same types throughout: 1 and 1.0 are written differently."""
    kind = type(first)
    if kind is not type(other):
        return False
    if kind in SCALARS:
        return bool(first == other)
    if kind is list:
        return len(first) == len(other) and all(map(_values, first, other))
    if kind is dict:
        return list(first) == list(other) and all(map(_values, first.values(), other.values()))
    return False


def _variables(first: ir.Var, other: ir.Var, names: Names) -> bool:
    known = names.get(other.name)
    if known is not None:
        return known == first.name
    if first.name in ROOTS or other.name in ROOTS:
        return first.name == other.name
    if ir.is_wildcard(first.name) != ir.is_wildcard(other.name) or first.name in names.values():
        return False
    names[other.name] = first.name
    return True


def _references(first: ir.Ref, other: ir.Ref, names: Names) -> bool:
    return terms(first.head, other.head, names) and _all(first.path, other.path, names)


def _collections(first: ir.Array | ir.Set, other: ir.Array | ir.Set, names: Names) -> bool:
    return _all(first.items, other.items, names)


def _objects(first: ir.Object, other: ir.Object, names: Names) -> bool:
    return len(first.items) == len(other.items) and all(
        terms(a, b, names) and terms(x, y, names)
        for (a, x), (b, y) in zip(first.items, other.items, strict=True)
    )


def _comprehensions(first: ir.Comprehension, other: ir.Comprehension, names: Names) -> bool:
    return (
        first.kind == other.kind
        and bodies(first.body, other.body, names)
        and _optional(first.key, other.key, names)
        and terms(first.value, other.value, names)
    )


def _unifications(first: ir.Eq, other: ir.Eq, names: Names) -> bool:
    return (
        first.assign == other.assign
        and terms(first.a, other.a, names)
        and terms(first.b, other.b, names)
    )


def _calls(first: ir.Call, other: ir.Call, names: Names) -> bool:
    return (
        first.name == other.name
        and first.name not in _VISIBLE_CALLS
        and _all(first.args, other.args, names)
        and _optional(first.out, other.out, names)
    )


def _tests(first: ir.Test, other: ir.Test, names: Names) -> bool:
    return terms(first.term, other.term, names)


def _negations(first: ir.Not, other: ir.Not, names: Names) -> bool:
    return first.explicit == other.explicit and bodies(first.body, other.body, names)


_COMPARE_LITERALS: Final[dict[type, Any]] = {
    ir.Eq: _unifications,
    ir.Call: _calls,
    ir.Test: _tests,
    ir.Not: _negations,
}

_COMPARE: Final[dict[type, Any]] = {
    ir.Const: _constants,
    ir.Var: _variables,
    ir.Ref: _references,
    ir.Array: _collections,
    ir.Set: _collections,
    ir.Object: _objects,
    ir.Comprehension: _comprehensions,
}
