"""TermSteps of an evaluation: unified, followed into documents, and computed, value after value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.location import NOWHERE
from webhook.rego.run.packages import merge
from webhook.rego.run.values import (
    UNDEFINED,
    RegoObject,
    RegoSet,
    Value,
    equal,
    key,
    make_object,
    ordered,
)
from webhook.rego.trace.documents import PartialDocument, entries, step_into
from webhook.rego.trace.steps import BodyQuery, Signal, Steps, Then

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.check.ir import Term
    from webhook.rego.check.tree import Node
    from webhook.rego.trace.index import RuleMatch


class TermSteps(Steps, ABC):
    """Evaluates terms; bodies and rules are its heirs'."""

    @abstractmethod
    def query(self, query: BodyQuery, at: int, then: Then) -> Signal:
        """Evaluates a body from a literal on."""

    @abstractmethod
    def matched(
        self, query: BodyQuery, node: Node, path: Sequence[Value], operands: Sequence[Value] | None
    ) -> RuleMatch:
        """The definitions of a rule that may hold."""

    @abstractmethod
    def complete(
        self,
        query: BodyQuery,
        node: Node,
        path: tuple[Value, ...],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Evaluates complete rules."""

    @abstractmethod
    def partial(
        self, query: BodyQuery, node: Node, path: tuple[Value, ...], rest: Sequence[Value]
    ) -> Value:
        """Evaluates partial rules, or only the parts that constant steps may reach."""

    def unify(self, query: BodyQuery, a: Term, b: Term, then: Then) -> Signal:
        """Goes on for each way in which two terms are equal."""
        a, b = applied(query, a), applied(query, b)
        if self.trace.unifications:
            self.tell("Unify", query, ir.Eq(a, b, NOWHERE))
        if iterates(a):
            return self.each(query, a, lambda v: self.unify(query, ir.Const(v), b, then))
        if iterates(b):
            return self.each(query, b, lambda v: self.unify(query, ir.Const(v), a, then))
        if isinstance(b, ir.Const) and not isinstance(a, ir.Const):
            a, b = b, a
        if not isinstance(a, ir.Const):
            return self.unify_both(query, a, b, then)
        value = a.value
        if isinstance(b, ir.Var):
            query.values[b.name] = value
            try:
                return then()
            finally:
                query.values.pop(b.name, None)
        if isinstance(b, ir.Const):
            return then() if equal(value, b.value) else None
        if isinstance(b, ir.Array):
            if not isinstance(value, list) or len(value) != len(b.items):
                return None
            return self.pairs(query, [*zip(map(ir.Const, value), b.items, strict=True)], then)
        if isinstance(b, ir.Object):
            return self.unify_object(query, value, b, then)
        plugged = self.plug(query, b)
        return then() if plugged is not UNDEFINED and equal(value, plugged) else None

    def unify_both(self, query: BodyQuery, a: Term, b: Term, then: Then) -> Signal:
        """Unifies two terms that both have no whole value yet."""
        if isinstance(a, ir.Array) and isinstance(b, ir.Array) and len(a.items) == len(b.items):
            return self.pairs(query, [*zip(a.items, b.items, strict=True)], then)
        for first, other in ((a, b), (b, a)):
            value = self.plug(query, first)
            if value is not UNDEFINED:
                return self.unify(query, ir.Const(value), other, then)
        return None

    def unify_object(self, query: BodyQuery, value: Value, b: ir.Object, then: Then) -> Signal:
        """Unifies an object's values with the values of a pattern."""
        if not isinstance(value, (dict, RegoObject)) or len(value) != len(b.items):
            return None
        pairs: list[tuple[Term, Term]] = []
        for name, item in b.items:
            accept = step_into(value, self.plug(query, name))
            if accept is UNDEFINED:
                return None
            pairs.append((ir.Const(accept), item))
        return self.pairs(query, pairs, then)

    def pairs(self, query: BodyQuery, pairs: list[tuple[Term, Term]], then: Then) -> Signal:
        """Unifies pairs of terms in turn."""
        if not pairs:
            return then()
        (a, b), *rest = pairs
        return self.unify(query, a, b, lambda: self.pairs(query, rest, then))

    def each(self, query: BodyQuery, term: Term, accept: Callable[[Value], Signal]) -> Signal:
        """Goes on with each value that a term has."""
        term = applied(query, term)
        if isinstance(term, ir.Ref):
            head = term.head
            if isinstance(head, ir.Var) and head.name == "data":
                return self.tree_step(query, term, 0, self.tree.root, (), accept)
            value = self.plug(query, head)
            return None if value is UNDEFINED else self.walk(query, term, 0, value, accept)
        value = self.plug(query, term)
        return None if value is UNDEFINED else accept(value)

    def walk(
        self,
        query: BodyQuery,
        ref: ir.Ref,
        at: int,
        value: Value,
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Follows a reference into a value; steps without a value iterate over all items."""
        while at < len(ref.path):
            step = self.plug(query, ref.path[at])
            if step is UNDEFINED:
                break
            value = step_into(value, step)
            if value is UNDEFINED:
                return None
            at += 1
        else:
            return accept(value)
        deferred: Signal = None
        for name, item in entries(value):
            self.context.charge(10)
            signal = self.unify(
                query,
                ir.Const(name),
                ref.path[at],
                lambda item=item: self.walk(query, ref, at + 1, item, accept),  # type: ignore[misc]
            )
            if signal is not None:
                if signal.early:
                    return signal
                deferred = deferred or signal
        return deferred

    def tree_step(  # the place of the reference, and the value there
        self,
        query: BodyQuery,
        ref: ir.Ref,
        at: int,
        node: Node | None,
        path: tuple[Value, ...],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Follows a reference below ``data`` from a node of the rules on."""
        if at == len(ref.path):
            value = self.extent(query, node, path)
            return None if value is UNDEFINED else accept(value)
        step = self.plug(query, ref.path[at])
        if step is not UNDEFINED:
            return self.tree_next(query, ref, at, node, (*path, step), accept)
        names = [name for name, _ in entries(self.resolved(("data", *path)))]
        below = [] if node is None else [child.name for child in node.children.values()]
        seen = {key(name) for name in names}
        names += [name for name in ordered(below) if key(name) not in seen]
        for name in names:
            signal = self.unify(
                query,
                ir.Const(name),
                ref.path[at],
                lambda name=name: self.tree_next(  # type: ignore[misc]
                    query, ref, at, node, (*path, name), accept
                ),
            )
            if signal is not None:
                return signal
        return None

    def tree_next(  # as above
        self,
        query: BodyQuery,
        ref: ir.Ref,
        at: int,
        node: Node | None,
        path: tuple[Value, ...],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Continues after a step: to the rules at the node, or to the nodes below."""
        below = None if node is None else node.child(path[-1])
        if any(path[: len(target)] == target for target in self.world.replaced):
            below = None
        if below is None or not below.rules:
            return self.tree_step(query, ref, at + 1, below, path, accept)
        first = below.rules[0]
        if first.args is not None:
            self.matched(query, below, ("data", *path), None)
            return None
        if all(rule.kind == "complete" for rule in below.rules):
            return self.complete(
                query, below, path, lambda v: self.walk(query, ref, at + 1, v, accept)
            )
        steps: list[Value] = []
        for part in ref.path[at + 1 :]:
            value = self.plug(query, part)
            if value is UNDEFINED or len(steps) >= PartialDocument(below).depth:
                break
            steps.append(value)
        value = self.partial(query, below, path, steps)
        return self.walk(query, ref, at + 1, value, accept)

    def extent(self, query: BodyQuery, node: Node | None, path: tuple[Value, ...]) -> Value:
        """Returns all documents below a path: base documents and documents of rules."""
        base = self.resolved(("data", *path))
        if node is None:
            return base
        virtual = self.leaves(query, node, path)
        return virtual if base is UNDEFINED else merge(base, virtual)

    def leaves(self, query: BodyQuery, node: Node, path: tuple[Value, ...]) -> Value:
        """Returns the documents of the rules below a node."""
        items: list[tuple[Value, Value]] = []
        for name in ordered([child.name for child in node.children.values()]):
            child = node.child(name)
            assert child is not None
            if not child.rules:
                items.append((name, self.leaves(query, child, (*path, name))))
                continue
            reached: list[Value] = []
            ref = ir.Ref(ir.Var("data"), [ir.Const(step) for step in (*path, name)])

            def keep(value: Value, reached: list[Value] = reached) -> Signal:
                reached.append(value)
                return None

            self.each(query, ref, keep)
            items += [(name, value) for value in reached[:1]]
        return make_object(items)

    def plug(self, query: BodyQuery, term: Term) -> Value:
        """Returns the value of a term; UNDEFINED if it has none, or a variable is unbound."""
        if isinstance(term, ir.Const):
            return term.value
        if isinstance(term, ir.Var):
            return self.variable(query, term.name)
        if isinstance(term, ir.Comprehension):
            return self.comprehension(query, term)
        if isinstance(term, ir.Ref):
            reached: list[Value] = []

            def keep(value: Value) -> Signal:
                reached.append(value)
                return None

            self.each(query, term, keep)
            return reached[0] if reached else UNDEFINED
        if isinstance(term, ir.Object):
            pairs = [(self.plug(query, k), self.plug(query, v)) for k, v in term.items]
            if any(k is UNDEFINED or v is UNDEFINED for k, v in pairs):
                return UNDEFINED
            return make_object(pairs)
        assert isinstance(term, (ir.Array, ir.Set))
        items = [self.plug(query, item) for item in term.items]
        if any(item is UNDEFINED for item in items):
            return UNDEFINED
        return items if isinstance(term, ir.Array) else RegoSet(items)

    def variable(self, query: BodyQuery, name: str) -> Value:
        """A variable's value; UNDEFINED where it has none yet."""
        if name == "input":
            return self.world.input
        if name == "data":
            return self.extent(query, self.tree.root, ())
        return query.values.get(name, UNDEFINED)

    def comprehension(self, query: BodyQuery, term: ir.Comprehension) -> Value:
        """The collection of a comprehension's solutions."""
        child = self.child(query, term.body)
        self.tell("Enter", child, term.body)
        members: list[Any] = []

        def solved() -> Signal:
            self.tell("Exit", child, term.body)
            value = self.plug(child, term.value)
            members.append(value if term.key is None else (self.plug(child, term.key), value))
            self.tell("Redo", child, term.body)
            return None

        self.query(child, 0, solved)
        if term.kind == "array":
            return members
        return RegoSet(members) if term.kind == "set" else make_object(members)


def applied(query: BodyQuery, term: Term) -> Term:
    """The term, or the value that a variable has by now."""
    if isinstance(term, ir.Var) and term.name in query.values:
        return ir.Const(query.values[term.name])
    return term


def iterates(term: Term) -> bool:
    """Whether a term is looked up or computed, and may have several values."""
    if isinstance(term, ir.Var):
        return term.name in {"input", "data"}
    return isinstance(term, ir.Ref | ir.Comprehension)
