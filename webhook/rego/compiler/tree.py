"""Stage 3: the rules arranged by path, as OPA's rule tree (v1/ast/compile.go, NewRuleTree)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.rego.compiler.ir import Const
from webhook.rego.values import equal, key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.compiler.ir import Rule, Term
    from webhook.rego.values import Key, Value


@dataclass(slots=True, eq=False)
class Node:
    """One step of a path below ``data``: rules that end here, and what lies below."""

    name: Value
    path: tuple[Value, ...]
    children: dict[Key, Node] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    number: int = -1

    def child(self, name: Value) -> Node | None:
        """The node one step below."""
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
    def dynamic(self) -> bool:
        """Whether rules here have variables in their reference: all below is one document."""
        return any(rule.rest for rule in self.rules)


class Tree:
    """All rules of a program by path."""

    def __init__(self) -> None:
        self.root = Node("data", ())

    def add_package(self, path: tuple[str, ...]) -> None:
        """A package without rules is an empty object all the same."""
        self._node(path)

    def add(self, rule: Rule) -> None:
        """Put the rule where the constant part of its reference ends."""
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
        """The node at exactly this path below ``data``."""
        node: Node | None = self.root
        for name in path:
            node = node.child(name) if node is not None else None
        return node

    def function(self, path: tuple[str, ...]) -> Node | None:
        """The node of the rules that a call of this path (with ``data``) would call."""
        node = self.find(path[1:]) if path[0] == "data" else None
        return node if node is not None and node.rules else None

    def reached(self, path: list[Term]) -> list[Rule]:
        """Rules that a reference below ``data`` with these terms may depend on."""
        found: dict[int, Rule] = {}

        def gather(rules: list[Rule], at: int) -> None:
            for rule in rules:
                if _may_meet(rule, path, at):
                    found[id(rule)] = rule

        def walk(node: Node, at: int) -> None:
            if at >= len(path):
                for below in node.walk():
                    for rule in below.rules:
                        found[id(rule)] = rule
                return
            part = path[at]
            if isinstance(part, Const):
                child = node.child(part.value)
                children = [] if child is None else [child]
            else:
                children = list(node.children.values())
            for child in children:
                gather(child.rules, at + 1)
                walk(child, at + 1)

        walk(self.root, 0)
        return list(found.values())


def _may_meet(rule: Rule, path: list[Term], at: int) -> bool:
    """Whether the rule's reference and the path agree wherever both are constant."""
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
