"""Stage 9: comprehensions that are computed once for all values of the variables around them.

``ys := [y | some y in input.ys; y.name == x]``, evaluated for each ``x`` of a loop, iterates over
all of ``input.ys`` each time. If its own body can bind ``x``, it is evaluated once without a value
of ``x``, and its solutions are grouped by ``x``. The time is then linear in the number of objects
and not quadratic. The choice of comprehensions follows OPA (v1/ast/compile.go,
getComprehensionIndex), because a comprehension evaluated ahead may end an evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS
from webhook.rego.check.variables import (
    NESTING,
    add_all_variables,
    add_closure_variables,
    add_variables,
    outputs,
    terms_of,
    walk,
    walk_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.rego.check.ir import Body, Function, Lit

KEYS_MAX: Final = 4
"""The most variables to group by."""


def keys_of(
    term: ir.Comprehension, around: Iterable[str], arity: Callable[[Function], int]
) -> tuple[str, ...]:
    """Returns the variables ``around`` a comprehension to group its solutions by.

    There are none in four cases: 1. It makes an object: conflicts of keys would meet other groups.
    2. It uses no variable around it, or more than :data:`KEYS_MAX`. 3. It cannot stand alone.
    4. Its body does not bind each of them.
    """
    if term.kind == "object":
        return ()
    used: set[str] = set()
    add_all_variables(term, used)
    keys = used.intersection(around)
    if not keys or len(keys) > KEYS_MAX or not _is_alone(term, keys):
        return ()
    bound = _bound_by(term.body, keys, arity)
    return tuple(sorted(keys)) if bound is not None and keys <= bound else ()


def _is_alone(term: ir.Comprehension, keys: set[str]) -> bool:
    """Whether it can stand in a function of its own, and nothing nested in it needs the keys."""
    inner: set[str] = set()
    for part in walk(term.value):
        if isinstance(part, (ir.Given, ir.Comprehension, ir.Template)):
            return False
    if any(isinstance(part, ir.Given) for part in walk_body(term.body)):
        return False
    for lit in term.body:
        if isinstance(lit, ir.Print):
            return False
        add_closure_variables(lit, inner)
    return inner.isdisjoint(keys)


def _bound_by(body: Body, keys: set[str], arity: Callable[[Function], int]) -> set[str] | None:
    """Returns the variables that a body binds in order; None if it needs keys before it binds them."""
    safe = set(ROOTS)
    for lit in body:
        unifying = _unifying(lit)
        if _seeks(unifying, keys - safe):
            return None
        safe |= outputs(unifying, safe, arity)
        needed: set[str] = set()
        for term in terms_of(unifying):
            add_variables(term, needed)
        for modifier in unifying.withs:
            add_variables(modifier.value, needed)
        if type(unifying) in NESTING:
            add_closure_variables(unifying, needed)
            needed &= keys
        if not needed <= safe:
            return None
    return safe


def _unifying(lit: Lit) -> Lit:
    """Returns a comparison as a unification, which binds variables without a value, as in OPA."""
    if isinstance(lit, ir.Call) and lit.name == "equal" and lit.out is None and not lit.negated:
        return ir.Eq(lit.args[0], lit.args[1], lit.location, withs=lit.withs)
    return lit


def _seeks(lit: Lit, keys: set[str]) -> bool:
    """Whether a literal looks up one item by a key, and would iterate over all items without it."""
    if not keys:
        return False
    if isinstance(lit, ir.Call) and lit.name == "walk":
        return True
    for term in terms_of(lit):
        for part in walk(term):
            if not isinstance(part, ir.Ref):
                continue
            steps: set[str] = set()
            for step in part.path:
                add_variables(step, steps)
            if not steps.isdisjoint(keys):
                return True
    return False
