"""Stage 5b: literals and bodies as Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import everything
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import RegoSet
from webhook.rego.write.call_writer import CallWriter, function_key
from webhook.rego.write.writer import DICT, LIST, SET, STRING, Operand

if TYPE_CHECKING:
    from collections.abc import Callable


class BodyWriter(CallWriter):
    """Writes bodies: literal after literal, each inside the success of the one before."""

    __slots__ = ()

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

    def nested(self, write: Callable[[], object]) -> tuple[list[tuple[int, str]], list[str]]:
        """Write aside, from the present place; returns lines and conditions left pending."""
        saved = self.snapshot()
        lines, pending = self.lines, self.pending
        self.lines, self.pending, self.loops = [], [], []
        self.flat = False
        self.collecting = ""
        try:
            write()
            self.close()
        finally:
            found = self.lines, self.pending
            self.lines, self.pending = lines, pending
            self.restore(saved)
        return found

    def exists(self, write: Callable[[], None]) -> str:
        """Source that tells whether a body, written by ``write``, has a solution."""
        flag = self.new()
        start, reads = self.indent, dict(self.reads)
        straight = possible = False

        def solve() -> None:
            nonlocal straight, possible
            self.repeats = True
            possible = self.attempt(write)
            if not possible:
                return
            if self.lines and self.indent == start and not self.loops:
                straight = True
            elif self.lines:
                self.line(f"{flag} = True")
                self.leave(flag)

        lines, pending = self.nested(solve)
        holds = f"({' and '.join(pending)})" if pending else str(possible)
        if not lines:
            return holds
        if self.pending:  # the lines stand one level deeper, below the conditions
            self.flush()
            lines = [(indent + 1, text) for indent, text in lines]
            self.reads = reads
        if straight or not possible:
            self.lines.extend(lines)
            return holds
        self.line(f"{flag} = False")
        self.lines.extend(lines)
        return flag

    def comprehension(self, term: ir.Comprehension) -> Operand:
        """The collection of a comprehension's solutions."""
        if self.unit.ahead is not None:
            known = self.unit.ahead.comprehension(term, self._known, self.env)
            if known is not MISSING:
                return self.constant(known)
        elif not self.unit.lenient and self._is_of_constraint(term):
            function = self.unit.want("g", self.unit.tree.root, term)
            return self.assign(f"{function}({self.state})"), _KINDS[term.kind]
        return self.collection(term)

    def _is_of_constraint(self, term: ir.Comprehension) -> bool:
        """Whether a comprehension uses nothing around it, and only parameters decide it."""
        if not self.unit.purity.term(term):
            return False
        used: set[str] = set()
        everything(term, used)
        return used.isdisjoint(self.env)

    def collection(self, term: ir.Comprehension) -> Operand:
        """The same, written where it stands."""
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
        lines, _ = self.nested(partial(self.attempt, write))
        self.location = where
        if not lines:
            return self.constant({"array": list, "set": RegoSet, "object": dict}[term.kind]())
        self.line(f"{result} = {'[]' if term.kind == 'array' else '{}'}")
        self.lines.extend(lines)
        if term.kind == "array":
            return result, LIST
        if term.kind == "set":
            found = self.assign(f"set_of({result})")
            self.known["size", found] = result, DICT
            return found, SET
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
            self.line(f"if type({name}) is str: {result}[{name}] = {name}")
            self.line("else:")
            self.indent += 1
            self.line(f"{result}.setdefault(member_key({self.state}, {name}), {name})")
            self.work()
            self.indent -= 1
        else:
            self.line(f"{result}.setdefault(member_key({self.state}, {name}), {name})")
            self.work()

    def _add_entry(self, result: str, name: Operand, value: Operand) -> None:
        self.effects += 1
        self.line(f"put({result}, {name[0]}, {value[0]}, {self._place()})")
        self.work()

    def template(self, term: ir.Template) -> Operand:
        """A template string."""
        self.effects += 1
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
        """Unification."""
        self.unify(lit.a, lit.b)

    def test_(self, lit: ir.Test) -> None:
        """A term that must be true."""
        self.true(self.operand(lit.term))

    def every_(self, lit: ir.Every) -> None:
        """A body for every item."""
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
        """A body without a solution."""
        self.condition(_negation(self.exists(lambda: self.body(lit.body))))

    def logic_(self, lit: ir.Logic) -> None:
        """Either body, or both."""
        left = self.exists(lambda: self.body(lit.left))
        if lit.operator == "and":
            self.condition(left)
            self.condition(self.exists(lambda: self.body(lit.right)))
            return
        if left in ("True", "False"):
            if left == "False":
                self.condition(self.exists(lambda: self.body(lit.right)))
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
        """A line for whoever listens."""
        self.effects += 1
        self.flush()
        self.line(f"if {self.state}[2].print_ is not None:")
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
        if isinstance(term, (ir.Ref, ir.Comprehension, ir.Template)) or (
            isinstance(term, ir.Var) and term.name in ("input", "data")
        ):
            source, kind = self.atom(term)
            known = self.value_of((source, kind))
            return ir.Given(source, kind) if known is MISSING else ir.Const(known)
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
                key = function_key(modifier.target)
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
        self.unit.modifies = True
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


def _negation(source: str) -> str:
    return {"True": "False", "False": "True"}.get(source) or f"not {source}"


_KINDS: Final = {"array": LIST, "set": SET, "object": ""}

_WRITE: Final[dict[type, Any]] = {
    ir.Eq: BodyWriter.eq_,
    ir.Test: BodyWriter.test_,
    ir.Call: BodyWriter.call_,
    ir.Every: BodyWriter.every_,
    ir.Not: BodyWriter.not_,
    ir.Logic: BodyWriter.logic_,
    ir.Print: BodyWriter.print_,
}
