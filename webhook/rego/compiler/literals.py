"""Stage 5b: literals and bodies as Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.compiler import ir
from webhook.rego.compiler.calls import INLINE
from webhook.rego.compiler.writer import BOOL, LIST, SET, STRING, Operand, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INLINED: Final = 40
"""Calls written inline in one program: beyond, code would grow for little."""

_COMPARISONS: Final = {
    "lt": ("<", "less({0}, {1})"),
    "lte": ("<=", "less_equal({0}, {1})"),
    "gt": (">", "less({1}, {0})"),
    "gte": (">=", "less_equal({1}, {0})"),
}


class BodyWriter(Writer):
    """Writes bodies: literal after literal, each inside the success of the one before."""

    def body(self, body: ir.Body) -> None:
        """Open the nest of a body; what its solutions do is written next."""
        for lit in body:
            self.literal(lit)

    def literal(self, lit: ir.Lit) -> None:
        """One literal."""
        self.location = lit.location
        if lit.withs:
            self._with(lit)
        elif lit.negated:
            self._negated(lit)
        else:
            _WRITE[type(lit)](self, lit)

    # --- nested bodies ---------------------------------------------------------------------------

    def nested(self, write: Callable[[], None]) -> tuple[list[tuple[int, str]], list[str]]:
        """Write aside, from the present place; returns lines and conditions left pending."""
        saved = self.snapshot()
        lines, pending = self.lines, self.pending
        self.lines, self.pending, self.loops = [], [], []
        self.flat = False
        self.collecting = ""
        write()
        found = self.lines, self.pending
        self.lines, self.pending = lines, pending
        self.restore(saved)
        return found

    def exists(self, write: Callable[[], None]) -> str:
        """Source that tells whether a body, written by ``write``, has a solution."""
        flag = self.new()
        start = self.indent
        straight = False

        def attempt() -> None:
            nonlocal straight
            self.repeats = True
            write()
            if self.lines and self.indent == start and not self.loops:
                straight = True
            elif self.lines:
                self.line(f"{flag} = True")
                self._leave(flag)

        lines, pending = self.nested(attempt)
        holds = f"({' and '.join(pending)})" if pending else "True"
        if not lines:
            return holds
        if self.pending:  # the lines stand one level deeper, below the conditions
            self.flush()
            lines = [(indent + 1, text) for indent, text in lines]
        if straight:
            self.lines.extend(lines)
            return holds
        self.line(f"{flag} = False")
        self.lines.extend(lines)
        return flag

    def _leave(self, flag: str) -> None:
        """Break out of all loops of the nested body once its flag is set."""
        if not self.loops:
            return
        self.line("break")
        for indent in reversed(self.loops[1:]):
            self.lines.append((indent, f"if {flag}: break"))

    def comprehension(self, term: ir.Comprehension) -> Operand:
        """The collection of a comprehension's solutions."""
        self.flush()
        result = self.new()

        def write() -> None:
            self.repeats = term.kind != "array"
            self.collecting = result
            self.body(term.body)
            self.location = term.location
            if term.kind == "array":
                self.line(f"{result}.append({self.operand(term.value)[0]})")
            elif term.kind == "set":
                self.add_member(result, self.operand(term.value))
            else:
                assert term.key is not None
                self._add_entry(result, self.operand(term.key), self.operand(term.value))

        where = self.location
        lines, _ = self.nested(write)
        self.location = where
        self.line(f"{result} = {'[]' if term.kind == 'array' else '{}'}")
        self.lines.extend(lines)
        if term.kind == "array":
            return result, LIST
        if term.kind == "set":
            return self.assign(f"set_of({result})"), SET
        return self.assign(f"finish({result})"), ""

    def add_member(self, result: str, value: Operand) -> None:
        """Add to a set being built as a ``dict`` from key to member."""
        source, kind = value
        if kind == STRING:
            source = self.name_of(source)
            self.line(f"{result}[{source}] = {source}")
            return
        name = self.name_of(source)
        if kind == "":
            self.line(f"{result}[{name} if type({name}) is str else key({name})] = {name}")
        else:
            self.line(f"{result}[key({name})] = {name}")

    def _add_entry(self, result: str, name: Operand, value: Operand) -> None:
        self.line(f"put({result}, {name[0]}, {value[0]}, {self._place()})")

    def template(self, term: ir.Template) -> Operand:
        """A template string."""
        parts = []
        for part in term.parts:
            if isinstance(part, str):
                parts.append(repr(part))
            else:
                assert isinstance(part, ir.Comprehension)
                parts.append(self._values(part))
        source = "".join(f"{part}, " for part in parts)
        return self.assign(f"template(({source}), {self._place()})"), STRING

    def _values(self, term: ir.Comprehension) -> str:
        """A local list of the distinct values of a closure."""
        found = self.comprehension(term)
        return self.assign(f"list({found[0]})")

    # --- literals ----------------------------------------------------------------------------------

    def eq_(self, lit: ir.Eq) -> None:
        self.unify(lit.a, lit.b)

    def test_(self, lit: ir.Test) -> None:
        self.true(self.operand(lit.term))

    def true(self, value: Operand) -> None:
        """What follows happens where the (defined) value is not false."""
        source, kind = value
        if kind == BOOL:
            if source != "True":
                self.condition(source)
        elif kind == "":
            self.condition(f"{self.name_of(source)} is not False")

    def every_(self, lit: ir.Every) -> None:
        domain = self.atom(lit.domain)
        self.flush()
        self.condition(f"is_collection({domain[0]})")
        self.flush()
        holds = self.new()
        self.line(f"{holds} = True")
        saved = self.snapshot()
        self.loops = []
        self.flat = False
        self.repeats = True
        self.charge(f"size({domain[0]})")
        name, value = self.new(), self.new()
        self.loop(f"{name}, {value}", f"pairs({domain[0]})")
        self.env[lit.key.name] = (name, "")
        self.env[lit.value.name] = (value, "")
        found = self.exists(lambda: self.body(lit.body))
        if found != "True":
            self.condition(f"not {found}")
            self.line(f"{holds} = False")
            self.line("break")
        else:
            self.line("pass")
        self.restore(saved)
        self.condition(holds)

    def not_(self, lit: ir.Not) -> None:
        self.condition(_negation(self.exists(lambda: self.body(lit.body))))

    def logic_(self, lit: ir.Logic) -> None:
        left = self.exists(lambda: self.body(lit.left))
        if lit.operator == "and":
            self.condition(left)
            self.condition(self.exists(lambda: self.body(lit.right)))
            return
        if left == "True":
            return
        found = self.new()

        def right() -> None:
            self.condition(f"not {left}")
            self.body(lit.right)

        self.flush()
        self.line(f"{found} = {left}")
        other = self.exists(right)
        self.condition(f"({found} or {other})")

    def print_(self, lit: ir.Print) -> None:
        self.flush()
        self.line(f"if {self.state}.context.print_ is not None:")
        saved = self.snapshot()
        self.indent += 1
        place = self.unit.place(lit.location)
        found = [self._values(arg) for arg in lit.args]
        source = "".join(f"{name}, " for name in found)
        self.line(f"print_values({self.state}, ({source}), {place})")
        self.restore(saved)

    # --- negation ------------------------------------------------------------------------------------

    def _negated(self, lit: ir.Lit) -> None:
        """What OPA hoists out of a negated literal is computed outside of it, and must be defined."""
        if isinstance(lit, ir.Call) and lit.name == "equal" and lit.out is None:
            # OPA makes a unification of it before it hoists.
            lit = ir.Eq(lit.args[0], lit.args[1], lit.location)
        if isinstance(lit, ir.Eq):
            inner: ir.Lit = ir.Eq(self._below(lit.a), self._below(lit.b), lit.location)
        elif isinstance(lit, ir.Call):
            args = [self._hoisted(arg) for arg in lit.args]
            out = None if lit.out is None else self._hoisted(lit.out)
            inner = ir.Call(lit.name, args, lit.location, out=out)
        elif isinstance(lit, ir.Test):
            inner = ir.Test(self._below(lit.term), lit.location)
        elif isinstance(lit, ir.Every):
            inner = ir.Every(lit.key, lit.value, self._hoisted(lit.domain), lit.body, lit.location)
        elif isinstance(lit, ir.Not):
            inner = ir.Not(lit.body, lit.explicit, lit.location)
        elif isinstance(lit, ir.Print):
            self.print_(lit)
            self.condition("False")
            return
        else:
            inner = ir.Logic(
                lit.operator,
                lit.left,
                lit.right,
                lit.explicit_left,
                lit.explicit_right,
                lit.location,
            )
        self.condition(_negation(self.exists(lambda: self.literal(inner))))

    def _below(self, term: ir.Term) -> ir.Term:
        """A reference stays inside of the negation; what is nested in it does not."""
        if isinstance(term, ir.Ref):
            return ir.Ref(term.head, [self._hoisted(part) for part in term.path])
        if isinstance(term, ir.Comprehension):
            return term
        return self._hoisted(term)

    def _hoisted(self, term: ir.Term) -> ir.Term:
        """The term with its references and comprehensions evaluated."""
        if isinstance(term, ir.Ref | ir.Comprehension | ir.Template) or (
            isinstance(term, ir.Var) and term.name in ("input", "data")
        ):
            source, kind = self.atom(term)
            return ir.Given(source, kind)
        if isinstance(term, ir.Array):
            return ir.Array([self._hoisted(item) for item in term.items])
        if isinstance(term, ir.Set):
            return ir.Set([self._hoisted(item) for item in term.items])
        if isinstance(term, ir.Object):
            return ir.Object([(self._hoisted(k), self._hoisted(v)) for k, v in term.items])
        return term

    # --- with ------------------------------------------------------------------------------------------

    def _with(self, lit: ir.Lit) -> None:
        inputs: list[str] = []
        datas: list[str] = []
        mocks: list[str] = []
        for modifier in lit.withs:
            if modifier.kind == "function":
                key = _function_key(modifier.target)
                if modifier.function is not None:
                    value = f"Mock({self.function_object(modifier.function)})"
                else:
                    value = self.operand(modifier.value)[0]
                mocks.append(f"({self.unit.constant(key)}, {value}), ")
                continue
            value = self.operand(modifier.value)[0]
            target = self.unit.constant(tuple(modifier.target[1:]))
            (inputs if modifier.kind == "input" else datas).append(f"({target}, {value}), ")
        groups = ", ".join(f"({''.join(group)})" for group in (inputs, datas, mocks))
        new = self.assign(f"replace({self.state}, {groups})")
        outer, self.state = self.state, new
        withs, lit.withs = lit.withs, []
        self.literal(lit)
        lit.withs = withs
        self.state = outer

    def function_object(self, name: ir.Function) -> str:
        """A function of a state and operands, for use in another's place."""
        if isinstance(name, str):
            return f"as_mock({self.unit.slow(name)}, {self._place()})"
        node = self.unit.tree.function(name)
        assert node is not None
        return self.unit.want("f", node)

    # --- calls -------------------------------------------------------------------------------------------

    def call_(self, lit: ir.Call) -> None:
        name = lit.name
        if isinstance(name, str):
            if name == "walk":
                self._relation(lit)
                return
            if name not in self.unit.mocked and self._special(lit):
                return
        result = self._result(lit)
        self.give(lit, result)

    def give(self, lit: ir.Call, result: Operand) -> None:
        """The result goes to the literal's output, or must be true."""
        if lit.out is None:
            self.true(result)
        else:
            self.match(lit.out, result)

    def _result(self, lit: ir.Call) -> Operand:
        """The defined result of a call."""
        name = lit.name
        args = [source for source, _ in self.arguments(lit.args)]
        if isinstance(name, str):
            return self._builtin(name, args, lit)
        node = self.unit.tree.function(name)
        assert node is not None
        if name not in self.unit.mocked and self.unit.inlined < MAX_INLINED:
            rule = node.inlined
            if rule is not None:
                return self._inline(rule, lit, args)
        if node.rules[0].args is None:  # `f()` reads the rule
            return self.document(node, [ir.Const(step) for step in node.path], len(node.path))
        function = self.unit.want("f", node)
        self.calls += 1
        self.unit.calls[id(node)] = self.unit.calls.get(id(node), 0) + 1
        given = "".join(f", {arg}" for arg in args)
        if name in self.unit.mocked:
            key = self.unit.constant(_function_key(name))
            return self.defined(f"call({self.state}, {key}, {function}{given})"), ""
        if node.always_true:
            if lit.out is None or self.single_use(lit.out):
                self.condition(f"{function}({self.state}{given}) is not U")
                return "True", BOOL
            return self.defined(f"{function}({self.state}{given})"), BOOL
        return self.defined(f"{function}({self.state}{given})"), ""

    def _inline(self, rule: ir.Rule, lit: ir.Call, args: list[str]) -> Operand:
        """The body of a small function in the caller's nest."""
        self.unit.inlined += 1
        names = [self.name_of(arg) for arg in args]
        outer, counted, where = self.env, self.uses.variables, self.location
        uses = self.uses.of(rule)
        self.uses.variables = uses
        self.env = {}
        assert rule.args is not None
        assert rule.value is not None
        for arg, name in zip(rule.args, names, strict=True):
            self.match(arg, (name, ""))
        self.body(rule.body)
        self.location = lit.location
        value, kind = self.operand(rule.value)
        self.env, self.uses.variables, self.location = outer, counted, where
        return value, kind

    def arguments(self, args: list[ir.Term]) -> list[Operand]:
        """The operands of a call; one may use what iterating another binds."""
        found: dict[int, Operand] = {}
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
            key = self.unit.constant(_function_key((name,)))
            function = f"as_mock({self.unit.slow(name)}, {place})"
            given = "".join(f", {arg}" for arg in args)
            return self.defined(f"call({self.state}, {key}, {function}{given})"), ""
        given = ", ".join(([f"{self.state}.context"] if builtin.context else []) + args)
        result = self.new()
        self.line(f"try: {result} = {self.unit.builtin(name)}({given})")
        self.line(f"except BuiltinError as e: {result} = {self.state}.fail({name!r}, e, {place})")
        self.condition(f"{result} is not U")
        return result, kind

    def _relation(self, lit: ir.Call) -> None:
        """A built-in with several results."""
        args = [source for source, _ in self.arguments(lit.args)]
        assert isinstance(lit.name, str)
        builtin = self.unit.builtins[lit.name]
        place = self.unit.place(lit.location)
        given = ", ".join(([f"{self.state}.context"] if builtin.context else []) + args)
        found = self.new()
        self.line(f"try: {found} = {self.unit.builtin(lit.name)}({given})")
        self.line(
            f"except BuiltinError as e: {found} = {self.state}.fail({lit.name!r}, e, {place})"
        )
        self.condition(f"{found} is not U")
        if lit.out is None:
            return
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
            self.truth(lit, _compared(a, b, *comparison))
            return True
        if name == "internal.member_3":
            given = ", ".join(source for source, _ in self.arguments(lit.args))
            self.truth(lit, f"member_at({given})")
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


def _compared(a: Operand, b: Operand, operator: str, general: str) -> str:
    """A comparison: at once where a constant tells the kind, else by Rego's order."""
    (x, kind), (y, other) = a, b
    slow = general.format(x, y)
    if kind == "i" and other == "i":
        return f"{x} {operator} {y}"
    if other == "i":
        return f"({x} {operator} {y} if type({x}) is int else {slow})"
    if kind == "i":
        return f"({x} {operator} {y} if type({y}) is int else {slow})"
    return f"({x} {operator} {y} if type({x}) is int and type({y}) is int else {slow})"


def _negation(source: str) -> str:
    return "False" if source == "True" else f"not {source}"


def _function_key(name: ir.Function | tuple[str, ...]) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


_WRITE: Final[dict[type, Any]] = {
    ir.Eq: BodyWriter.eq_,
    ir.Test: BodyWriter.test_,
    ir.Call: BodyWriter.call_,
    ir.Every: BodyWriter.every_,
    ir.Not: BodyWriter.not_,
    ir.Logic: BodyWriter.logic_,
    ir.Print: BodyWriter.print_,
}
