"""Stage 8: references: whether their targets can exist (OPA v1/ast/check.go, refChecker)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.check import ir
from webhook.rego.check.checker_scope import Scope, ScopeNode, extent, step_of
from webhook.rego.check.checker_types import is_empty, unifies
from webhook.rego.check.checker_unify import unify_type
from webhook.rego.check.checker_written import Written, key_texts, unsupported_text
from webhook.rego.check.names import ROOTS
from webhook.rego.location import NOWHERE, Location
from webhook.rego.run.values import RegoObject, RegoSet, sort_key
from webhook.rego.types import (
    ANY,
    STRING,
    AnyOf,
    ArrayType,
    FunctionType,
    ObjectType,
    Type,
    keys,
    select,
    type_text,
    values,
)


class RefFault(Exception):
    """A reference to a target that cannot exist: the message, then OPA's lines of detail."""

    def __init__(self, message: str, *details: str) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


def references_in(term: ir.Term) -> list[tuple[list[ir.Term], Location]]:
    """Returns the references in a term and their places, outer references first.

    References in comprehensions are left out. A root that is a term by itself has no place.
    """
    refs: list[tuple[list[ir.Term], Location]] = []
    _references_in(term, refs)
    return refs


def _references_in(term: ir.Term, refs: list[tuple[list[ir.Term], Location]]) -> None:
    if isinstance(term, ir.Ref):
        refs.append(([term.head, *term.path], term.location))
        for part in term.path:
            if type(part) is not ir.Const:
                _references_in(part, refs)
    elif isinstance(term, ir.Var):
        if term.name in ROOTS:
            refs.append(([term], NOWHERE))
    elif isinstance(term, (ir.Array, ir.Set)):
        for item in term.items:
            _references_in(item, refs)
    elif isinstance(term, ir.Object):
        for name, value in term.items:
            _references_in(name, refs)
            _references_in(value, refs)


def with_steps_apart(terms: Sequence[ir.Term]) -> list[ir.Term]:
    """Returns a reference of a nested body, whose literals are not checked one by one.

    OPA computes the steps before the reference and keeps them in locals of unknown type.
    """
    return [terms[0], *map(_apart, terms[1:])]


def _apart(term: ir.Term) -> ir.Term:
    if isinstance(term, (ir.Ref, ir.Comprehension)) or (
        isinstance(term, ir.Var) and term.name in ROOTS
    ):
        return ir.Given(term)
    if isinstance(term, ir.Array):
        return ir.Array([_apart(item) for item in term.items])
    if isinstance(term, ir.Set):
        return ir.Set([_apart(item) for item in term.items])
    if isinstance(term, ir.Object):
        return ir.Object([(_apart(name), _apart(value)) for name, value in term.items])
    return term


def check_reference(scope: Scope, terms: Sequence[ir.Term], written: Written, level: str) -> None:
    """Learn the types of a reference's variables; raises :class:`RefFault`."""
    of = scope.get_ref(terms)
    if isinstance(of, FunctionType):
        raise unsupported_text(terms, len(terms) - 1, of, written, RefFault)
    walk = _Walk(scope, terms, written, level)
    if written.is_scalar(terms[0]):
        walk.below_scalar()
    else:
        walk.from_tree()


class _Walk:
    """The walk of one reference through the trees and types."""

    def __init__(
        self, scope: Scope, terms: Sequence[ir.Term], written: Written, level: str
    ) -> None:
        self.level = level
        self.scope = scope
        self.terms = terms
        self.written = written
        head = terms[0]
        assert isinstance(head, ir.Var)
        self.root = head.name

    def from_tree(self) -> None:
        """Walks down the trees of this scope and the scopes around it, then down the type found."""
        scope: Scope | None = self.scope
        while scope is not None:
            node = scope.head(self.root)
            if node is not None and self._down_tree(node):
                return
            scope = scope.around
        if self.root not in ROOTS:
            self._down_type(ANY, 0)
        else:
            self._rest_is_anything(1)

    def below_scalar(self) -> None:
        """Continues below the type any: OPA has no type for a scalar that begins a reference."""
        self._down_type(ANY, 1)

    def _down_tree(self, node: ScopeNode) -> bool:
        """Whether this tree, of the reference's head, settles it."""
        if node.type is not None:
            self._down_type(node.type, 1)
            return True
        for i, term in enumerate(self.terms[1:], 1):
            if i <= 2 and not _may_name_package(term):
                self._invalid(i, self.scope.get(term), STRING, _steps(node))
            if isinstance(term, ir.Var) and term.name not in ROOTS:
                self._key(i, term, keys(extent(node)), _steps(node))
            elif isinstance(term, (ir.Ref, ir.Var)):
                self._nested(i, term, keys(extent(node)), _steps(node))
            step = step_of(term)
            child = None if step is None else node.children.get(step)
            if child is None:
                return False
            if child.type is not None:
                self._down_type(child.type, i + 1)
                return True
            node = child
        return True

    def _rest_is_anything(self, start: int) -> None:
        for term in self.terms[start:]:
            if isinstance(term, ir.Var) and self.scope.get_var(term.name) is None:
                self.scope.learn(term.name, ANY)

    def _key(self, i: int, term: ir.Var, expected: Type | None, allowed: list[Any] | None) -> None:
        known = self.scope.get_var(term.name)
        if known is None:
            self.scope.learn(term.name, expected)
        elif not unifies(expected, known):
            self._invalid(i, known, expected, allowed)

    def _nested(
        self, i: int, term: ir.Ref | ir.Var, expected: Type | None, allowed: list[Any] | None
    ) -> None:
        """A reference as a step: OPA gives it a local of its own before."""
        known = self.scope.get(term)
        if known is not None and not unifies(known, expected):
            self._invalid(i, known, expected, allowed)

    def _down_type(self, type_: Type | None, start: int) -> None:
        for i in range(start, len(self.terms)):
            term = self.terms[i]
            if type_ is not None and is_empty(type_):
                if self.level == GATEKEEPER:
                    self._rest_is_anything(i)
                else:
                    self._into_empty(i, term, type_)
                return
            expected = keys(type_)
            if expected is None:
                raise unsupported_text(self.terms, i - 1, type_, self.written, RefFault)
            type_ = self._select(i, term, type_, expected)

    def _into_empty(self, i: int, term: ir.Term, type_: Type) -> None:
        """Walks a step into an empty collection. There are three cases (OPA 1.22.4).

        1. a constant: it is no key of the collection.

        2. a variable: it has no values; only an index of an array must be a number.

        3. any other step: the type is unknown.
        """
        if isinstance(term, ir.Const) and not isinstance(
            term.value, list | dict | RegoSet | RegoObject
        ):
            self._invalid(i, None, None, None)
        if isinstance(term, ir.Var) and term.name not in ROOTS:
            is_known = self.scope.get_var(term.name) is not None
            in_array = is_known and isinstance(type_, ArrayType)
            self._key(i, term, keys(type_) if in_array else ANY, None)

    def _select(self, i: int, term: ir.Term, type_: Type | None, expected: Type) -> Type | None:
        if isinstance(term, ir.Var) and term.name not in ROOTS:
            self._key(i, term, expected, _allowed(type_))
        elif isinstance(term, (ir.Ref, ir.Var)):
            self._nested(i, term, expected, _allowed(type_))
        elif isinstance(term, ir.Const) and not isinstance(
            term.value, list | dict | RegoSet | RegoObject
        ):
            child = select(type_, term.value)
            if child is None:
                self._invalid(i, None, expected, _allowed(type_))
            return child
        elif not unify_type(self.scope, term, expected):
            self._invalid(i, self.scope.get(term), expected, None)
        return values(type_)

    def _invalid(
        self, i: int, have: Type | None, expected: Type | None, allowed: list[Any] | None
    ) -> None:
        text = self.written.reference(self.terms)
        pad = " " * (len(self.written.reference(self.terms[:i])) + 1)
        marked = (
            f"have: {self.written.reference([self.terms[i]])}"
            if have is None
            else f"have (type): {type_text(have)}"
        )
        if allowed:
            choice = f"want (one of): [{' '.join(key_texts(allowed))}]"
        elif expected is None:
            choice = "want (one of): []"
        else:
            choice = f"want (type): {type_text(expected)}"
        raise RefFault(f"undefined ref: {text}", text, f"{pad}^", pad + marked, pad + choice)


def _may_name_package(term: ir.Term) -> bool:
    return isinstance(term, (ir.Var, ir.Ref, ir.Given)) or (
        isinstance(term, ir.Const) and isinstance(term.value, str)
    )


def _steps(node: ScopeNode) -> list[Any]:
    return sorted((child.name for child in node.children.values()), key=sort_key)


def _allowed(type_: Type | None) -> list[Any]:
    """Returns the keys that an object type is known to have."""
    members: list[Any] = []
    if isinstance(type_, ObjectType):
        members = [name for name, _ in type_.static]
    elif isinstance(type_, AnyOf):
        for member in type_.members:
            members += [name for name in _allowed(member) if name not in members]
    return sorted(members, key=sort_key)
