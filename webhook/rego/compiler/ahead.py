"""What only constants and parameters decide, computed while code is written for a constraint.

A rule, a call or a comprehension that reads neither the rest of the input nor base
documents, and asks no built-in that may answer otherwise another time, has one value in
all evaluations. It is found by compiling just that and evaluating it once. Where that
ends in an error it stays in the code, for those who evaluate it to see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.ast import NOWHERE
from webhook.rego.compiler import ir
from webhook.rego.compiler.constants import UnreachableError, cost, is_computable
from webhook.rego.compiler.documents import Documents
from webhook.rego.compiler.generate import generate
from webhook.rego.compiler.literals import BodyWriter
from webhook.rego.compiler.nesting import share
from webhook.rego.compiler.uses import Uses
from webhook.rego.compiler.variables import everything
from webhook.rego.compiler.writer import PAYS
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.limits import EvaluationContext
from webhook.rego.runtime import MISSING, new_state
from webhook.rego.values import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.rego.compiler.ir import Body, Lit, Term
    from webhook.rego.compiler.tree import Node
    from webhook.rego.compiler.unit import Unit
    from webhook.rego.values import Value

MAX_QUESTIONS: Final = 40
"""Values computed for one constraint: each is compiled, which takes about a millisecond."""

MAX_STEPS: Final = 20_000
"""The budget of each: about a millisecond."""

MAX_COST: Final = 10_000
"""Scalars and characters of such a value: some 100 KB."""


class Ahead:
    """Answers for one constraint, whose parameters stand in the rules."""

    def __init__(self, unit: Unit, make_unit: Callable[[], Unit]) -> None:
        """``unit`` is the one being written; ``make_unit`` gives others like it."""
        self._unit = unit
        self._make_unit = make_unit
        self._pure: dict[int, bool] = {}
        self._found: dict[object, Value] = {}
        self._left = MAX_QUESTIONS

    def document(self, node: Node) -> Value:
        """The value of the rules at a node, UNDEFINED included; MISSING where it is not known."""
        path: list[Term] = [ir.Const(name) for name in node.path]
        return self._ask(node.path, ir.Ref(ir.Var("data"), path), {})

    def call(self, name: tuple[str, ...], args: Mapping[str, Value]) -> Value:
        """What a function gives for these operands (by their source), likewise."""
        given: list[Term] = [ir.Const(value) for value in args.values()]
        out = ir.Var(" out")
        call = ir.Call(name, given, NOWHERE, out=out)
        found = self._ask((name, *args), ir.Comprehension("array", None, out, [call]), {})
        if type(found) is not list:
            return found
        return found[0] if found else UNDEFINED

    def comprehension(self, term: ir.Comprehension, known: Callable[[str], Value]) -> Value:
        """What a comprehension makes where all it uses is known, likewise."""
        used: set[str] = set()
        everything(term, used)
        names = {name: known(name) for name in sorted(used)}
        return self._ask(id(term), term, names)

    def _ask(self, at: object, term: Term, names: Mapping[str, Value]) -> Value:
        found = self._found.get(at)
        if found is None:
            found = MISSING
            if self._left and self._is_pure(term):
                self._left -= 1
                found = self._evaluate(term, names)
            self._found[at] = found
        return found

    def _evaluate(self, term: Term, names: Mapping[str, Value]) -> Value:
        unit = self._make_unit()
        uses = Uses()
        uses.body([term], [])
        writer = BodyWriter(unit, uses)
        for name, value in names.items():
            if value is not MISSING:
                writer.env[name] = writer.constant(value)
        context = EvaluationContext(steps=MAX_STEPS)
        try:
            writer.attempt(lambda: writer.line(f"return {writer.operand(term)[0]}"))
            writer.lines.append((1, "return U"))
            lines = [(0, "def q(S):"), (1, f"P = {PAYS} = True")]
            lines += [*((1, text) for text in writer.prologue), *writer.lines]
            unit.add(share(lines) if writer.split else lines)
            Documents(unit).run()
            function = generate(unit).function(unit.builtins)
            found = function(new_state(UNDEFINED, {}, context, unit.slots))
        except (EvaluationError, RegoErrors, RecursionError, UnreachableError):
            return MISSING
        if context.is_particular or (found is not UNDEFINED and cost(found) > MAX_COST):
            return MISSING
        return found

    # --- whether there is one value ---------------------------------------------------------

    def _is_pure(self, term: Term) -> bool:
        if isinstance(term, ir.Const):
            return True
        if isinstance(term, ir.Var):
            return term.name not in ("input", "data")
        if isinstance(term, ir.Ref):
            if isinstance(term.head, ir.Var) and term.head.name == "data":
                return self._is_pure_document(term.path) and self._are_pure(term.path)
            return self._is_pure(term.head) and self._are_pure(term.path)
        if isinstance(term, (ir.Array, ir.Set)):
            return self._are_pure(term.items)
        if isinstance(term, ir.Object):
            return all(self._are_pure(item) for item in term.items)
        if isinstance(term, ir.Comprehension):
            parts = (term.value,) if term.key is None else (term.key, term.value)
            return self._are_pure(parts) and self._is_pure_body(term.body)
        return False

    def _are_pure(self, terms: Iterable[Term]) -> bool:
        return all(map(self._is_pure, terms))

    def _is_pure_document(self, path: list[Term]) -> bool:
        """Whether the path leads to rules, and these are pure."""
        node = self._unit.tree.root
        for part in path:
            below = node.child(part.value) if isinstance(part, ir.Const) else None
            if below is None:
                return False
            node = below
            if node.rules:
                return node.rules[0].args is None and self._is_pure_node(node)
        return False

    def _is_pure_node(self, node: Node) -> bool:
        known = self._pure.get(id(node))
        if known is None:
            self._pure[id(node)] = known = self._has_pure_rules(node)
        return known

    def _has_pure_rules(self, node: Node) -> bool:
        if node.dynamic or self._unit.replaceable(node.path):
            return False
        for rule in node.rules:
            for branch in rule.branches():
                terms = [*(branch.args or ()), branch.key, branch.value]
                if not self._are_pure(term for term in terms if term is not None):
                    return False
                if not self._is_pure_body(branch.body):
                    return False
        return True

    def _is_pure_body(self, body: Body) -> bool:
        return all(map(self._is_pure_literal, body))

    def _is_pure_literal(self, lit: Lit) -> bool:
        if lit.withs:
            return False
        if isinstance(lit, ir.Eq):
            return self._is_pure(lit.a) and self._is_pure(lit.b)
        if isinstance(lit, ir.Test):
            return self._is_pure(lit.term)
        if isinstance(lit, ir.Call):
            out = () if lit.out is None else (lit.out,)
            return self._is_pure_function(lit.name) and self._are_pure((*lit.args, *out))
        if isinstance(lit, ir.Not):
            return self._is_pure_body(lit.body)
        if isinstance(lit, ir.Every):
            return self._is_pure(lit.domain) and self._is_pure_body(lit.body)
        if isinstance(lit, ir.Logic):
            return self._is_pure_body(lit.left) and self._is_pure_body(lit.right)
        return False

    def _is_pure_function(self, name: ir.Function) -> bool:
        if name in self._unit.mocked:
            return False
        if isinstance(name, str):
            return name == "walk" or is_computable(self._unit.builtins[name])
        node = self._unit.tree.function(name)
        return node is not None and self._is_pure_node(node)
