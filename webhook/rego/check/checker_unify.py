"""Stage 8: unification of terms with types, which finds the types of variables (OPA's unify1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.checker_types import unifies
from webhook.rego.check.names import ROOTS
from webhook.rego.check.variables import expand, lookup
from webhook.rego.types import ANY, AnyOf, ArrayType, ObjectType, SetType, is_unknown, select, union

if TYPE_CHECKING:
    from webhook.rego.check.checker_scope import Scope
    from webhook.rego.types import Type


def unify_type(scope: Scope, term: ir.Term, type_: Type | None, *, widen: bool = False) -> bool:
    """Whether the term may have the type; variables without a type get theirs.

    With ``widen``, variables get the type in addition to what they have.
    """
    if isinstance(term, ir.Var) and term.name not in ROOTS:
        return _unify_var(scope, term.name, type_, widen)
    term = expand(term)
    if isinstance(term, (ir.Array, ir.Object, ir.Set)):
        if isinstance(type_, AnyOf):
            return _unify_any(scope, term, type_)
        if isinstance(term, ir.Array):
            return isinstance(type_, ArrayType) and _unify_array(scope, term, type_, widen)
        if isinstance(term, ir.Object):
            return isinstance(type_, ObjectType) and _unify_object(scope, term, type_, widen)
        if not isinstance(type_, SetType):
            return False
        # Like OPA, stop at the first that does not fit.
        return all(unify_type(scope, item, type_.of, widen=widen) for item in term.items)
    return unifies(scope.get(term), type_)


def _unify_var(scope: Scope, name: str, type_: Type | None, widen: bool) -> bool:
    known = scope.get_var(name)
    if widen:
        scope.learn(name, union(known, type_))
        return True
    if known is not None:
        return unifies(known, type_)
    scope.learn(name, type_)
    return True


def _unify_any(scope: Scope, term: ir.Array | ir.Object | ir.Set, type_: AnyOf) -> bool:
    if type_.members:
        unified = [unify_type(scope, term, member, widen=True) for member in type_.members]
        return any(unified)  # not before every member has taught its part
    items = (
        [part for pair in term.items for part in pair]
        if isinstance(term, ir.Object)
        else term.items
    )
    for item in items:
        unify_type(scope, item, ANY, widen=True)
    return True


def _unify_array(scope: Scope, term: ir.Array, type_: ArrayType, widen: bool) -> bool:
    if len(term.items) != len(type_.static) and type_.dynamic is None:
        return False
    return all(
        unify_type(scope, item, select(type_, i), widen=widen) for i, item in enumerate(term.items)
    )


def _unify_object(scope: Scope, term: ir.Object, type_: ObjectType, widen: bool) -> bool:
    if len(term.items) != len(type_.static) and (type_.dynamic is None or type_.dynamic[1] is None):
        return False
    for name, value in term.items:
        if not isinstance(name, ir.Const):
            unify_type(scope, value, ANY, widen=widen)
            continue
        child = select(type_, name.value)
        if child is None or not unify_type(scope, value, child, widen=widen):
            return False
    return True


def unify_terms(scope: Scope, a: ir.Term, b: ir.Term) -> bool:
    """Whether two terms may be equal; each teaches the other's variables."""
    type_a, type_b = scope.get(a), scope.get(b)
    unknown_a, unknown_b = is_unknown(type_a), is_unknown(type_b)
    if unknown_a and not unknown_b:
        return unify_type(scope, a, type_b)
    if unknown_b and not unknown_a:
        return unify_type(scope, b, type_a)
    if not unknown_a:
        return unifies(type_a, type_b)
    if isinstance(a, (ir.Array, ir.Object)):
        return _unify_parts(scope, a, b)
    if isinstance(a, ir.Var):
        if isinstance(b, ir.Var):
            return unify_type(scope, a, ANY) and unify_type(scope, b, scope.get(a))
        if isinstance(b, (ir.Array, ir.Object)):
            return _unify_parts(scope, b, a)
        if type_a is None and type_b is not None:
            return unify_type(scope, a, type_b)
        if isinstance(b, ir.Ref) and not scope.older:
            return unify_type(scope, a, ANY)
    if isinstance(b, ir.Var) and type_b is None and type_a is not None:
        return unify_type(scope, b, type_a)
    if isinstance(a, ir.Ref) and isinstance(b, ir.Var) and not scope.older:
        return unify_type(scope, b, ANY)
    return False


def _unify_parts(scope: Scope, a: ir.Array | ir.Object, b: ir.Term) -> bool:
    """A collection with variables, and another or a variable."""
    b = expand(b)
    if isinstance(b, ir.Var):
        return unify_type(scope, a, ANY) and unify_type(scope, b, scope.get(a))
    if isinstance(a, ir.Array) and isinstance(b, ir.Array):
        return len(a.items) == len(b.items) and all(
            unify_terms(scope, x, y) for x, y in zip(a.items, b.items, strict=True)
        )
    if isinstance(a, ir.Object) and isinstance(b, ir.Object):
        pairs = [(x, lookup(b, name)) for name, x in a.items]
        if len(a.items) != len(b.items):
            return False
        return all(y is not None and unify_terms(scope, x, y) for x, y in pairs)
    return False
