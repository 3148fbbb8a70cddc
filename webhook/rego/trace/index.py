"""Selects definitions of a rule that may hold, before any is evaluated, as OPA's index does.

A definition is skipped in two cases: a literal compares a base document or an argument with a
different constant, or a literal needs a document that is missing. (OPA v1/ast/index.go.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from webhook.rego.builtins.globs import compiled
from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value, equal
from webhook.values import dataclass

_KEPT: Final = frozenset({"internal.print", "internal.test_case"})
"""The functions that are called for their effect: a rule with one is always evaluated."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The definitions that may hold: first branches, the ``else`` of each, and the default."""

    rules: list[ir.Rule]
    others: dict[int, list[ir.Rule]] = field(default_factory=dict)
    default: ir.Rule | None = None
    early_exit: bool = False


def matched(
    rules: Sequence[ir.Rule],
    resolve: Callable[[Sequence[Value]], Value] | None,
    operands: Sequence[Value],
    *,
    early_exit: bool,
) -> RuleMatch:
    """Returns the definitions found by a lookup; without ``resolve`` all definitions."""
    firsts: list[ir.Rule] = []
    others: dict[int, list[ir.Rule]] = {}
    default = None
    for rule in rules:
        if rule.default:
            default = rule
            continue
        may_hold = [
            branch
            for branch in rule.branches()
            if resolve is None or not _Lookup(branch, resolve, operands).excluded()
        ]
        if may_hold:
            firsts.append(may_hold[0])
            others[id(may_hold[0])] = may_hold[1:]
    candidates = [*firsts, *(branch for branches in others.values() for branch in branches)]
    return RuleMatch(firsts, others, default, early_exit and _agree(candidates))


def _agree(rules: Sequence[ir.Rule]) -> bool:
    """Whether the first that holds decides: all are complete and have the same constant."""
    values: list[Value] = []
    for rule in rules:
        if rule.kind not in {"complete", "function"} or not isinstance(rule.value, ir.Const):
            return False
        values.append(rule.value.value)
    return all(equal(values[0], value) for value in values)


class _Lookup:
    """Tests the literals of one definition."""

    def __init__(
        self,
        rule: ir.Rule,
        resolve: Callable[[Sequence[Value]], Value],
        operands: Sequence[Value],
    ) -> None:
        self._rule = rule
        self._resolve = resolve
        self._known: dict[str, Value] = {}
        """Variables whose value is a base document, an argument or a constant."""
        for arg, operand in zip(rule.args or (), operands, strict=False):
            if isinstance(arg, ir.Var):
                self._known[arg.name] = operand

    def excluded(self) -> bool:
        """Whether the definition cannot hold."""
        body = self._rule.body
        if any(isinstance(lit, ir.Call) and lit.name in _KEPT for lit in body):
            return False
        return any(not lit.withs and not lit.negated and self._fails(lit) for lit in body)

    def _fails(self, lit: ir.Lit) -> bool:
        match lit:
            case ir.Eq(a=a, b=b):
                return self._differs(a, b)
            case ir.Test(term=ir.Ref() as term):
                return self._base(term) is UNDEFINED
            case ir.Call(name=str() as name, args=args, out=None):
                values = [self._value(arg) for arg in args]
                if any(value is None for value in values):
                    return False
                return any(not holds for holds in _holds(name, [v[0] for v in values if v]))
        return False

    def _differs(self, a: ir.Term, b: ir.Term) -> bool:
        for first, other in ((a, b), (b, a)):
            if isinstance(first, ir.Var) and first.name not in self._known:
                value = self._value(other)
                if value is None:
                    continue
                self._known[first.name] = value[0]
                return value[0] is UNDEFINED
        ours, theirs = self._value(a), self._value(b)
        if ours is None or theirs is None:
            return False
        if isinstance(theirs[0], dict | RegoSet | RegoObject):
            return False
        return UNDEFINED in (ours[0], theirs[0]) or not equal(ours[0], theirs[0])

    def _value(self, term: ir.Term) -> tuple[Value] | None:
        """Returns the index's value of a term: a tuple of it, or None."""
        if isinstance(term, ir.Const):
            return (term.value,)
        if isinstance(term, ir.Var):
            return (self._known[term.name],) if term.name in self._known else None
        if isinstance(term, ir.Ref):
            value = self._base(term)
            return None if value is None else (value,)
        return None

    def _base(self, term: ir.Ref) -> Value:
        """A base document; None for another reference."""
        steps = [part.value for part in term.path if isinstance(part, ir.Const)]
        if not isinstance(term.head, ir.Var) or len(steps) < len(term.path):
            return None
        name = term.head.name
        if name == "input":
            return self._resolve(("input", *steps))
        return None


def _holds(name: str, operands: list[Value]) -> Iterator[bool]:
    if UNDEFINED in [operand for operand in operands if operand is UNDEFINED]:
        yield False
        return
    match name, operands:
        case "internal.member_2", [member, list() | RegoSet() as collection]:
            yield any(equal(member, item) for item in collection)
        case "startswith", [str() as text, str() as begin]:
            yield text.startswith(begin)
        case "endswith", [str() as text, str() as end]:
            yield text.endswith(end)
        case "glob.match", [str() as pattern, list() as delimiters, str() as text]:
            try:
                yield compiled(pattern, "".join(delimiters) or ".").found_in(text)
            except BuiltinError:
                yield True
