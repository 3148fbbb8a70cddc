"""Stage 4: the rules arranged by path, as OPA's rule tree (v1/ast/compile.go, NewRuleTree)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from webhook.rego.check.ir import Array, Call, Const, Eq, Lit, Object, Ref, Rule, Term, Test, Var
from webhook.rego.check.names import ROOTS
from webhook.rego.errors import RegoLoadError
from webhook.rego.run.values import Key, Value, equal, is_small, key
from webhook.values import dataclass


def conflicts_with_data(tree: Tree, data: dict[str, Any]) -> list[RegoLoadError]:
    """Returns an error for each rule whose path exists in the base documents."""
    return list(_below(tree.root, data))


def _below(node: Node, documents: Any) -> Iterator[RegoLoadError]:
    if not isinstance(documents, dict):
        return
    for child in node.children.values():
        if not isinstance(child.name, str) or child.name not in documents:
            continue
        if child.rules:
            path = "/".join(map(str, child.path))
            message = f"conflicting rule for data path {path} found"
            yield RegoLoadError("rego_compile_error", message, child.rules[0].location)
        yield from _below(child, documents[child.name])


MAX_INLINE = 5
"""Literals of a function that is written inline where it is called."""

MAX_ALTERNATIVES = 3
"""Rules of such a function."""


MAX_NAMED = 256
"""The most scalars and characters of a constant that is copied to each use of its rule: a larger
constant would lengthen the code of each use.
"""


@dataclass(slots=True, eq=False)
class Node:
    """One step of a path below ``data``: rules that end here, and the nodes below."""

    name: Value
    path: tuple[Value, ...]
    children: dict[Key, Node] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    number: int = -1

    def child(self, name: Value) -> Node | None:
        """Returns the node one step below."""
        return self.children.get(key(name))

    def walk(self) -> Iterator[Node]:
        """This node and all below, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    @property
    def always_true(self) -> bool:
        """Whether the rules here have no value but true."""
        return all(
            isinstance(branch.value, Const) and branch.value.value is True
            for rule in self.rules
            for branch in rule.branches()
        )

    @property
    def inlined(self) -> list[Rule]:
        """The rules of a function small enough to be written inline at its calls; else none.

        Each rule must have at most one solution (no references with steps that iterate). If there
        are several rules, each must have the value true.
        """
        few = len(self.rules) == 1 or (len(self.rules) <= MAX_ALTERNATIVES and self.always_true)
        return self.rules if few and all(map(_is_small, self.rules)) else []

    @property
    def worth_keeping(self) -> bool:
        """Whether answers of the function here cost more to compute than to look up."""
        args = self.rules[0].args
        return args is not None and len(args) == 1 and any(len(r.body) > 1 for r in self.rules)

    @property
    def stands_for(self) -> Const | Ref | None:
        """Returns the term that this document is an alias of: a constant, or a path."""
        rule = self.rules[0]
        if len(self.rules) > 1 or rule.else_ is not None or rule.kind != "complete":
            return None
        if not rule.body:
            value = rule.value
            if isinstance(value, Const) and is_small(value.value, MAX_NAMED):
                return value
            return None
        lit = rule.body[0]
        if len(rule.body) > 1 or not isinstance(lit, Eq) or lit.negated or lit.withs:
            return None
        if not isinstance(lit.a, Var) or not isinstance(lit.b, Ref):
            return None
        same = isinstance(rule.value, Var) and rule.value.name == lit.a.name
        return lit.b if same and lit.generated and _is_path(lit.b) else None

    @property
    def dynamic(self) -> bool:
        """Whether rules here have variables in their reference: all below is one document."""
        return any(rule.rest for rule in self.rules)


def _is_path(ref: Ref) -> bool:
    """Whether this is a path below ``input`` or ``data`` without variables."""
    from_root = isinstance(ref.head, Var) and ref.head.name in ROOTS
    return from_root and all(isinstance(part, Const) for part in ref.path)


def _is_small(rule: Rule) -> bool:
    if rule.args is None or rule.else_ or rule.default or len(rule.body) > MAX_INLINE:
        return False
    bound = {"input", "data"}
    for arg in rule.args:
        if not isinstance(arg, Var | Const):
            return False
        if isinstance(arg, Var):
            bound.add(arg.name)
    return all(not lit.withs and _single(lit, bound) for lit in rule.body)


def _single(lit: Lit, bound: set[str]) -> bool:
    """Whether the literal is simple and has at most one solution; adds the bound variables."""
    if isinstance(lit, Test):
        return _known(lit.term, bound)
    if isinstance(lit, Call):
        if not all(_known(arg, bound) for arg in lit.args):
            return False
        if lit.name == "walk":
            return False
        if isinstance(lit.out, Var):
            bound.add(lit.out.name)
        return lit.out is None or isinstance(lit.out, Var)
    if isinstance(lit, Eq) and not lit.negated:
        for mine, other in ((lit.a, lit.b), (lit.b, lit.a)):
            if isinstance(mine, Var) and _known(other, bound):
                bound.add(mine.name)
                return True
        return _known(lit.a, bound) and _known(lit.b, bound)
    return False


def _known(term: Term, bound: set[str]) -> bool:
    """Whether the term has at most one value if these variables are bound."""
    if isinstance(term, Const):
        return True
    if isinstance(term, Var):
        return term.name in bound
    if isinstance(term, Ref):
        return _known(term.head, bound) and all(_known(part, bound) for part in term.path)
    if isinstance(term, Array):
        return all(_known(item, bound) for item in term.items)
    if isinstance(term, Object):
        return all(isinstance(k, Const) and _known(v, bound) for k, v in term.items)
    return False


class Tree:
    """All rules of a program by path."""

    def __init__(self) -> None:
        self.root = Node("data", ())

    def add_package(self, path: tuple[str, ...]) -> None:
        """A package without rules is an empty object all the same."""
        self._node(path)

    def add(self, rule: Rule) -> None:
        """Puts the rule where the constant part of its reference ends."""
        self._node(rule.path).rules.append(rule)

    def _node(self, path: tuple[Value, ...]) -> Node:
        node = self.root
        for i, name in enumerate(path):
            below = node.children.get(key(name))
            if below is None:
                below = node.children[key(name)] = Node(name, path[: i + 1])
            node = below
        return node

    def find(self, path: tuple[Value, ...]) -> Node | None:
        """Returns the node at exactly this path below ``data``."""
        node: Node | None = self.root
        for name in path:
            node = node.child(name) if node is not None else None
        return node

    def function(self, path: tuple[str, ...]) -> Node | None:
        """Returns the node of the rules that a call of this path (with ``data``) would call."""
        node = self.find(path[1:]) if path[0] == "data" else None
        return node if node is not None and node.rules else None

    def reached(self, path: list[Term]) -> list[Rule]:
        """Rules that a reference below ``data`` with these terms may depend on."""
        by_id: dict[int, Rule] = {}
        _reach(self.root, path, 0, by_id)
        return list(by_id.values())


def _reach(node: Node, path: list[Term], at: int, by_id: dict[int, Rule]) -> None:
    """Adds the rules at and below a node that the rest of a path may lead to."""
    if at >= len(path):
        for below in node.walk():
            for rule in below.rules:
                by_id[id(rule)] = rule
        return
    part = path[at]
    if isinstance(part, Const):
        child = node.child(part.value)
        children = [] if child is None else [child]
    else:
        children = list(node.children.values())
    for child in children:
        for rule in child.rules:
            if _may_meet(rule, path, at + 1):
                by_id[id(rule)] = rule
        _reach(child, path, at + 1, by_id)


def _may_meet(rule: Rule, path: list[Term], at: int) -> bool:
    """Whether the rule's reference and the path agree wherever both are constant."""
    if at >= len(path) or at >= len(rule.path) + len(rule.rest):
        return True
    terms: list[Term] = [Const(name) for name in rule.path]
    terms.extend(rule.rest)
    for mine, theirs in zip(terms[at:], path[at:], strict=False):
        if (
            isinstance(mine, Const)
            and isinstance(theirs, Const)
            and not equal(mine.value, theirs.value)
        ):
            return False
    return True
