"""Stage 7: the variables that a term or literal holds, and the variables that it binds.

It follows OPA (v1/ast/compile.go, unify.go). *Closures* are comprehensions, template strings and
nested bodies. A variable is *safe* once something has bound it. In ``x := input.xs[i]``, the
variables are ``x``, ``input`` and ``i``; where ``input`` is safe, the literal makes ``x`` and ``i``
safe: :func:`outputs`. Functions named ``add_…`` add names to a set of the caller's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from webhook.rego.check import ir
from webhook.rego.run.values import RegoObject, RegoSet, equal
from webhook.rego.run.weight import SCALARS

LEAVES: Final = frozenset({ir.Const, ir.Var, ir.Given})
"""Terms without terms inside; most terms are leaves.

The compiler tests for classes with tuples: ``A | B`` is made anew each time, and takes twice as
long.
"""

NESTING: Final = frozenset({ir.Every, ir.Not, ir.Logic})
"""Literals that contain bodies."""


def bodies_of(lit: ir.Lit) -> Sequence[ir.Body]:
    """Returns the bodies nested in a literal; most have none."""
    if type(lit) not in NESTING:
        return ()
    if isinstance(lit, ir.Logic):
        return lit.left, lit.right
    return (lit.body,)  # type: ignore[union-attr]


def add_variables(term: ir.Term, names: set[str]) -> None:
    """Adds the variables of a term, except those inside closures."""
    if type(term) is ir.Var:
        names.add(term.name)
    elif type(term) in LEAVES:  # most terms: the other cases need not be tested
        return
    elif isinstance(term, ir.Ref):
        add_variables(term.head, names)
        for part in term.path:
            if type(part) is not ir.Const:
                add_variables(part, names)
    elif isinstance(term, (ir.Array, ir.Set)):
        for item in term.items:
            add_variables(item, names)
    elif isinstance(term, ir.Object):
        for name, value in term.items:
            add_variables(name, names)
            add_variables(value, names)


def add_all_variables(term: ir.Term, names: set[str]) -> None:
    """Adds the variables of a term, also those inside closures."""
    _add_each(walk(term), names)


def add_body_variables(body: ir.Body, names: set[str]) -> None:
    """Adds the variables of a body, at any depth."""
    _add_each(walk_body(body), names)
    _add_declared(body, names)


def _add_each(terms: Iterable[ir.Term], names: set[str]) -> None:
    for term in terms:
        if isinstance(term, ir.Var):
            names.add(term.name)
        elif isinstance(term, ir.Comprehension):
            _add_declared(term.body, names)


def _add_declared(body: ir.Body, names: set[str]) -> None:
    """Adds the variables that ``every`` declares in a body; they are no terms."""
    for lit in every_literal(body):
        if isinstance(lit, ir.Every):
            names |= {lit.key.name, lit.value.name}


def every_literal(body: ir.Body) -> Iterator[ir.Lit]:
    """Yields every literal of a body and of the bodies nested in it, outside of terms."""
    for lit in body:
        yield lit
        for inner in bodies_of(lit):
            yield from every_literal(inner)


def terms_of(lit: ir.Lit) -> Sequence[ir.Term]:
    """Returns the terms of a literal, modifiers and nested bodies left out."""
    return _TERMS[type(lit)](lit)


def _call_terms(lit: ir.Call) -> Sequence[ir.Term]:
    return lit.args if lit.out is None else [*lit.args, lit.out]


_TERMS: Final[dict[type, Callable[[Any], Sequence[ir.Term]]]] = {
    ir.Eq: lambda lit: (lit.a, lit.b),
    ir.Call: _call_terms,
    ir.Test: lambda lit: (lit.term,),
    ir.Every: lambda lit: (lit.domain,),
    ir.Print: lambda lit: lit.args,
    ir.Not: lambda lit: (),  # noqa: ARG005  # as the others
    ir.Logic: lambda lit: (),  # noqa: ARG005
}


def parts_of(term: ir.Term) -> Iterable[ir.Term]:
    """Returns the terms just inside of a term; the head of a reference and closures left out."""
    if type(term) in LEAVES:
        return ()
    if isinstance(term, ir.Ref):
        return term.path
    if isinstance(term, (ir.Array, ir.Set)):
        return term.items
    if isinstance(term, ir.Object):
        return itertools.chain.from_iterable(term.items)
    if isinstance(term, ir.Template):
        return [part for part in term.parts if not isinstance(part, str)]
    return ()


def composites_of(lit: ir.Lit) -> list[ir.Term]:
    """Returns the terms of a literal that have others in them; most have none."""
    composites: list[ir.Term] = []
    for term in _TERMS[type(lit)](lit):
        if type(term) not in LEAVES:
            composites.append(term)  # noqa: PERF401  # CPython 3.11 calls a function for [… for …]
    return composites


def closures_of(term: ir.Term, closures: list[ir.Comprehension | ir.Template]) -> None:
    """Adds the outermost comprehensions and template strings of a term to ``closures``."""
    if isinstance(term, (ir.Comprehension, ir.Template)):
        closures.append(term)
        return
    for part in parts_of(term):
        if type(part) not in LEAVES:
            closures_of(part, closures)


def walk(term: ir.Term) -> list[ir.Term]:
    """Returns the term and every term in it, bodies of comprehensions included."""
    terms: list[ir.Term] = []
    _walk(term, terms)
    return terms


def _walk(term: ir.Term, terms: list[ir.Term]) -> None:
    terms.append(term)
    if type(term) in LEAVES:
        return
    if isinstance(term, ir.Ref):
        _walk(term.head, terms)
    elif isinstance(term, ir.Comprehension):
        if term.key is not None:
            _walk(term.key, terms)
        _walk(term.value, terms)
        _walk_body(term.body, terms)
    _walk_all(parts_of(term), terms)


def _walk_all(terms: Iterable[ir.Term], reached: list[ir.Term]) -> None:
    for term in terms:
        if type(term) in LEAVES:
            reached.append(term)
        else:
            _walk(term, reached)


def walk_body(body: ir.Body) -> list[ir.Term]:
    """Returns every term in a body, at any depth."""
    terms: list[ir.Term] = []
    _walk_body(body, terms)
    return terms


def _walk_body(body: ir.Body, terms: list[ir.Term]) -> None:
    for lit in body:
        _walk_all(terms_of(lit), terms)
        for modifier in lit.withs:
            _walk(modifier.value, terms)
        for inner in bodies_of(lit):
            _walk_body(inner, terms)


def add_closure_variables(lit: ir.Lit, names: set[str]) -> None:
    """Adds the variables inside the closures of a literal."""
    closures: list[ir.Comprehension | ir.Template] = []
    for term in composites_of(lit):
        closures_of(term, closures)
    for closure in closures:
        add_all_variables(closure, names)
    for body in bodies_of(lit):
        add_body_variables(body, names)


def add_pattern_variables(term: ir.Term, names: set[str], *, sets: bool = True) -> None:
    """Adds the variables that unification with a value can bind: no heads of references, no keys."""
    if isinstance(term, ir.Var):
        names.add(term.name)
    elif isinstance(term, ir.Ref):
        for part in term.path:
            add_pattern_variables(part, names, sets=sets)
    elif isinstance(term, ir.Array) or (sets and isinstance(term, ir.Set)):
        for item in term.items:
            add_pattern_variables(item, names, sets=sets)
    elif isinstance(term, ir.Object):
        for _, value in term.items:
            add_pattern_variables(value, names, sets=sets)


def add_iterated_variables(term: ir.Term, safe: set[str], names: set[str]) -> None:
    """Adds the variables that iteration binds: in the path of a reference whose head is safe."""
    if type(term) in LEAVES:
        return
    if isinstance(term, ir.Ref):
        head = term.head
        if not isinstance(head, ir.Var) or head.name not in safe:
            return
        for part in term.path:
            if isinstance(part, ir.Ref):
                add_iterated_variables(part, safe, names)
                for inner in part.path:
                    add_variables(inner, names)
            else:
                add_variables(part, names)
                add_iterated_variables(part, safe, names)
    elif isinstance(term, (ir.Array, ir.Set)):
        for item in term.items:
            add_iterated_variables(item, safe, names)
    elif isinstance(term, ir.Object):
        for name, value in term.items:
            add_iterated_variables(name, safe, names)
            add_iterated_variables(value, safe, names)


def outputs(lit: ir.Lit, safe: set[str], arity: Callable[[ir.Function], int]) -> set[str]:
    """Returns the variables that a literal makes safe, where those in ``safe`` are.

    There are four cases:

    1. It is negated, contains bodies, or prints: none. So too if a modifier has an unsafe variable.
    2. A test, or ``every``: the variables by which its term or domain iterates.
    3. A unification: those too, and what unification binds. ``:=`` binds even a safe name anew.
    4. A call: the output is bound once all operands are safe.
    """
    if lit.negated or isinstance(lit, (ir.Not, ir.Logic, ir.Print)):
        return set()
    for modifier in lit.withs:
        needed: set[str] = set()
        add_variables(modifier.value, needed)
        if needed - safe:
            return set()
    names: set[str] = set()
    if isinstance(lit, (ir.Test, ir.Every)):
        add_iterated_variables(lit.term if isinstance(lit, ir.Test) else lit.domain, safe, names)
        return names
    if isinstance(lit, ir.Eq):
        add_iterated_variables(lit.a, safe, names)
        add_iterated_variables(lit.b, safe, names)
        known = names | safe
        if lit.assign:
            unbound: set[str] = set()
            add_variables(lit.a, unbound)
            known -= unbound
        return (known | Unifier(known).run(lit.a, lit.b)) - safe
    return _call_outputs(lit, safe, arity)


def _call_outputs(lit: ir.Call, safe: set[str], arity: Callable[[ir.Function], int]) -> set[str]:
    count = arity(lit.name)
    if count < 0:
        return set()
    names: set[str] = set()
    operands = _call_terms(lit)
    for term in operands:
        add_iterated_variables(term, safe, names)
    if count >= len(operands):
        return names
    needed: set[str] = set()
    for term in operands[:count]:
        add_pattern_variables(term, needed, sets=False)
    if needed - names - safe:
        return set()
    for term in operands[count:]:
        add_pattern_variables(term, names, sets=False)
    return names


class Unifier:
    """Finds the variables that are bound once two terms have been unified."""

    def __init__(self, safe: set[str]) -> None:
        self.safe = safe
        self.unified: set[str] = set()
        self.unknown: dict[str, set[str]] = {}

    def run(self, a: ir.Term, b: ir.Term) -> set[str]:
        """Returns the variables that become bound."""
        self._unify(a, b)
        return self.unified

    def _known(self, name: str) -> bool:
        return name in self.safe or name in self.unified

    def _has_safe_head(self, ref: ir.Ref) -> bool:
        return isinstance(ref.head, ir.Var) and ref.head.name in self.safe

    def _unify(self, a: ir.Term, b: ir.Term) -> None:
        """Marks the variables that become bound once ``a`` equals ``b``.

        There are four cases, on either side: 1. A variable. 2. A reference: if its head is safe, it
        has a value, which binds the other side. 3. A comprehension, whose value is a collection.
        4. Two collections, part by part.
        """
        if isinstance(b, ir.Var) and not isinstance(a, ir.Var):
            a, b = b, a
        if isinstance(a, ir.Var):
            self._variable(a.name, b)
        elif isinstance(a, ir.Ref):
            if self._has_safe_head(a):
                self._mark_all(b)
        elif isinstance(b, ir.Ref):
            if self._has_safe_head(b):
                self._mark_all(a)
        elif isinstance(a, ir.Comprehension):
            if isinstance(b, ir.Array) or (isinstance(b, ir.Object) and a.kind == "object"):
                self._mark_all(b)
        elif isinstance(b, ir.Comprehension):
            if isinstance(a, ir.Array):
                self._mark_all(a)
        else:
            self._composites(a, b)

    def _composites(self, a: ir.Term, b: ir.Term) -> None:
        a, b = expand(a), expand(b)
        if isinstance(a, ir.Array) and isinstance(b, ir.Array):
            if len(a.items) == len(b.items):
                for x, y in zip(a.items, b.items, strict=True):
                    self._unify(x, y)
        elif isinstance(a, ir.Object) and isinstance(b, ir.Object) and len(a.items) == len(b.items):
            for name, value in a.items:
                other = lookup(b, name)
                if other is not None:
                    self._unify(value, other)

    def _variable(self, name: str, b: ir.Term) -> None:
        """Unifies a variable with a term.

        There are three cases: 1. Another variable: either binds the other; if both are unknown, each
        waits for the other. 2. A collection, likewise. 3. Another term, which has a value if it is
        no reference with an unsafe head.
        """
        if isinstance(b, ir.Var):
            if self._known(b.name):
                self._mark(name)
            elif self._known(name):
                self._mark(b.name)
            else:
                self.unknown.setdefault(name, set()).add(b.name)
                self.unknown.setdefault(b.name, set()).add(name)
        elif isinstance(b, (ir.Array, ir.Object)):
            if self._known(name):
                self._mark_all(b)
                return
            needed: set[str] = set()
            add_pattern_variables(b, needed)
            needed -= self.safe
            needed -= self.unified
            if needed:
                self.unknown.setdefault(name, set()).update(needed)
            else:
                self._mark(name)
        elif not isinstance(b, ir.Ref) or self._has_safe_head(b):
            self._mark(name)

    def _mark_all(self, term: ir.Term) -> None:
        if isinstance(term, (ir.Var, ir.Array, ir.Object)):
            names: set[str] = set()
            add_pattern_variables(term, names)
            for name in names:
                self._mark(name)

    def _mark(self, name: str) -> None:
        self.unified.add(name)
        for other in self.unknown.pop(name, ()):
            self._mark(other)
        for other, needed in list(self.unknown.items()):
            if name in needed:
                needed.discard(name)
                if not needed and other in self.unknown:
                    self._mark(other)


def expand(term: ir.Term) -> ir.Term:
    """Returns a constant collection as a collection of constants."""
    if not isinstance(term, ir.Const):
        return term
    value = term.value
    if type(value) in SCALARS:  # most are
        return term
    if isinstance(value, list):
        return ir.Array([ir.Const(item) for item in value])
    if isinstance(value, (dict, RegoObject)):
        return ir.Object([(ir.Const(name), ir.Const(item)) for name, item in value.items()])
    if isinstance(value, RegoSet):
        return ir.Set([ir.Const(item) for item in value])
    return term


def lookup(term: ir.Object, name: ir.Term) -> ir.Term | None:
    """Returns the value under the same key: an equal constant or the same variable."""
    for other, value in term.items:
        if (
            isinstance(name, ir.Const)
            and isinstance(other, ir.Const)
            and equal(name.value, other.value)
        ):
            return value
        if isinstance(name, ir.Var) and isinstance(other, ir.Var) and name.name == other.name:
            return value
    return None


def bound_properties(
    rules: Sequence[ir.Rule], pattern: ir.Object, bound: Callable[[ir.Term], bool]
) -> list[str] | None:
    """Returns the names of the pattern's bound properties, by which members of a set are sought.

    None where they cannot be: unless some properties are bound and some not, and each rule makes
    members with the same properties, the bound ones as variables or constants.
    """
    properties = properties_of(pattern)
    if properties is None or not rules:
        return None
    names = [name for name, value in properties.items() if bound(value)]
    if not names or len(names) == len(properties):
        return None
    for rule in rules:
        member = properties_of(rule.key) if isinstance(rule.key, ir.Object) else None
        if member is None or member.keys() != properties.keys():
            return None
        if not all(isinstance(member[name], ir.Var | ir.Const) for name in names):
            return None
    return names


def properties_of(term: ir.Object) -> dict[str, ir.Term] | None:
    """Returns the properties of an object term by name; None unless all names are constant strings."""
    properties: dict[str, ir.Term] = {}
    for key, value in term.items:
        if not isinstance(key, ir.Const) or type(key.value) is not str or key.value in properties:
            return None
        properties[key.value] = value
    return properties
