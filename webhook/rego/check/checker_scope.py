"""Stage 8: the known types of variables and documents, and so of every term.

A scope holds the types found in one body and refers to the scope around it (OPA v1/ast/env.go):
types of variables, and trees of types below ``input`` and ``data``, whose steps are the keys of
constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.rego.check import ir
from webhook.rego.check.checker_types import insert, is_empty, merge, opened
from webhook.rego.check.names import ROOTS
from webhook.rego.run.values import RegoObject, RegoSet, key, sort_key
from webhook.rego.types import (
    ANY,
    STRING,
    ArrayType,
    ObjectType,
    Scalar,
    SetType,
    bounded,
    select,
    type_of,
    union,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from weakref import WeakMethod

    from webhook.rego.types import Type

BODIES_MAX: Final = 5_000
"""The most bodies of comprehensions typed for one rule: each use types the comprehension again,
with all comprehensions inside. Beyond this number a comprehension has items of any type, so no term
is refused.
"""


CheckBody: TypeAlias = "WeakMethod[Callable[[Scope, ir.Body], tuple[Scope, bool]]]"
"""A method of the checker, which owns the scopes: with a strong reference both would be garbage that
only a collection finds, with all rules."""


class ScopeNode:
    """A step of a scope's tree; ``name`` is the constant of the step."""

    __slots__ = ("children", "name", "type")

    def __init__(self, name: Any = None) -> None:
        self.name = name
        self.type: Type | None = None
        self.children: dict[Any, ScopeNode] = {}

    def make(self, step: Any, name: Any = None) -> ScopeNode:
        """Returns the child at a step, made if missing."""
        child = self.children.get(step)
        if child is None:
            child = self.children[step] = ScopeNode(name)
        return child


def step_of(term: ir.Term) -> Any:
    """Returns the key of a step in a tree; None if the step is not constant."""
    return key(term.value) if isinstance(term, ir.Const) else None


class Scope:
    """Types known in a body, or in a literal with modifiers, which shares its variables."""

    __slots__ = ("around", "check", "older", "roots", "vars")

    def __init__(
        self,
        check: CheckBody,
        around: Scope | None = None,
        *,
        of_literal: bool = False,
        older: bool = False,
    ) -> None:
        self.check = check
        self.around = around
        self.older = older
        """Whether a collection written empty may hold anything, as in OPA 1.17."""
        self.roots: dict[str, ScopeNode] = {}
        self.vars: dict[str, Type | None] = {}
        if around is not None and of_literal:
            self.vars = around.vars

    def inner(self, *, of_literal: bool = False) -> Scope:
        """Returns a scope within this scope."""
        return Scope(self.check, self, of_literal=of_literal, older=self.older)

    def learn(self, name: str, type_: Type | None) -> None:
        """The type of a variable."""
        self.vars[name] = bounded(type_)

    def put(self, path: Sequence[Any], type_: Type) -> None:
        """Sets the type of a document."""
        self.put_below("data", path, type_)

    def put_below(self, root: str, path: Sequence[Any], type_: Type) -> None:
        """Sets the type at a path below ``input`` or ``data``."""
        node = self._root(root)
        for name in path:
            node = node.make(key(name), name)
        node.type = type_

    def define(self, path: Sequence[Any], type_: Type) -> None:
        """Adds a rule's type to a document, merged with the types of other rules."""
        node = self._root("data")
        for i, name in enumerate(path):
            node = node.make(key(name), name)
            rest = path[i + 1 :]
            if rest and isinstance(node.type, ObjectType):
                node.type = insert(node.type, tuple(map(type_of, rest)), type_)
        node.type = bounded(merge(node.type, type_))
        if isinstance(type_, ObjectType) and isinstance(node.type, ObjectType):
            for below, leaf in _leaves(node):
                node.type = insert(node.type, tuple(map(type_of, below)), leaf)

    def _root(self, name: str) -> ScopeNode:
        node = self.roots.get(name)
        if node is None:
            node = self.roots[name] = ScopeNode()
        return node

    # --- types of terms --------------------------------------------------------------------

    def get(self, term: ir.Term) -> Type | None:
        """Returns the type of a term; None while nothing is known."""
        return _GET[type(term)](self, term)  # type: ignore[no-any-return]

    def get_var(self, name: str) -> Type | None:
        """Returns the type of a variable."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.vars:
                return scope.vars[name]
            scope = scope.around
        return None

    def get_ref(self, terms: Sequence[ir.Term]) -> Type | None:
        """Returns the type of a reference's target."""
        head = terms[0]
        assert isinstance(head, ir.Var)
        scope: Scope | None = self
        while scope is not None:
            node = scope.head(head.name)
            if node is not None:
                known, of = _descend(node, terms[1:], older=self.older)
                if known:
                    return of
            scope = scope.around
        return ANY if head.name in ROOTS else None

    def head(self, name: str) -> ScopeNode | None:
        """Returns the type that this scope alone knows for the head of a reference."""
        if name in ROOTS:
            return self.roots.get(name)
        if name not in self.vars:
            return None
        node = ScopeNode()
        node.type = self.vars[name]
        return node


def _var(scope: Scope, term: ir.Var) -> Type | None:
    return scope.get_ref([term]) if term.name in ROOTS else scope.get_var(term.name)


def _ref(scope: Scope, term: ir.Ref) -> Type | None:
    return scope.get_ref([term.head, *term.path])


def _array(scope: Scope, term: ir.Array) -> Type | None:
    return ArrayType(tuple(map(scope.get, term.items)))  # type: ignore[arg-type]


def _set(scope: Scope, term: ir.Set) -> Type | None:
    items: Type | None = None
    for item in term.items:
        items = union(items, scope.get(item))
    return SetType(ANY if items is None and scope.older else items)


def _object(scope: Scope, term: ir.Object) -> Type | None:
    static: list[tuple[Any, Type | None]] = []
    dynamic = None
    for name, value in term.items:
        if isinstance(name, ir.Const):
            static.append((name.value, scope.get(value)))
        else:
            dynamic = (scope.get(name), scope.get(value))
    return ObjectType(tuple(sorted(static, key=lambda pair: sort_key(pair[0]))), dynamic)


def _comprehension(scope: Scope, term: ir.Comprehension) -> Type | None:
    check = scope.check()
    assert check is not None, "the checker outlives its scopes"
    inner, sound = check(scope, term.body)
    if not sound:
        return None
    value = inner.get(term.value)
    if term.kind == "array":
        return ArrayType((), value)
    if term.kind == "set":
        return SetType(value)
    assert term.key is not None
    return ObjectType((), (inner.get(term.key), value))


def _template(_scope: Scope, _term: ir.Template) -> Type | None:
    return STRING


def _const(scope: Scope, term: ir.Const) -> Type | None:
    type_ = type_of(term.value)
    return opened(type_) if scope.older and type(type_) is not Scalar else type_


def _given(_scope: Scope, _term: ir.Given) -> Type | None:
    return ANY


_GET: Final[dict[type, Any]] = {
    ir.Const: _const,
    ir.Var: _var,
    ir.Ref: _ref,
    ir.Array: _array,
    ir.Set: _set,
    ir.Object: _object,
    ir.Comprehension: _comprehension,
    ir.Template: _template,
    ir.Given: _given,
}


def extent(node: ScopeNode) -> Type:
    """Returns the type of all that is below a step."""
    if node.type is not None:
        return node.type
    static = [
        (child.name, extent(child))
        for child in node.children.values()
        if isinstance(child.name, (str, int, float)) and child.name is not None
    ]
    return ObjectType(tuple(sorted(static, key=lambda pair: sort_key(pair[0]))), (STRING, ANY))


def _descend(node: ScopeNode, tail: Sequence[ir.Term], *, older: bool) -> tuple[bool, Type | None]:
    """Whether the tree knows the reference, and its type."""
    for i, term in enumerate(tail):
        child = node.children.get(step_of(term)) if isinstance(term, ir.Const) else None
        if node.type is not None:
            if child is None:
                return True, select_path(node.type, tail[i:], older=older)
        elif not isinstance(term, ir.Const):
            return True, select_path(extent(node), tail[i:], older=older)
        elif child is None:
            return False, None
        assert child is not None
        node = child
    return True, extent(node)


def select_path(type_: Type | None, tail: Iterable[ir.Term], *, older: bool = False) -> Type | None:
    """Returns the type of a nested item; of any item if the path has a variable.

    Items of an empty collection may have any type, except in the checker of OPA 1.17 (``older``).
    """
    for term in tail:
        if type_ is None:
            return None
        if isinstance(term, ir.Const) and not isinstance(
            term.value, list | dict | RegoSet | RegoObject
        ):
            type_ = select(type_, term.value)
        elif is_empty(type_) and not older:
            return ANY
        else:
            type_ = values(type_)
    return type_


def _leaves(node: ScopeNode) -> list[tuple[list[Any], Type]]:
    """Typed steps below a node with their paths."""
    leaves: list[tuple[list[Any], Type]] = []
    for child in node.children.values():
        if child.type is not None:
            leaves.append(([child.name], child.type))
        else:
            leaves += [([child.name, *path], type_) for path, type_ in _leaves(child)]
    return leaves
