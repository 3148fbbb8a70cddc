"""Stage 5d: calls of functions and built-ins as Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import UNDEFINED, is_small
from webhook.rego.write.calls import INLINE
from webhook.rego.write.constants import is_computable
from webhook.rego.write.unification import UnificationWriter
from webhook.rego.write.writer import BOOL, LIST, STRING, Operand

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.run.values import Value

MAX_INLINED: Final = 40
"""Calls written inline in one program: beyond, code would grow for little."""

MAX_COMPUTED: Final = 10_000
"""Scalars and characters of a value computed while code is written: some 100 KB."""

MAX_COMPUTED_STEPS: Final = 2_000
"""The budget of such a computation: about a tenth of a millisecond."""

_COMPARISONS: Final = {
    "lt": ("<", "before({2}, {0}, {1})"),
    "lte": ("<=", "not_after({2}, {0}, {1})"),
    "gt": (">", "before({2}, {1}, {0})"),
    "gte": (">=", "not_after({2}, {1}, {0})"),
}


class CallWriter(UnificationWriter):
    """Writes calls; a small function is written into its caller's nest."""

    __slots__ = ()

    def body(self, body: ir.Body) -> None:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    def exists(self, write: Callable[[], None]) -> str:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    def true(self, value: Operand) -> None:
        """What follows happens where the (defined) value is not false."""
        source, kind = value
        known = self.value_of(value)
        if known is not MISSING:
            self.condition(str(known is not False))
        elif kind == BOOL:
            self.condition(source)
        elif kind == "":
            self.condition(f"{self.name_of(source)} is not False")

    def call_(self, lit: ir.Call) -> None:
        """A call."""
        name = lit.name
        if isinstance(name, str):
            if name == "walk":
                self._relation(lit)
                return
            if name not in self.unit.mocked and (self._computed(lit) or self._special(lit)):
                return
        result = self._result(lit)
        self.give(lit, result)

    def _computed(self, lit: ir.Call) -> bool:
        """Give the result of a built-in whose operands are known, or return False."""
        builtin = self.unit.builtins[str(lit.name)]
        if not is_computable(builtin):
            return False
        values = []
        for arg in lit.args:
            value = self.static(arg)
            if value is MISSING or value is UNDEFINED:
                return False
            values.append(value)
        context = EvaluationContext(steps=MAX_COMPUTED_STEPS)
        try:
            found = builtin.function(*([context] if builtin.context else []), *values)
        except (BuiltinError, EvaluationError, RecursionError):
            return False  # whoever evaluates it is to see that
        if context.is_particular or (found is not UNDEFINED and not is_small(found, MAX_COMPUTED)):
            return False
        self.give(lit, self.constant(found))
        return True

    def give(self, lit: ir.Call, result: Operand) -> None:
        """The result goes to the literal's output, or must be true."""
        if lit.out is None:
            self.true(result)
        else:
            self.match(lit.out, result)

    def _result(self, lit: ir.Call) -> Operand:
        """The defined result of a call."""
        name = lit.name
        operands = self.arguments(lit.args)
        args = [source for source, _ in operands]
        if isinstance(name, str):
            return self._builtin(name, args, lit)
        node = self.unit.tree.function(name)
        assert node is not None
        if name not in self.unit.mocked and self.unit.inlined < MAX_INLINED:
            rules = node.inlined
            if len(rules) == 1:
                return self._inline(rules[0], lit, operands)
            if rules and (lit.out is None or self.single_use(lit.out)):
                return self._inline_any(rules, lit, operands)
        if node.rules[0].args is None:  # `f()` reads the rule
            return self.document(node, [ir.Const(step) for step in node.path], len(node.path))
        value = self._ahead(name, operands)
        if value is MISSING:
            given = self._given_constants(name, operands)
            function = self.unit.want("f", node, given)
            if name not in self.unit.mocked:
                value = self.unit.fixed.get(function, MISSING)
        if value is not MISSING:
            return self.constant(value)
        if function not in self.unit.quiet:
            self.effects += 1
        self.called(function)
        self.unit.calls[id(node)] = self.unit.calls.get(id(node), 0) + 1
        if given:
            args = [arg for arg, known in zip(args, given, strict=True) if not known]
        passed = "".join(f", {arg}" for arg in args)
        if name in self.unit.mocked:
            key = self.unit.constant(function_key(name))
            return self.defined(f"call({self.state}, {key}, {function}{passed})"), ""
        if node.always_true:
            if lit.out is None or self.single_use(lit.out):
                self.condition(f"{function}({self.state}{passed}) is not U")
                return "True", BOOL
            return self.defined(f"{function}({self.state}{passed})"), BOOL
        return self.defined(f"{function}({self.state}{passed})"), ""

    def _given_constants(
        self, name: tuple[str, ...], operands: list[Operand]
    ) -> tuple[str, ...] | None:
        """The sources of known operands, for which a function of their own is written.

        Empty ones stand for the others. None where the general function is called.
        """
        if self.unit.ahead is None or name in self.unit.mocked:
            return None
        known = tuple("" if self.value_of(one) is MISSING else one[0] for one in operands)
        return known if any(known) and self.unit.may_vary() else None

    def _ahead(self, name: tuple[str, ...], operands: list[Operand]) -> Value:
        """What a function gives for known operands, where code for a constraint can know it."""
        if self.unit.ahead is None or name in self.unit.mocked:
            return MISSING
        known = {operand[0]: self.value_of(operand) for operand in operands}
        if MISSING in known.values() or len(known) < len(operands):
            return MISSING
        return self.unit.ahead.call(name, known)

    def _inline(self, rule: ir.Rule, lit: ir.Call, operands: list[Operand]) -> Operand:
        """The body of a small function in the caller's nest."""
        self.unit.inlined += 1
        given = [(self.name_of(source), kind) for source, kind in operands]
        outer, counted = self.env, self.uses.variables
        try:
            self._enter(rule, given)
            self.location = lit.location
            assert rule.value is not None
            return self.operand(rule.value)
        finally:
            self.env, self.uses.variables = outer, counted

    def _enter(self, rule: ir.Rule, given: list[Operand]) -> None:
        """Open the nest of a function's body, in variables of its own."""
        self.uses.variables = self.uses.of(rule)
        self.env = {}
        assert rule.args is not None
        for arg, operand in zip(rule.args, given, strict=True):
            self.match(arg, operand)
        self.body(rule.body)

    def _inline_any(self, rules: list[ir.Rule], lit: ir.Call, operands: list[Operand]) -> Operand:
        """Whether any of a function's bodies holds: all its values are true."""
        self.unit.inlined += len(rules)
        given = [(self.name_of(source), kind) for source, kind in operands]
        counted = self.uses.variables
        tests = [self.exists(partial(self._enter, rule, given)) for rule in rules]
        self.uses.variables = counted
        self.location = lit.location
        if "True" not in tests:
            tests = [test for test in tests if test != "False"]
            self.condition(f"({' or '.join(tests)})" if tests else "False")
        return "True", BOOL

    def arguments(self, args: list[ir.Term]) -> list[Operand]:
        """The operands of a call; one may use what iterating another binds."""
        found: dict[int, Operand] = {}
        for i, arg in enumerate(args):  # most come in an order in which they can be written
            if not self.evaluable(arg):
                break
            found[i] = self.operand(arg)
        else:
            return list(found.values())
        while len(found) < len(args):
            before = len(found)
            for i, arg in enumerate(args):
                if i not in found and self.evaluable(arg):
                    found[i] = self.operand(arg)
            if len(found) == before:
                raise self.unit.refuse("operand is not bound", self.location)
        return [found[i] for i in range(len(args))]

    def _builtin(self, name: str, args: list[str], lit: ir.Call) -> Operand:
        builtin = self.unit.builtins[name]
        place = self.unit.place(lit.location)
        kind = _RESULTS.get(str(builtin.result), "")
        if name in self.unit.mocked:
            key = self.unit.constant(function_key((name,)))
            function = f"as_mock({self.unit.slow(name)}, {place})"
            given = "".join(f", {arg}" for arg in args)
            return self.defined(f"call({self.state}, {key}, {function}{given})"), ""
        given = ", ".join(([f"{self.state}[2]"] if builtin.context else []) + args)
        result = self.new()
        self.may_complain()
        self.work()
        self.line(f"try: {result} = {self.unit.builtin(name)}({given})")
        self.line(f"except BuiltinError: {result} = failed({self.state}, {name!r}, {place})")
        self.condition(f"{result} is not U")
        return result, kind

    def _relation(self, lit: ir.Call) -> None:
        """A built-in with several results."""
        args = [source for source, _ in self.arguments(lit.args)]
        assert isinstance(lit.name, str)
        builtin = self.unit.builtins[lit.name]
        place = self.unit.place(lit.location)
        given = ", ".join(([f"{self.state}[2]"] if builtin.context else []) + args)
        found = self.new()
        self.may_complain()
        self.line(f"try: {found} = {self.unit.builtin(lit.name)}({given})")
        self.line(f"except BuiltinError: {found} = failed({self.state}, {lit.name!r}, {place})")
        self.condition(f"{found} is not U")
        if lit.out is None:
            return
        self.charge_turns()
        value = self.new()
        self.loop(value, found)
        self.match(lit.out, (value, LIST))

    def _special(self, lit: ir.Call) -> bool:
        """Built-ins written inline; False where the general form is needed."""
        name = lit.name
        assert isinstance(name, str)
        if name == "equal" and lit.out is None and not all(map(self.bound, lit.args)):
            self.unify(*lit.args)
            return True
        if name in ("equal", "neq"):
            a, b = self.arguments(lit.args)
            source = self.equality(a, b)
            self.truth(lit, source if name == "equal" else f"not ({source})")
            return True
        comparison = _COMPARISONS.get(name)
        if comparison is not None:
            a, b = ((self.name_of(x), kind) for x, kind in self.arguments(lit.args))
            self.truth(lit, _compared(a, b, *comparison, self.state))
            return True
        if name == "internal.member_3":
            given = ", ".join(source for source, _ in self.arguments(lit.args))
            self.truth(lit, f"member_at({self.state}, {given})")
            return True
        inline = INLINE.get(name)
        if inline is None:
            return False
        return inline(self, lit)

    def truth(self, lit: ir.Call, source: str) -> None:
        """A boolean result known as an expression."""
        if lit.out is None:
            self.condition(source)
        else:
            self.match(lit.out, (f"({source})", BOOL))


_RESULTS: Final = {"string": STRING, "boolean": BOOL}


def _compared(a: Operand, b: Operand, operator: str, general: str, state: str) -> str:
    """A comparison: at once where a constant tells the kind, else by Rego's order."""
    (x, kind), (y, other) = a, b
    slow = general.format(x, y, state)
    if kind == "i" and other == "i":
        return f"{x} {operator} {y}"
    if other == "i":
        return f"({x} {operator} {y} if type({x}) is int else {slow})"
    if kind == "i":
        return f"({x} {operator} {y} if type({y}) is int else {slow})"
    return f"({x} {operator} {y} if type({x}) is int and type({y}) is int else {slow})"


def function_key(name: ir.Function | tuple[str, ...]) -> tuple[str, ...]:
    """The key under which a function's replacement is looked up."""
    return (name,) if isinstance(name, str) else tuple(name)
