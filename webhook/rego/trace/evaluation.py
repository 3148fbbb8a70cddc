"""Checked rules evaluated from the top down, one step after the other (OPA v1/topdown/eval.go).

Each part of a query receives its continuation and returns the reason for an early end of the
search, as in OPA. So the steps come in OPA's order, including steps after an early exit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError
from webhook.rego.location import NOWHERE
from webhook.rego.run.text import display
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value, key
from webhook.rego.trace.documents import replaced
from webhook.rego.trace.rules import RuleSteps
from webhook.rego.trace.steps import ABSENT, BodyQuery, EarlyExit, Signal, Then, World
from webhook.rego.trace.terms import applied

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.check.ir import Term

_EFFECTS: Final = frozenset({"trace", "internal.print", "internal.test_case"})
"""Built-ins that return true and are called for their effect."""


class StepwiseEvaluation(RuleSteps):
    """Evaluates queries over a program's rules, and passes each step to a tracer."""

    def run(self, body: Sequence[ir.Lit], names: Mapping[str, str]) -> None:
        """Evaluates a query for all its solutions; raises :class:`EvaluationError`."""
        query = BodyQuery(body, 0, 0, {}, names)
        self.tell("Enter", query, body)

        def solved() -> Signal:
            self.tell("Exit", query, body)
            self.tell("Redo", query, body)
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
        self.tell("Eval", query, lit)

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
            self.tell("Redo", query, lit)
            return signal

        signal: Signal = _SOLVE[type(lit)](self, query, lit, held)
        if signal is None and not defined:
            self.tell("Fail", query, lit)
        return signal

    def negated(self, query: BodyQuery, lit: ir.Lit, on: Then) -> Signal:
        """A literal behind ``not``."""
        plain = _plain(lit)
        if not self.holds(query, [plain]):
            return on()
        self.tell("Fail", query, lit)
        return None

    def holds(self, query: BodyQuery, body: Sequence[ir.Lit], *, find_one: bool = False) -> bool:
        """Returns whether a body has a solution; each is passed to the tracer."""
        child = self.child(query, body)
        child.find_one = find_one
        self.tell("Enter", child, body)

        def solved() -> Signal:
            self.tell("Exit", child, body)
            self.tell("Redo", child, body)
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
                self.tell("Unify", query, ir.Eq(ir.Const(value), shown, NOWHERE))
            return then() if value is not False else None

        if self.trace.unifications:
            self.tell("Unify", query, ir.Eq(applied(query, lit.term), shown, NOWHERE))
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
        """``every``."""
        domain = self.plug(query, lit.domain)
        if not isinstance(domain, (list, dict, RegoObject, RegoSet)):
            self.tell("Fail", query, lit)
            return None
        place = lit.location
        generator: list[ir.Lit] = [ir.Eq(ir.Ref(lit.domain, [lit.key], place), lit.value, place)]
        child = self.child(query, generator)
        self.tell("Enter", child, lit)
        every = True

        def item() -> Signal:
            nonlocal every
            if every:
                every = self.holds(child, lit.body, find_one=True)
                self.tell("Redo", child, lit)
            return None

        self.query(child, 0, item)
        if not every:
            self.tell("Fail", child, lit)
            return None
        signal = then()
        self.tell("Exit", child, lit)
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
            self.tell("Note", query, query.at, operands[0])
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
