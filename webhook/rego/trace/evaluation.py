"""Checked rules evaluated from the top down, one step after the other (OPA v1/topdown/eval.go).

Each part of a query receives its continuation and returns the reason for an early end of the
search, as in OPA. So the steps come in OPA's order, including steps after an early exit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.location import NOWHERE
from webhook.rego.run import runtime
from webhook.rego.run.packages import merge
from webhook.rego.run.text import display
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
from webhook.rego.trace import index
from webhook.rego.trace.documents import PartialDocument, replaced
from webhook.rego.trace.steps import ABSENT, BodyQuery, EarlyExit, Signal, Steps, Then, World
from webhook.rego.trace.text import written_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.check.ir import Term
    from webhook.rego.check.tree import Node

_EFFECTS: Final = frozenset({"trace", "internal.print", "internal.test_case"})
"""Built-ins that return true and are called for their effect."""


class StepwiseEvaluation(Steps):
    """Evaluates queries over a program's rules, and passes each step to a tracer."""

    def run(self, body: Sequence[ir.Lit], names: Mapping[str, str]) -> None:
        """Evaluates a query for all its solutions; raises :class:`EvaluationError`."""
        query = BodyQuery(body, 0, 0, {}, names)
        self.notify("Enter", query, body)

        def solved() -> Signal:
            self.notify("Exit", query, body)
            self.notify("Redo", query, body)
            return None

        self.query(query, 0, solved)

    # --- bodies ------------------------------------------------------------------------------

    def query(self, query: BodyQuery, at: int, then: Then) -> Signal:
        """Evaluates a body from a literal on."""
        if at >= len(query.body):
            signal = then()
            if signal is not None:
                return EarlyExit(query.find_one, signal)
            return EarlyExit(early=True) if query.find_one else None
        lit = query.body[at]
        query.at = lit
        self.context.charge(20)
        self.notify("Eval", query, lit)

        def on() -> Signal:
            return self.query(query, at + 1, then)

        return self.modified(query, lit, on) if lit.withs else self.step(query, lit, on)

    def step(self, query: BodyQuery, lit: ir.Lit, on: Then) -> Signal:
        """Evaluates a literal with its modifiers in force."""
        if lit.negated:
            return self.negated(query, lit, on)
        defined = False

        def held() -> Signal:
            nonlocal defined
            defined = True
            signal = on()
            query.at = lit
            self.notify("Redo", query, lit)
            return signal

        signal: Signal = _SOLVE[type(lit)](self, query, lit, held)
        if signal is None and not defined:
            self.notify("Fail", query, lit)
        return signal

    def negated(self, query: BodyQuery, lit: ir.Lit, on: Then) -> Signal:
        """A literal behind ``not``."""
        plain = _plain(lit)
        if not self.holds(query, [plain]):
            return on()
        self.notify("Fail", query, lit)
        return None

    def holds(self, query: BodyQuery, body: Sequence[ir.Lit], *, find_one: bool = False) -> bool:
        """Returns whether a body has a solution; each is passed to the tracer."""
        child = self.child(query, body)
        child.find_one = find_one
        self.notify("Enter", child, body)

        def solved() -> Signal:
            self.notify("Exit", child, body)
            self.notify("Redo", child, body)
            child.defined = True
            return None

        self.query(child, 0, solved)
        return child.defined

    def modified(self, query: BodyQuery, lit: ir.Lit, on: Then) -> Signal:
        """Evaluates a literal with modifiers, which replace their targets for it alone."""
        outer = self.world
        inner = World(outer.input, outer.data, outer.replaced, outer.functions, outer.values)
        inner.functions, inner.values = dict(outer.functions), dict(outer.values)
        for modifier in lit.withs:
            value = self.plug(query, modifier.value)
            if modifier.kind == "input":
                inner.input = replaced(inner.input, modifier.target[1:], value)
            elif modifier.kind == "data":
                inner.data = replaced(inner.data, modifier.target[1:], value)
                inner.replaced = (*inner.replaced, modifier.target[1:])
            else:
                name: ir.Function = (
                    modifier.target if modifier.target[0] == "data" else modifier.target[0]
                )
                inner.functions[name] = modifier
                inner.values[name] = value

        def outside() -> Signal:
            self.world = outer
            signal = on()
            inner.known = {}  # OPA's cache for the modifier ends with it, and begins anew
            self.world = inner
            return signal

        self.world = inner
        try:
            return self.step(query, lit, outside)
        finally:
            self.world = outer

    # --- literals ----------------------------------------------------------------------------

    def eq(self, query: BodyQuery, lit: ir.Eq, then: Then) -> Signal:
        """A unification."""
        return self.unify(query, lit.a, lit.b, then)

    def test_(self, query: BodyQuery, lit: ir.Test, then: Then) -> Signal:
        """A term that must be neither false nor undefined."""
        shown = ir.Var("$term")

        def accept(value: Value) -> Signal:
            if self.trace.unifications:
                self.notify("Unify", query, ir.Eq(ir.Const(value), shown, NOWHERE))
            return then() if value is not False else None

        if self.trace.unifications:
            self.notify("Unify", query, ir.Eq(applied(query, lit.term), shown, NOWHERE))
        return self.each(query, lit.term, accept)

    def not_(self, query: BodyQuery, lit: ir.Not, then: Then) -> Signal:
        """``not`` before a body."""
        return None if self.holds(query, lit.body) else then()

    def logic(self, query: BodyQuery, lit: ir.Logic, then: Then) -> Signal:
        """``and`` and ``or``."""
        left = self.holds(query, lit.left, find_one=True)
        if left == (lit.operator == "or") or self.holds(query, lit.right, find_one=True):
            return then() if left or lit.operator == "or" else None
        return None

    def every(self, query: BodyQuery, lit: ir.Every, then: Then) -> Signal:
        """Evaluates ``every``: a child query yields the items, another has to hold for each."""
        domain = self.plug(query, lit.domain)
        if not isinstance(domain, (list, dict, RegoObject, RegoSet)):
            self.notify("Fail", query, lit)
            return None
        place = lit.location
        generator: list[ir.Lit] = [ir.Eq(ir.Ref(lit.domain, [lit.key], place), lit.value, place)]
        child = self.child(query, generator)
        self.notify("Enter", child, lit)
        every = True

        def item() -> Signal:
            nonlocal every
            if every:
                every = self.holds(child, lit.body, find_one=True)
                self.notify("Redo", child, lit)
            return None

        self.query(child, 0, item)
        if not every:
            self.notify("Fail", child, lit)
            return None
        signal = then()
        self.notify("Exit", child, lit)
        return signal

    # --- calls -------------------------------------------------------------------------------

    def call(self, query: BodyQuery, lit: ir.Call, then: Then) -> Signal:
        """Calls a built-in or function for every value of its arguments; an output may be the last."""
        out = lit.out
        args = lit.args
        expected = self.arity(lit.name)
        if out is None and len(args) > expected >= 0:
            args, out = args[:expected], args[expected]

        def accept(value: Value) -> Signal:
            if out is None:
                return then() if value is not False else None
            return self.unify(query, out, ir.Const(value), then)

        return self.called(query, lit.name, args, accept)

    def arity(self, name: ir.Function) -> int:
        """How many operands a function takes; -1 for none of that name."""
        if isinstance(name, str):
            builtin = self.builtins.get(name)
            return len(builtin.operands) if builtin is not None else -1
        node = self.tree.function(name)
        return -1 if node is None else len(node.rules[0].args or ())

    def called(
        self,
        query: BodyQuery,
        name: ir.Function,
        args: Sequence[Term],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Continues with each result of a function or of its replacement."""
        world = self.world
        mock = world.functions.get(name)
        if mock is not None:
            if mock.function is None:
                return accept(world.values[name])
            # The replacement of a function may call the function itself.
            self.world = inner = World(world.input, world.data, world.replaced, {}, {}, world.known)

            def outside(value: Value) -> Signal:
                self.world = world
                signal = accept(value)
                self.world = inner
                return signal

            try:
                return self.called(query, mock.function, args, outside)
            finally:
                self.world = world
        operands = [self.plug(query, arg) for arg in args]
        if any(operand is UNDEFINED for operand in operands):
            return None
        if isinstance(name, str):
            return self.builtin(query, name, operands, accept)
        return self.function(query, name, operands, accept)

    def builtin(
        self, query: BodyQuery, name: str, operands: list[Value], accept: Callable[[Value], Signal]
    ) -> Signal:
        """Goes on with each answer of a built-in."""
        if name == "trace" and isinstance(operands[0], str):
            self.notify("Note", query, query.at, operands[0])
        if name in _EFFECTS:
            return accept(True)  # a value
        if name == "internal.template_string":
            return accept("".join(map(_shown, operands[0])))
        builtin = self.builtins[name]
        try:
            given = [self.context, *operands] if builtin.context else operands
            result = builtin.function(*given)
            results = list(result) if builtin.relation else [result]
        except BuiltinError:
            return None
        for value in results:
            if value is UNDEFINED:
                continue
            signal = accept(True if builtin.result is None else value)
            if signal is not None:
                return signal
        return None

    def function(
        self,
        query: BodyQuery,
        name: tuple[str, ...],
        operands: list[Value],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Goes on with the answer of a rule that is a function."""
        node = self.tree.function(name)
        if node is None:
            return None
        matched = self.matched(query, node, name, operands)
        at = (name, *map(key, operands))
        known = self.world.known.get(at, ABSENT)
        if known is not ABSENT:
            return accept(known)
        return self.rules(query, matched, at, accept, operands)

    # --- rules -------------------------------------------------------------------------------

    def matched(
        self, query: BodyQuery, node: Node, path: Sequence[Value], operands: Sequence[Value] | None
    ) -> index.RuleMatch:
        """Returns the definitions of a rule that may hold by the index."""
        matched = index.matched(
            node.rules,
            None if not self.indexing else self.resolved,
            operands or (),
            early_exit=self.early_exit,
        )
        count = len(matched.rules)
        text = f"(matched {count} rule{'' if count == 1 else 's'}"
        early = ", early exit)" if matched.early_exit else ")"
        self.notify("Index", query, query.at, f"{written_path(path)} {text}{early}")
        return matched

    def rules(
        self,
        query: BodyQuery,
        matched: index.RuleMatch,
        at: Any,
        accept: Callable[[Value], Signal],
        operands: Sequence[Value] | None = None,
    ) -> Signal:
        """Evaluates complete rules and functions: their one value, with each definition checked."""
        previous: list[Value] = []
        deferred: Signal = None
        for first in matched.rules:
            for rule in (first, *matched.others.get(id(first), ())):
                held, signal = self.rule(query, matched, rule, at, previous, accept, operands)
                if signal is not None:
                    if signal.early:
                        return signal.before
                    deferred = deferred or signal
                if held:
                    break
        if matched.default is not None and not previous:
            _, signal = self.rule(query, matched, matched.default, at, previous, accept, operands)
            return None if signal is None else signal.before
        if not previous and operands is None:
            self.world.known[at] = UNDEFINED
        return None if deferred is None else deferred.before

    def rule(  # noqa: PLR0917  # state that a definition shares with those before it
        self,
        query: BodyQuery,
        matched: index.RuleMatch,
        rule: ir.Rule,
        at: Any,
        previous: list[Value],
        accept: Callable[[Value], Signal],
        operands: Sequence[Value] | None,
    ) -> tuple[bool, Signal]:
        """Evaluates one definition; returns whether it held, and the end of the search."""
        child = self.child(query, rule.body, rule=rule)
        child.find_one = matched.early_exit
        held = False
        self.notify("Enter", child, rule)

        def solved() -> Signal:
            nonlocal held
            held = True
            self.notify("Exit", child, rule)
            value = ir.Const(True) if rule.value is None else rule.value
            result = self.plug(child, value)
            self.world.known[at] = result
            if previous:
                if not equal(previous[0], result):
                    raise EvaluationError("eval_conflict_error", "conflict", rule.location)
                self.notify("Redo", child, rule)
                return None
            previous.append(result)
            signal = accept(result)
            if signal is None:
                self.notify("Redo", child, rule)
            return signal

        def body() -> Signal:
            return self.query(child, 0, solved)

        args = rule.args or [] if operands is not None else []
        signal = self.arguments(child, args, operands or [], body)
        return held, signal

    def arguments(
        self, child: BodyQuery, args: Sequence[Term], operands: Sequence[Value], then: Then
    ) -> Signal:
        """Unifies the operands with the parameters of a definition."""
        if not args:
            return then()
        return self.unify(
            child,
            ir.Const(operands[0]),
            args[0],
            lambda: self.arguments(child, args[1:], operands[1:], then),
        )

    def partial(
        self, query: BodyQuery, node: Node, path: tuple[Value, ...], rest: Sequence[Value]
    ) -> Value:
        """Evaluates partial rules: all members, or only members that constant steps may reach."""
        matched = self.matched(query, node, ("data", *path), None)
        whole = ("data", *map(key, path))
        steps = [*rest]
        for length in range(len(steps) + 1):
            known = self.world.known.get((*whole, *map(key, steps[:length])), ABSENT)
            if known is not ABSENT:
                return _within(known, steps[:length])
        result = PartialDocument(node)
        for rule in matched.rules:
            self.member(query, rule, result, steps)
        value = result.value()
        kept = min(len(steps), result.depth)
        inner = value
        for step in steps[:kept]:
            inner = runtime.index(inner, step)
        if inner is not UNDEFINED:
            self.world.known[*whole, *map(key, steps[:kept])] = inner
        return value

    def member(
        self, query: BodyQuery, rule: ir.Rule, result: PartialDocument, steps: Sequence[Value]
    ) -> None:
        """Evaluates one definition of a partial rule."""
        child = self.child(query, rule.body, rule=rule)
        self.notify("Enter", child, rule)
        head = [*rule.rest, *([] if rule.key is None else [rule.key])]

        def solved() -> Signal:
            self.notify("Exit", child, rule)
            twice = result.add(
                [self.plug(child, part) for part in head],
                UNDEFINED
                if rule.key is not None
                else self.plug(child, rule.value or ir.Const(True)),
                rule.location,
            )
            if twice and steps:
                self.notify("Duplicate", child, rule)
            self.notify("Redo", child, rule)
            return None

        def body() -> Signal:
            child.defined = True
            return self.query(child, 0, solved)

        self.arguments(child, head[: len(steps)], steps[: len(head)], body)
        if steps and not child.defined:
            self.notify("Fail", child, rule)

    def complete(
        self,
        query: BodyQuery,
        node: Node,
        path: tuple[Value, ...],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Goes on with the value of complete rules."""
        matched = self.matched(query, node, ("data", *path), None)
        at = ("data", *map(key, path))
        known = self.world.known.get(at, ABSENT)
        if known is not ABSENT:
            return None if known is UNDEFINED else accept(known)
        return self.rules(query, matched, at, accept)

    # --- terms: unified, followed into documents, and computed, value after value -------------

    def unify(self, query: BodyQuery, a: Term, b: Term, then: Then) -> Signal:
        """Goes on for each way in which two terms are equal."""
        a, b = applied(query, a), applied(query, b)
        if self.trace.unifications:
            self.notify("Unify", query, ir.Eq(a, b, NOWHERE))
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
            accept = runtime.index(value, self.plug(query, name))
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
            value = runtime.index(value, step)
            if value is UNDEFINED:
                return None
            at += 1
        else:
            return accept(value)
        deferred: Signal = None
        for name, item in runtime.pairs_in_order(value):
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
        names = [name for name, _ in runtime.pairs_in_order(self.resolved(("data", *path)))]
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
        self.notify("Enter", child, term.body)
        members: list[Any] = []

        def solved() -> Signal:
            self.notify("Exit", child, term.body)
            value = self.plug(child, term.value)
            members.append(value if term.key is None else (self.plug(child, term.key), value))
            self.notify("Redo", child, term.body)
            return None

        self.query(child, 0, solved)
        if term.kind == "array":
            return members
        return RegoSet(members) if term.kind == "set" else make_object(members)


_SOLVE: Final[dict[type, Any]] = {
    ir.Eq: StepwiseEvaluation.eq,
    ir.Call: StepwiseEvaluation.call,
    ir.Test: StepwiseEvaluation.test_,
    ir.Every: StepwiseEvaluation.every,
    ir.Not: StepwiseEvaluation.not_,
    ir.Logic: StepwiseEvaluation.logic,
}


def _plain(lit: ir.Lit) -> ir.Lit:
    """The literal without its negation and modifiers."""
    return replace(lit, negated=False, withs=[])


def _shown(part: Value) -> str:
    """Returns a part of a template string: text, or a set of shown values."""
    if isinstance(part, str):
        return part
    value = next(iter(part), UNDEFINED)
    if value is UNDEFINED:
        return "<undefined>"
    return value if isinstance(value, str) else display(value)


def _within(value: Value, steps: Sequence[Value]) -> Value:
    """Returns a value inside objects of one key each."""
    for step in reversed(steps):
        value = make_object([(step, value)])
    return value


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
