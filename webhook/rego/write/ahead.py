"""Evaluates, while code is written for a constraint, the parts with one value in all evaluations.

Such a part is a rule, call or comprehension that reads neither base documents nor any input but the
parameters, and calls no built-in whose result may vary. It is compiled alone and evaluated once. If
that ends in an error, the part stays in the code, and its evaluation raises the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import add_all_variables
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.location import NOWHERE
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.runtime import MISSING, new_state
from webhook.rego.run.values import UNDEFINED, Value, is_small
from webhook.rego.write.bodies import new_function
from webhook.rego.write.constants import NeverHolds
from webhook.rego.write.documents import NONE, Documents
from webhook.rego.write.generate import ENTRY, generate
from webhook.rego.write.purity import Purity
from webhook.rego.write.statement import PAYS, WrittenFunction
from webhook.rego.write.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.rego.check.ir import Term
    from webhook.rego.check.tree import Node
    from webhook.rego.write.expression import Expression
    from webhook.rego.write.unit import Unit

MAX_QUESTIONS: Final = 40
"""The most parts evaluated for one constraint: each is compiled, which takes about a
millisecond."""

MAX_STEPS: Final = 20_000
"""The budget of each evaluation in steps: about a millisecond."""

MAX_COST: Final = 10_000
"""Scalars and characters of such a value: some 100 KB."""


class Ahead:
    """Evaluates parts of the rules for one constraint, with its parameters as constants."""

    def __init__(self, unit: Unit, make_unit: Callable[[], Unit]) -> None:
        """``unit`` is the unit being written; ``make_unit`` returns further units like it."""
        self._unit = unit
        self._make_unit = make_unit
        self._purity = Purity(unit.facts)
        self._found: dict[object, Value] = {}
        self._left = MAX_QUESTIONS

    def document(self, node: Node) -> Value:
        """The value of the rules at a node, UNDEFINED included; MISSING where it is not known."""
        path: list[Term] = [ir.Const(name) for name in node.path]
        return self._ask(node.path, ir.Ref(ir.Var("data"), path), {})

    def call(self, name: tuple[str, ...], args: Sequence[Expression]) -> Value:
        """Return the result of a function for these known operands; MISSING where it is not known."""
        given: list[Term] = [ir.Const(arg.value) for arg in args]
        out = ir.Var(" out")
        call = ir.Call(name, given, NOWHERE, out=out)
        values = self._ask(
            (name, *(arg.source for arg in args)), ir.Comprehension("array", None, out, [call]), {}
        )
        if type(values) is not list:
            return values
        return values[0] if values else UNDEFINED

    def comprehension(
        self, term: ir.Comprehension, known: Callable[[str], Value], bound: Collection[str]
    ) -> Value:
        """Returns a comprehension's collection if its ``bound`` variables are known, else MISSING."""
        used: set[str] = set()
        add_all_variables(term, used)
        names = {name: known(name) for name in sorted(used.intersection(bound))}
        if any(value is MISSING for value in names.values()):
            return MISSING  # it would be evaluated as if nothing had bound them
        # It may be written again where its variables have other values.
        sources = [self._unit.constant(value).source for value in names.values()]
        return self._ask((id(term), *sources), term, names)

    def _ask(self, at: object, term: Term, names: Mapping[str, Value]) -> Value:
        value = self._found.get(at)
        if value is None:
            value = MISSING
            if self._left and self._purity.term(term):
                self._left -= 1
                value = self._evaluate(term, names)
            self._found[at] = value
        return value

    def _evaluate(self, term: Term, names: Mapping[str, Value]) -> Value:
        unit = self._make_unit()
        uses = Uses()
        uses.body([term], [])
        writer = new_function(unit, uses)
        for name, value in names.items():
            writer.env[name] = writer.terms.constant(value)
        context = EvaluationContext(steps=MAX_STEPS)
        try:
            writer.attempt(lambda: writer.result(writer.terms.operand(term)))
            writer.end(NONE)
            lines = [*writer.prologue, *writer.lines]
            first = (f"P = {PAYS} = True",)
            unit.functions.append(WrittenFunction(ENTRY, ("S",), lines, first, settled=True))
            Documents(unit).run()
            function = generate(unit).load(unit.builtins).function
            answer = function(new_state(UNDEFINED, {}, context, unit.slots))
        except (EvaluationError, RegoErrors, RecursionError, NeverHolds):
            return MISSING
        if context.is_particular or (answer is not UNDEFINED and not is_small(answer, MAX_COST)):
            return MISSING
        return answer
