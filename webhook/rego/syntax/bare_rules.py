"""Stage 1: rules without a body, ``p = 1``, ``p[x]`` and ``f(x)``: read as bodies, and taken for rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import Call, Expr, Head, Ref, Rule, SomeDecl, SomeIn, String, Var
from webhook.rego.syntax.builtin_names import BUILTIN_NAMES
from webhook.rego.syntax.parser_rules import WrittenRule
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM

if TYPE_CHECKING:
    from webhook.rego.location import Location
    from webhook.rego.syntax.ast import Body, Term

_OPERATORS: Final = frozenset(t.NAMES[t.ADD : t.DOT])


class NoRule(Exception):
    """The literals at the top of a file are no rule; the argument says why."""


def rule_of(body: Body) -> WrittenRule:
    """Returns the rule of a body at the top of a file; raises :class:`NoRule`."""
    if len(body) != 1:
        raise NoRule("multiple expressions cannot be used for rule head")
    literal = body[0]
    if not isinstance(literal, SomeDecl) and literal.with_:
        raise NoRule("expressions using with keyword cannot be used for rule head")
    if isinstance(literal, SomeDecl | SomeIn):
        raise NoRule("'some' declarations cannot be used for rule head")
    if not isinstance(literal, Expr):
        raise NoRule("expression cannot be used for rule head")
    if literal.negated:
        raise NoRule("negated expressions cannot be used for rule head")
    return _rule_of_term(literal.term, literal.location)


def _rule_of_term(term: Term, place: Location) -> WrittenRule:
    if isinstance(term, Call):
        operator = term.operator
        name = operator.name if isinstance(operator, Var) else _dotted(operator)
        if name in ("eq", "assign"):
            if len(term.args) != 2:
                raise NoRule("assignment requires two operands")
            return _constant(term.args[0], term.args[1], name == "assign", place)
        if name in _OPERATORS or name in BUILTIN_NAMES:
            raise NoRule("rule name conflicts with built-in function")
        if not term.args:
            raise NoRule("rule argument list must take at least one argument")
        head = Head(_head_ref(operator), term.args, location=place)
        return WrittenRule(Rule(head, location=place), body=False)
    if isinstance(term, Ref):
        ref = _head_ref(term)
        if len(ref.path) > 1:
            return WrittenRule(
                Rule(Head(ref, location=place), location=place), body=False, value=False
            )
        head = Head(Ref(ref.head, (), location=ref.location), key=ref.path[0], location=place)
        return WrittenRule(Rule(head, location=place), body=False)
    if isinstance(term, Var) and term.name in ("input", "data"):
        raise NoRule("refs cannot be used for rule head")
    raise NoRule(f"{KINDS_OF_TERM[type(term)]} cannot be used for rule name")


def _constant(left: Term, value: Term, assign: bool, place: Location) -> WrittenRule:
    """``p = value``, ``p[k] = value`` and ``f(x) = value``."""
    args: tuple[Term, ...] | None = None
    if isinstance(left, Call):
        args, left = left.args, left.operator
    if not isinstance(left, Var | Ref):
        raise NoRule(f"{KINDS_OF_TERM[type(left)]} cannot be used for rule name")
    head = Head(_head_ref(left), args, value=value, assign=assign, location=place)
    return WrittenRule(Rule(head, location=place), body=False)


def _head_ref(term: Var | Ref) -> Ref:
    if isinstance(term, Var):
        return Ref(term, (), location=term.location)
    if not isinstance(term.head, Var):
        raise NoRule(f"invalid rule head: {term.location.text}")
    return term


def _dotted(ref: Ref) -> str:
    """Returns the names of a reference, joined by dots as for built-ins; else its text."""
    names = [ref.head.name] if isinstance(ref.head, Var) else []
    names += [part.value for part in ref.path if isinstance(part, String)]
    return ".".join(names) if len(names) == len(ref.path) + 1 else ref.location.text
