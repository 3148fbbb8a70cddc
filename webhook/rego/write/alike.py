"""Stage 10: finds the literals of two rules that differ only in the names of their variables.

Rules of one set often begin alike: each iterates over the same containers and skips the same
containers. ``rule_bodies`` writes equal literals once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS
from webhook.rego.run.weight import SCALARS

if TYPE_CHECKING:
    from collections.abc import Sequence

Names = dict[str, str]
"""Variables of one rule, and the corresponding variables of another rule."""


_VISIBLE_CALLS: Final = frozenset({"trace", "internal.print"})
"""Calls with visible output: each rule makes its own."""


def literals(one: ir.Lit, other: ir.Lit, names: Names) -> bool:
    """Whether both literals mean the same; adds the corresponding variables to ``names``.

    If they differ, ``names`` is no longer valid.
    """
    if type(one) is not type(other) or one.withs or other.withs or one.negated != other.negated:
        return False
    compare = _COMPARE_LITERALS.get(type(one))
    return compare is not None and compare(one, other, names)


def bodies(one: ir.Body, other: ir.Body, names: Names) -> bool:
    """Whether two whole bodies mean the same."""
    return len(one) == len(other) and all(
        literals(a, b, names) for a, b in zip(one, other, strict=True)
    )


def terms(one: ir.Term, other: ir.Term | None, names: Names) -> bool:
    """Whether both terms have the same value."""
    compare = _COMPARE.get(type(one))
    return type(one) is type(other) and compare is not None and compare(one, other, names)


def _all(one: Sequence[ir.Term], other: Sequence[ir.Term], names: Names) -> bool:
    return len(one) == len(other) and all(
        terms(a, b, names) for a, b in zip(one, other, strict=True)
    )


def _optional(one: ir.Term | None, other: ir.Term | None, names: Names) -> bool:
    return other is None if one is None else terms(one, other, names)


def _constants(one: ir.Const, other: ir.Const, names: Names) -> bool:  # noqa: ARG001  # as others
    return _values(one.value, other.value)


def _values(one: Any, other: Any) -> bool:
    """Equal and of the same types throughout: 1 and 1.0 are written differently."""
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in SCALARS:
        return bool(one == other)
    if kind is list:
        return len(one) == len(other) and all(map(_values, one, other))
    if kind is dict:
        return list(one) == list(other) and all(map(_values, one.values(), other.values()))
    return False


def _variables(one: ir.Var, other: ir.Var, names: Names) -> bool:
    known = names.get(other.name)
    if known is not None:
        return known == one.name
    if one.name in ROOTS or other.name in ROOTS:
        return one.name == other.name
    if ir.is_wildcard(one.name) != ir.is_wildcard(other.name) or one.name in names.values():
        return False
    names[other.name] = one.name
    return True


def _references(one: ir.Ref, other: ir.Ref, names: Names) -> bool:
    return terms(one.head, other.head, names) and _all(one.path, other.path, names)


def _collections(one: ir.Array | ir.Set, other: ir.Array | ir.Set, names: Names) -> bool:
    return _all(one.items, other.items, names)


def _objects(one: ir.Object, other: ir.Object, names: Names) -> bool:
    return len(one.items) == len(other.items) and all(
        terms(a, b, names) and terms(x, y, names)
        for (a, x), (b, y) in zip(one.items, other.items, strict=True)
    )


def _comprehensions(one: ir.Comprehension, other: ir.Comprehension, names: Names) -> bool:
    return (
        one.kind == other.kind
        and bodies(one.body, other.body, names)
        and _optional(one.key, other.key, names)
        and terms(one.value, other.value, names)
    )


def _unifications(one: ir.Eq, other: ir.Eq, names: Names) -> bool:
    return (
        one.assign == other.assign and terms(one.a, other.a, names) and terms(one.b, other.b, names)
    )


def _calls(one: ir.Call, other: ir.Call, names: Names) -> bool:
    return (
        one.name == other.name
        and one.name not in _VISIBLE_CALLS
        and _all(one.args, other.args, names)
        and _optional(one.out, other.out, names)
    )


def _tests(one: ir.Test, other: ir.Test, names: Names) -> bool:
    return terms(one.term, other.term, names)


def _negations(one: ir.Not, other: ir.Not, names: Names) -> bool:
    return one.explicit == other.explicit and bodies(one.body, other.body, names)


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
