"""Stage 9: terms as Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.variables import add_variables
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.write.constants import NeverHolds, static
from webhook.rego.write.expression import Expression, Kind, call, dict_of, item, list_of, tuple_of
from webhook.rego.write.facts import Origin, ValueAt

if TYPE_CHECKING:
    from typing import Literal

    from webhook.rego.write.function import FunctionBuilder


class Terms:
    """Writes terms into a function."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionBuilder) -> None:
        self._function = function

    # --- known values -----------------------------------------------------------------------------

    def bound(self, term: ir.Term) -> bool:
        """Whether every variable of the term has a value."""
        env = self._function.env
        kind = type(term)
        if kind is ir.Const or kind is ir.Given or kind is ir.Comprehension:
            return True
        if kind is ir.Var:
            return term.name in env or term.name in ("input", "data")  # type: ignore[union-attr]
        names: set[str] = set()
        add_variables(term, names)
        return all(name in env or name in ("input", "data") for name in names)

    def evaluable(self, term: ir.Term) -> bool:
        """Whether the term has values now: bound, or a reference that can be iterated."""
        if isinstance(term, ir.Ref):
            return isinstance(term.head, ir.Given) or self.bound(term.head)
        if isinstance(term, (ir.Array, ir.Set)):
            return all(map(self.evaluable, term.items))
        if isinstance(term, ir.Object):
            return all(self.evaluable(k) and self.evaluable(v) for k, v in term.items)
        return self.bound(term)

    def single_use(self, term: ir.Term) -> bool:
        """Whether it is a variable that nothing else reads."""
        return isinstance(term, ir.Var) and (
            ir.is_wildcard(term.name) or self._function.uses.variables.get(term.name, 0) <= 1
        )

    def static(self, term: ir.Term) -> Value:
        """The term's value where that is known already, UNDEFINED included, else MISSING."""
        return static(term, self.known)

    def known(self, name: str) -> Value:
        """A variable's value where that is known already, else MISSING."""
        variable = self._function.env.get(name)
        return MISSING if variable is None else variable.value

    # --- values -------------------------------------------------------------------------------

    def operand(self, term: ir.Term) -> Expression:
        """Returns the term's value; the conditions for a defined value are written before."""
        if isinstance(term, ir.Const):
            return self.constant(term.value)
        if isinstance(term, ir.Given):
            held: Expression = term.held
            return held
        if isinstance(term, ir.Var):
            return self._variable(term)
        value = self.static(term)
        if value is not MISSING:
            return self.constant(value)
        if isinstance(term, ir.Ref):
            return self._function.references.reference(term)
        if isinstance(term, ir.Array):
            return list_of([self.operand(item) for item in term.items])
        if isinstance(term, ir.Set):
            items = tuple_of([self.operand(item) for item in term.items])
            return call("RegoSet", items, kind=Kind.SET)
        if isinstance(term, ir.Object):
            return self._object(term)
        if isinstance(term, ir.Comprehension):
            return self._function.nest.comprehension(term)
        return self._function.nest.template(term)

    def constant(self, value: Value) -> Expression:
        """A known value; there is no solution where it is undefined."""
        if value is UNDEFINED:
            raise NeverHolds
        return self._function.unit.constant(value)

    def atom(self, term: ir.Term) -> Expression:
        """As :meth:`operand`, a name or scalar constant that may be repeated at no cost."""
        return self._function.simple(self.operand(term))

    def arguments(self, args: list[ir.Term]) -> list[Expression]:
        """Returns the operands of a call; one may use variables bound by iterating another."""
        operands: dict[int, Expression] = {}
        for i, arg in enumerate(args):  # most come in an order in which they can be written
            if not self.evaluable(arg):
                break
            operands[i] = self.operand(arg)
        else:
            return list(operands.values())
        while len(operands) < len(args):
            count_before = len(operands)
            for i, arg in enumerate(args):
                if i not in operands and self.evaluable(arg):
                    operands[i] = self.operand(arg)
            if len(operands) == count_before:
                function = self._function
                raise function.unit.refuse("operand is not bound", function.location)
        return [operands[i] for i in range(len(args))]

    def _variable(self, term: ir.Var) -> Expression:
        function = self._function
        variable = function.env.get(term.name)
        if variable is not None:
            return function.narrowed(variable)
        if term.name == "input":
            return self.root("input")
        if term.name == "data":
            return function.references.data(ir.Ref(term, []))
        raise function.unit.unsafe(term.name, function.location)

    def root(self, root: Literal["input", "data"]) -> Expression:
        """Returns the input, if it is defined, or the base documents."""
        function = self._function
        at = ValueAt(Origin(function.state, root))
        value = function.known.get(at)
        if value is None:
            if root == "input":
                value = function.defined(item(function.state, 0))
            else:
                value = function.assign(item(function.state, 1))
            function.known[at] = value
        return value

    def _object(self, term: ir.Object) -> Expression:
        function = self._function
        items = [(self.operand(key), self.operand(value)) for key, value in term.items]
        names = [key.value for key, _ in items]
        if all(type(name) is str for name in names) and len(set(names)) == len(names):
            return dict_of(items)
        # Of names that turn out to be equal the last one counts; OPA has those first that are written
        # out.
        constant, computed = [], []
        for pair, (key, _) in zip(items, term.items, strict=True):
            if isinstance(key, ir.Const):
                constant.append(tuple_of(pair))
            else:
                computed.append(tuple_of(pair))
        return function.assign(call("build", tuple_of([*constant, *computed])))
