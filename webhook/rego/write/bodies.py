"""Stage 9: literals and bodies as Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import add_all_variables
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import RegoSet
from webhook.rego.write.calls import Calls, function_key
from webhook.rego.write.expression import (
    FALSE,
    TRUE,
    Expression,
    Kind,
    all_of,
    any_of,
    call,
    dict_of,
    list_of,
    method,
    negation,
    tuple_of,
)
from webhook.rego.write.facts import SizeOf
from webhook.rego.write.function import FunctionBuilder
from webhook.rego.write.function_requests import Collection, Function, Grouped
from webhook.rego.write.grouped import keys_of
from webhook.rego.write.references import References
from webhook.rego.write.terms import Terms
from webhook.rego.write.unification import Unification

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.write.statement import Line
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.uses import Uses


class Bodies:
    """Writes bodies into a function: literal after literal, each inside the success of the one before."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionBuilder) -> None:
        self._function = function

    def body(self, body: ir.Body) -> None:
        """Writes the literals of a body; the caller then writes the effect of a solution."""
        for lit in body:
            self._literal(lit)

    def _literal(self, lit: ir.Lit) -> None:
        self._function.location = lit.location
        if lit.withs:
            self._with(lit)
        elif lit.negated:
            self._negated(lit)
        else:
            _WRITE[type(lit)](self, lit)

    # --- nested bodies ---------------------------------------------------------------------------

    def _nested(self, write: Callable[[], object]) -> tuple[list[Line], list[Expression]]:
        """Writes aside, from the present place; returns lines and conditions left pending."""
        function = self._function
        saved = function.save()
        lines, pending = function.lines, function.pending
        function.lines, function.pending, function.loops = [], [], []
        function.flat = False
        function.collecting = ""
        try:
            write()
            function.close()
        finally:
            written = function.lines, function.pending
            function.lines, function.pending = lines, pending
            function.restore(saved)
        return written

    def exists(self, write: Callable[[], None]) -> Expression:
        """Whether a body, written by ``write``, has a solution.

        It proves nothing: which locals the body has assigned is its own matter.
        """
        function = self._function
        flag = function.new()
        start, reads = function.indent, dict(function.reads)
        straight = possible = False

        def solve() -> None:
            nonlocal straight, possible
            function.repeats = True
            possible = function.attempt(write)
            if not possible:
                return
            if function.lines and function.indent == start and not function.loops:
                straight = True
            elif function.lines:
                function.set(flag.source, TRUE)
                function.leave(flag)

        lines, pending = self._nested(solve)
        holds = all_of(pending).forgetting() if pending else (TRUE if possible else FALSE)
        if not lines:
            return holds
        if function.pending:  # the lines stand one level deeper, below the conditions
            function.flush()
            for line in lines:
                line.indent += 1
            function.reads = reads
        if straight or not possible:
            function.lines.extend(lines)
            return holds
        function.set(flag.source, FALSE)
        function.lines.extend(lines)
        return flag

    # --- collections and texts -------------------------------------------------------------------

    def comprehension(self, term: ir.Comprehension) -> Expression:
        """The collection of a comprehension's solutions."""
        function, unit = self._function, self._function.unit
        if unit.ahead is not None:
            known = unit.ahead.comprehension(term, function.terms.known, function.env)
            if known is not MISSING:
                return function.terms.constant(known)
        elif not unit.lenient and self._is_of_constraint(term):
            name = unit.want(Collection(term))
            return function.assign(call(name, function.state, kind=_KINDS[term.kind]))
        return self._grouped(term) or self.collection(term)

    def _grouped(self, term: ir.Comprehension) -> Expression | None:
        """Returns the solutions for the bound values, from a collection grouped by key.

        Returns None if the comprehension is evaluated only once.
        """
        function, unit = self._function, self._function.unit
        if not (function.blocks or function.is_called_often):
            return None
        keys = keys_of(term, function.env, unit.arity)
        if not keys or any(function.env[key].is_known for key in keys):
            return None
        function.effects += 1
        name = unit.want(Grouped(term, keys))
        function.called(name)
        key_parts = tuple_of([function.terms.operand(ir.Var(key)) for key in keys])
        group = "array_of" if term.kind == "array" else "set_of"
        groups = call(name, function.state)
        return function.assign(method(groups, group, key_parts, kind=_KINDS[term.kind]))

    def _is_of_constraint(self, term: ir.Comprehension) -> bool:
        """Whether a comprehension uses nothing around it, and only parameters decide it."""
        if not self._function.unit.purity.term(term):
            return False
        used: set[str] = set()
        add_all_variables(term, used)
        return used.isdisjoint(self._function.env)

    def collection(self, term: ir.Comprehension) -> Expression:
        """The collection of a comprehension's solutions, written in place."""
        function = self._function
        function.flush()
        result = function.new(_KINDS[term.kind])

        def write() -> None:
            function.repeats = term.kind != "array"
            function.collecting = result.source
            self.body(term.body)
            function.location = term.location
            operand = function.terms.operand
            if term.kind == "array":
                function.line(method(result, "append", operand(term.value)).source)
            elif term.kind == "set":
                self.add_member(result.source, operand(term.value))
            else:
                assert term.key is not None
                self._add_entry(result, operand(term.key), operand(term.value))

        where = function.location
        lines, _ = self._nested(partial(function.attempt, write))
        function.location = where
        if not lines:
            return function.terms.constant(_EMPTY[term.kind]())
        function.set(result.source, list_of(()) if term.kind == "array" else dict_of(()))
        function.lines.extend(lines)
        if term.kind == "array":
            return result
        if term.kind == "set":
            members = function.assign(call("set_of", result, kind=Kind.SET))
            function.known[SizeOf(members.source)] = result
            return members
        return function.assign(call("finish", result))

    def add_member(self, result: str, value: Expression) -> None:
        """Adds to a set being built as a ``dict`` from key to member."""
        function = self._function
        member = function.simple(value)
        if value.kind is Kind.STRING:
            function.line(f"{result}[{member.source}] = {member.source}")
            return
        key = call("member_key", function.state, member)
        add = f"{result}.setdefault({key.source}, {member.source})"
        if value.kind is not Kind.ANY:
            function.line(add)
            function.work()
            return
        local = member.source
        function.line(f"if type({local}) is str: {result}[{local}] = {local}")
        function.line("else:")
        function.indent += 1
        function.line(add)
        function.work()
        function.indent -= 1

    def _add_entry(self, result: Expression, key: Expression, value: Expression) -> None:
        function = self._function
        function.effects += 1
        function.line(call("put", result, key, value, function.place()).source)
        function.work()

    def template(self, term: ir.Template) -> Expression:
        """A template string."""
        function = self._function
        function.effects += 1
        parts: list[Expression] = []
        for part in term.parts:
            if isinstance(part, str):
                parts.append(function.unit.constant(part))
            else:
                assert isinstance(part, ir.Comprehension)
                parts.append(self._values(part))
        return function.assign(
            call("template", tuple_of(parts), function.place(), kind=Kind.STRING)
        )

    def _values(self, term: ir.Comprehension) -> Expression:
        """A local list of the distinct values of a closure."""
        return self._function.assign(call("list", self.comprehension(term)))

    # --- literals ----------------------------------------------------------------------------------

    def eq_(self, lit: ir.Eq) -> None:
        """Unification."""
        self._function.patterns.unify(lit.a, lit.b)

    def test_(self, lit: ir.Test) -> None:
        """A term that must be true."""
        self._function.patterns.true(self._function.terms.operand(lit.term))

    def call_(self, lit: ir.Call) -> None:
        """Writes a built-in or function's call: inline, hoisted or as it stands."""
        self._function.calls.call(lit)

    def every_(self, lit: ir.Every) -> None:
        """A body for every item."""
        function = self._function
        domain = function.terms.atom(lit.domain)
        function.flush()
        function.condition(call("is_collection", domain))
        function.flush()
        holds = function.new()
        function.set(holds.source, TRUE)
        saved = function.save()
        function.loops = []
        function.flat = False
        function.repeats = True
        function.charge(call("size", domain).source)
        key, value = function.new(), function.new()
        function.loop(f"{key.source}, {value.source}", call("pairs", domain))
        function.env[lit.key.name] = key
        function.env[lit.value.name] = value
        is_found = self.exists(lambda: self.body(lit.body))
        if is_found.value is True:
            function.line("pass")
        else:
            function.condition(negation(is_found))
            function.set(holds.source, FALSE)
            function.line("break")
        function.restore(saved)
        function.condition(holds)

    def not_(self, lit: ir.Not) -> None:
        """A body without a solution."""
        self._function.condition(negation(self.exists(lambda: self.body(lit.body))))

    def logic_(self, lit: ir.Logic) -> None:
        """Either body, or both."""
        function = self._function
        left = self.exists(lambda: self.body(lit.left))
        if lit.operator == "and":
            function.condition(left)
            function.condition(self.exists(lambda: self.body(lit.right)))
            return
        if left.is_known:
            if left.value is False:
                function.condition(self.exists(lambda: self.body(lit.right)))
            return
        result = function.new()

        def right() -> None:
            function.condition(negation(left))
            self.body(lit.right)

        function.flush()
        function.set(result.source, left)
        other = self.exists(right)
        function.condition(any_of([result, other]))

    def print_(self, lit: ir.Print) -> None:
        """Writes a ``print``, which runs only if the caller receives printed lines."""
        function = self._function
        function.effects += 1
        function.flush()
        function.line(f"if {function.state}[2].print_ is not None:")
        saved = function.save()
        function.indent += 1
        place = function.unit.place(lit.location)
        printed = tuple_of([self._values(arg) for arg in lit.args])
        function.line(call("print_values", function.state, printed, place).source)
        function.restore(saved)

    # --- negation ------------------------------------------------------------------------------------

    def _negated(self, lit: ir.Lit) -> None:
        """Writes a negated literal; parts that OPA hoists out of it come before, and must be defined."""
        if isinstance(lit, ir.Call) and lit.name == "equal" and lit.out is None:
            # OPA makes a unification of it before it hoists.
            lit = ir.Eq(lit.args[0], lit.args[1], lit.location)
        if isinstance(lit, ir.Eq):
            inner: ir.Lit = ir.Eq(self._below(lit.a), self._below(lit.b), lit.location)
        elif isinstance(lit, ir.Call):
            args = [self._hoisted(arg) for arg in lit.args]
            out = None if lit.out is None else self._hoisted(lit.out)
            inner = ir.Call(lit.name, args, lit.location, out=out)
        else:
            assert isinstance(lit, ir.Test), "nothing else is negated but as a body"
            inner = ir.Test(self._below(lit.term), lit.location)
        self._function.condition(negation(self.exists(lambda: self._literal(inner))))

    def _below(self, term: ir.Term) -> ir.Term:
        """Returns the operand of a negation.

        A reference stays inside the negation; terms nested in it are evaluated before.
        """
        if isinstance(term, ir.Ref):
            return ir.Ref(term.head, [self._hoisted(part) for part in term.path])
        if isinstance(term, ir.Comprehension):
            return term
        return self._hoisted(term)

    def _hoisted(self, term: ir.Term) -> ir.Term:
        """The term with its references and comprehensions evaluated."""
        if isinstance(term, (ir.Ref, ir.Comprehension, ir.Template)) or (
            isinstance(term, ir.Var) and term.name in ("input", "data")
        ):
            value = self._function.terms.atom(term)
            return ir.Const(value.value) if value.is_known else ir.Given(value)
        if isinstance(term, ir.Array):
            return ir.Array([self._hoisted(item) for item in term.items])
        if isinstance(term, ir.Set):
            return ir.Set([self._hoisted(item) for item in term.items])
        if isinstance(term, ir.Object):
            return ir.Object([(self._hoisted(k), self._hoisted(v)) for k, v in term.items])
        return term

    # --- with ------------------------------------------------------------------------------------------

    def _with(self, lit: ir.Lit) -> None:
        function, unit = self._function, self._function.unit
        inputs: list[Expression] = []
        datas: list[Expression] = []
        mocks: list[Expression] = []
        for modifier in lit.withs:
            if modifier.kind == "function":
                key = unit.constant(function_key(modifier.target))
                if modifier.function is not None:
                    value = call("Mock", self._function_object(modifier.function))
                else:
                    value = function.terms.operand(modifier.value)
                mocks.append(tuple_of([key, value]))
                continue
            value = function.terms.operand(modifier.value)
            target = unit.constant(tuple(modifier.target[1:]))
            (inputs if modifier.kind == "input" else datas).append(tuple_of([target, value]))
        unit.modifies = True
        groups = [tuple_of(group) for group in (inputs, datas, mocks)]
        new = function.assign(call("replace", function.state, *groups))
        outer, function.state = function.state, new.source
        withs, lit.withs = lit.withs, []
        self._literal(lit)
        lit.withs = withs
        function.state = outer

    def _function_object(self, name: ir.Function) -> Expression | str:
        """A function of a state and operands, for use in another's place."""
        unit = self._function.unit
        if isinstance(name, str):
            return call("as_mock", unit.slow(name), self._function.place())
        node = unit.tree.function(name)
        assert node is not None
        return unit.want(Function(node))


_KINDS: Final = {"array": Kind.LIST, "set": Kind.SET, "object": Kind.ANY}
"""The kinds of comprehensions: an object's names may be of any."""

_EMPTY: Final[dict[str, Callable[[], Any]]] = {"array": list, "set": RegoSet, "object": dict}

_WRITE: Final[dict[type, Any]] = {
    ir.Eq: Bodies.eq_,
    ir.Test: Bodies.test_,
    ir.Call: Bodies.call_,
    ir.Every: Bodies.every_,
    ir.Not: Bodies.not_,
    ir.Logic: Bodies.logic_,
    ir.Print: Bodies.print_,
}


def new_function(unit: Unit, uses: Uses) -> FunctionBuilder:
    """A function to be written, with all that writes into it."""
    function = FunctionBuilder(unit, uses)
    function.terms = Terms(function)
    function.references = References(function)
    function.patterns = Unification(function)
    function.calls = Calls(function)
    function.nest = Bodies(function)
    unit.releases.append(function.release)
    return function
