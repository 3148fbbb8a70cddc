"""Stage 9: calls of functions and built-ins as Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import UNDEFINED, Value, is_small
from webhook.rego.write.constants import is_computable
from webhook.rego.write.expression import (
    TRUE,
    Expression,
    Kind,
    all_of,
    any_of,
    call,
    compare,
    conditional,
    is_of,
    item,
    negation,
)
from webhook.rego.write.function_requests import Function
from webhook.rego.write.inline import INLINE

if TYPE_CHECKING:
    from webhook.rego.write.function import FunctionBuilder

MAX_INLINED: Final = 40
"""The most calls written inline in one program: more calls lengthen the code for little gain."""

MAX_COMPUTED: Final = 10_000
"""Scalars and characters of a value computed while code is written: some 100 KB."""

MAX_COMPUTED_STEPS: Final = 2_000
"""The budget of such a computation: about a tenth of a millisecond."""

_COMPARISONS: Final = {
    "lt": ("<", "before", False),
    "lte": ("<=", "not_after", False),
    "gt": (">", "before", True),
    "gte": (">=", "not_after", True),
}
"""The operator for integers, the function for other values, and whether its operands are
swapped."""

_RESULTS: Final = {"string": Kind.STRING, "boolean": Kind.BOOL}


class Calls:
    """Writes calls into a function; a small function is written into its caller's nest."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionBuilder) -> None:
        self._function = function

    def call(self, lit: ir.Call) -> None:
        """A call that is a literal."""
        name = lit.name
        if isinstance(name, str):
            if name == "walk":
                self._relation(lit)
                return
            mocked = self._function.unit.mocked
            if name not in mocked and (self._computed(lit) or self._special(lit)):
                return
        self._function.patterns.give(lit.out, self._result(lit))

    def _computed(self, lit: ir.Call) -> bool:
        """Writes the result of a built-in with known operands; returns False for other calls."""
        terms = self._function.terms
        builtin = self._function.unit.builtins[str(lit.name)]
        if not is_computable(builtin):
            return False
        values = []
        for arg in lit.args:
            value = terms.static(arg)
            if value is MISSING or value is UNDEFINED:
                return False
            values.append(value)
        context = EvaluationContext(steps=MAX_COMPUTED_STEPS)
        try:
            known = builtin.function(*([context] if builtin.context else []), *values)
        except (BuiltinError, EvaluationError, RecursionError):
            return False  # the error is raised by the evaluation
        if context.is_particular or (known is not UNDEFINED and not is_small(known, MAX_COMPUTED)):
            return False
        self._function.patterns.give(lit.out, terms.constant(known))
        return True

    # --- functions of the policy --------------------------------------------------------------

    def _result(self, lit: ir.Call) -> Expression:
        """The defined result of a call."""
        function, unit = self._function, self._function.unit
        name = lit.name
        operands = function.terms.arguments(lit.args)
        if isinstance(name, str):
            return self._builtin(name, operands, lit)
        node = unit.tree.function(name)
        assert node is not None
        unread = lit.out is None or function.terms.single_use(lit.out)
        if name not in unit.mocked and unit.inlined < MAX_INLINED:
            rules = node.inlined
            if len(rules) == 1:
                return self._inline(rules[0], lit, operands)
            if rules and unread:
                return self._inline_any(rules, lit, operands)
        if node.rules[0].args is None:  # `f()` reads the rule
            path: list[ir.Term] = [ir.Const(step) for step in node.path]
            return function.references.document(node, path, len(path))
        value = self._foreseen(name, operands)
        if value is not MISSING:
            return function.terms.constant(value)
        given = self._given_constants(name, operands)
        called = unit.want(Function(node, given))
        if name not in unit.mocked and called in unit.fixed:
            return function.terms.constant(unit.fixed[called])
        if called not in unit.quiet:
            function.effects += 1
        function.called(called)
        unit.calls[id(node)] = unit.calls.get(id(node), 0) + 1
        if given:
            operands = [
                operand for operand, known in zip(operands, given, strict=True) if known is None
            ]
        if name in unit.mocked:
            key = unit.constant(function_key(name))
            return function.defined(call("call", function.state, key, called, *operands))
        result = call(called, function.state, *operands)
        if not node.always_true:
            return function.defined(result)
        if unread:
            function.condition(compare(result, "is not", "U"))
            return TRUE
        return function.defined(result.of_kind(Kind.BOOL))

    def _given_constants(
        self, name: tuple[str, ...], operands: list[Expression]
    ) -> tuple[Expression | None, ...]:
        """The known operands, for which a function of their own is written; None for the others.

        Empty where the general function is called.
        """
        unit = self._function.unit
        if unit.ahead is None or name in unit.mocked:
            return ()
        known = tuple(operand if operand.is_known else None for operand in operands)
        return known if any(known) and unit.may_vary() else ()

    def _foreseen(self, name: tuple[str, ...], operands: list[Expression]) -> Value:
        """Returns a function's result for known operands, if code for a constraint can know it."""
        unit = self._function.unit
        if unit.ahead is None or name in unit.mocked:
            return MISSING
        if not all(operand.is_known for operand in operands):
            return MISSING
        return unit.ahead.call(name, operands)

    def _inline(self, rule: ir.Rule, lit: ir.Call, operands: list[Expression]) -> Expression:
        """The body of a small function in the caller's nest."""
        function = self._function
        function.unit.inlined += 1
        given = [function.simple(operand) for operand in operands]
        outer, counted = function.env, function.uses.variables
        try:
            self._enter(rule, given)
            function.location = lit.location
            assert rule.value is not None
            return function.terms.operand(rule.value)
        finally:
            function.env, function.uses.variables = outer, counted

    def _enter(self, rule: ir.Rule, given: list[Expression]) -> None:
        """Opens the nest of a function's body, in variables of its own."""
        function = self._function
        function.uses.variables = function.uses.of(rule)
        function.env = {}
        assert rule.args is not None
        for arg, operand in zip(rule.args, given, strict=True):
            function.patterns.match(arg, operand)
        function.nest.body(rule.body)

    def _inline_any(
        self, rules: list[ir.Rule], lit: ir.Call, operands: list[Expression]
    ) -> Expression:
        """Whether any of a function's bodies holds: all its values are true."""
        function = self._function
        function.unit.inlined += len(rules)
        given = [function.simple(operand) for operand in operands]
        counted = function.uses.variables
        tests = [function.nest.exists(partial(self._enter, rule, given)) for rule in rules]
        function.uses.variables = counted
        function.location = lit.location
        if not any(test.value is True for test in tests):
            function.condition(any_of([test for test in tests if not test.is_known]))
        return TRUE

    # --- built-ins ----------------------------------------------------------------------------

    def _builtin(self, name: str, operands: list[Expression], lit: ir.Call) -> Expression:
        function, unit = self._function, self._function.unit
        builtin = unit.builtins[name]
        if name in unit.mocked:
            place = unit.place(lit.location)
            key = unit.constant(function_key((name,)))
            mock = call("as_mock", unit.slow(name), place)
            return function.defined(call("call", function.state, key, mock, *operands))
        result = self._tried(lit, operands)
        function.condition(compare(result, "is not", "U"))
        return result.of_kind(_RESULTS.get(str(builtin.result), Kind.ANY))

    def _tried(self, lit: ir.Call, operands: list[Expression], *, pay: bool = True) -> Expression:
        """Returns a local with the result of a built-in; undefined after an error."""
        function, unit = self._function, self._function.unit
        assert isinstance(lit.name, str)
        builtin = unit.builtins[lit.name]
        place = unit.place(lit.location)
        context = [item(function.state, 2)] if builtin.context else []
        result = function.new()
        function.may_complain()
        if pay:
            function.work()
        called = call(unit.builtin(lit.name), *context, *operands)
        failed = call("failed", function.state, unit.constant(lit.name), place)
        function.line(f"try: {result.source} = {called.source}")
        function.line(f"except BuiltinError: {result.source} = {failed.source}")
        return result

    def _relation(self, lit: ir.Call) -> None:
        """A built-in with several results."""
        function = self._function
        result = self._tried(lit, function.terms.arguments(lit.args), pay=False)
        function.condition(compare(result, "is not", "U"))
        if lit.out is None:
            return
        function.charge_turns()
        value = function.new(Kind.LIST)
        function.loop(value, result)
        function.patterns.match(lit.out, value)

    def _special(self, lit: ir.Call) -> bool:
        """Built-ins written inline; False where the general form is needed."""
        function, patterns = self._function, self._function.patterns
        name = lit.name
        assert isinstance(name, str)
        if name == "equal" and lit.out is None and not all(map(function.terms.bound, lit.args)):
            patterns.unify(*lit.args)
            return True
        if name in ("equal", "neq"):
            test = patterns.equality(*function.terms.arguments(lit.args))
            patterns.truth(lit.out, test if name == "equal" else negation(test))
            return True
        if name in _COMPARISONS:
            a, b = map(function.simple, function.terms.arguments(lit.args))
            patterns.truth(lit.out, _compared(a, b, name, function.state))
            return True
        if name == "internal.member_3":
            operands = function.terms.arguments(lit.args)
            patterns.truth(lit.out, call("member_at", function.state, *operands, kind=Kind.BOOL))
            return True
        form = INLINE.get(name)
        return form is not None and form(function, lit)


def _compared(a: Expression, b: Expression, name: str, state: str) -> Expression:
    """A comparison: at once where both are integers, else by Rego's order."""
    operator, general, turned = _COMPARISONS[name]
    fast = compare(a, operator, b)
    tests = [is_of(operand, Kind.INT) for operand in (a, b) if operand.kind is not Kind.INT]
    if not tests:
        return fast
    slow = call(general, state, *((b, a) if turned else (a, b)), kind=Kind.BOOL)
    return conditional(fast, all_of(tests), slow)


def function_key(name: ir.Function | tuple[str, ...]) -> tuple[str, ...]:
    """The key under which a function's replacement is looked up."""
    return (name,) if isinstance(name, str) else tuple(name)
