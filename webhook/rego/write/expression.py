"""Expressions of generated code as values: what the emitters pass to each other.

An expression carries its source, its binding strength, the kind of its Rego value, the value itself
if it is known, and the kinds of locals that a true outcome proves. Only the functions here join
sources. Each adds parentheses where an operand binds less tightly than its place requires. So an
expression of several operands may stand in any place, and a new form needs no knowledge of its
neighbours.

A proof is declared by the form that makes it, at the place where its test is written, and holds for
its true outcome alone: ``and`` keeps the proofs of its operands, ``or`` and ``not`` have none.

A local that is assigned inside an expression (``(v1 := x) is not U``) is made by :func:`found`
alone, which gives a condition. Conditions are joined by ``and``, and code that reads the local
follows them: the local is assigned on every path to that code. No other expression is an
assignment, so each may stand between brackets and commas without parentheses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum, IntEnum
from typing import Final, TypeAlias

from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import RegoSet, Value
from webhook.values import dataclass


class Kind(Enum):
    """The Python type of a value, where it is known."""

    ANY = "any"
    STRING = "string"
    INT = "int"
    """An integer that fits; no other number."""
    BOOL = "boolean"
    LIST = "list"
    DICT = "dict"
    """An object whose keys are all strings."""
    SET = "set"
    NULL = "null"


KIND_OF: Final[dict[type, Kind]] = {
    str: Kind.STRING,
    int: Kind.INT,
    bool: Kind.BOOL,
    list: Kind.LIST,
    dict: Kind.DICT,
    type(None): Kind.NULL,
    RegoSet: Kind.SET,
}

TYPES: Final[dict[Kind, str]] = {
    Kind.STRING: "str",
    Kind.INT: "int",
    Kind.BOOL: "bool",
    Kind.LIST: "list",
    Kind.DICT: "dict",
    Kind.SET: "RegoSet",
}
"""The name of a kind's type in generated code."""


class Binds(IntEnum):
    """How tightly a form binds, the weakest first (Python reference, "Operator precedence")."""

    CONDITIONAL = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    SIGN = 6
    """A number: ``-1`` and ``1`` are no operands of a dot."""
    ATOM = 7


@dataclass(slots=True, eq=False)
class Expression:
    """A value that generated code computes, free of effects.

    An expression never changes once made. Enforcing that by ``frozen`` would add a tenth to the
    time of writing a template.
    """

    source: str
    binds: Binds = Binds.ATOM
    kind: Kind = Kind.ANY
    value: Value = MISSING
    """Its value, where that is known already."""
    is_simple: bool = False
    """Whether it is a name or scalar constant, which may be repeated at no cost."""
    proves: tuple[tuple[Expression, Kind], ...] = ()
    """Locals and the kinds that they have where this is true."""

    def within(self, binds: Binds) -> str:
        """Returns the source as an operand of a form, in parentheses where it binds less tightly."""
        return self.source if self.binds >= binds else f"({self.source})"

    def of_kind(self, kind: Kind) -> Expression:
        """Returns this expression with a known kind of value."""
        return replace(self, kind=kind)

    def proving(self, *proves: tuple[Expression, Kind]) -> Expression:
        """Returns this expression with further proofs from a true outcome."""
        return replace(self, proves=(*self.proves, *proves))

    def forgetting(self) -> Expression:
        """Returns this expression without proofs: they hold only where it was written."""
        return replace(self, proves=()) if self.proves else self

    @property
    def is_local(self) -> bool:
        """Whether this is a name whose value is not known."""
        return self.is_simple and self.value is MISSING

    @property
    def is_known(self) -> bool:
        """Whether its value is known already."""
        return self.value is not MISSING


Operand: TypeAlias = "Expression | str"
"""An expression, or the name of something that is no value of Rego's (a state, a place)."""

TRUE: Final = Expression("True", kind=Kind.BOOL, value=True, is_simple=True)
FALSE: Final = Expression("False", kind=Kind.BOOL, value=False, is_simple=True)


def name(source: str, kind: Kind = Kind.ANY) -> Expression:
    """Returns a local or another name."""
    return Expression(source, kind=kind, is_simple=True)


def _within(operand: Operand, binds: Binds) -> str:
    if isinstance(operand, str):
        return operand
    return operand.source if operand.binds >= binds else f"({operand.source})"


def _listed(operands: Iterable[Operand]) -> str:
    """Join expressions by commas, where none needs parentheses."""
    return ", ".join(
        [operand if isinstance(operand, str) else operand.source for operand in operands]
    )


def is_decimal(value: int) -> bool:
    """Whether an integer is written in digits: CPython limits them, and many are slow."""
    return -(10**18) < value < 10**18


def scalar(value: Value) -> Expression:
    """A known string, truth, null or integer."""
    kind = KIND_OF[type(value)]
    if kind is not Kind.INT:
        return Expression(repr(value), kind=kind, value=value, is_simple=True)
    if not is_decimal(value):
        return Expression(hex(value), Binds.SIGN, kind, value)
    return Expression(str(value), Binds.SIGN, kind, value, is_simple=value >= 0)


def named(constant: str, value: Value) -> Expression:
    """A known value that the header of the program gives a name."""
    return Expression(
        constant, kind=KIND_OF.get(type(value), Kind.ANY), value=value, is_simple=True
    )


# --- values and calls ------------------------------------------------------------------------------


def call(function: str, *operands: Operand, kind: Kind = Kind.ANY) -> Expression:
    """Returns a call of a named function."""
    return Expression(f"{function}({_listed(operands)})", kind=kind)


def method(of: Operand, called: str, *operands: Operand, kind: Kind = Kind.ANY) -> Expression:
    """A call of a method."""
    return Expression(f"{_within(of, Binds.ATOM)}.{called}({_listed(operands)})", kind=kind)


def item(of: Operand, at: object) -> Expression:
    """``of[at]``, for a position that is written out."""
    return Expression(f"{_within(of, Binds.ATOM)}[{at}]")


def part(of: Operand, begin: Expression, end: str) -> Expression:
    """``of[begin:end]`` of a string."""
    return Expression(f"{_within(of, Binds.ATOM)}[{begin.source}:{end}]", kind=Kind.STRING)


def sum_of(a: Operand, operator: str, b: Operand, kind: Kind) -> Expression:
    """``a + b`` or ``a - b``."""
    source = f"{_within(a, Binds.SUM)} {operator} {_within(b, Binds.SIGN)}"
    return Expression(source, Binds.SUM, kind)


def list_of(items: Iterable[Operand]) -> Expression:
    """``[a, b]``."""
    return Expression(f"[{_listed(items)}]", kind=Kind.LIST)


def tuple_of(items: Sequence[Operand]) -> Expression:
    """``(a, b,)``: no value of Rego's."""
    return Expression(f"({_listed(items)}{',' if len(items) == 1 else ''})")


def dict_of(items: Iterable[tuple[Expression, Expression]]) -> Expression:
    """``{a: b}`` with different strings for names."""
    pairs = [f"{key.source}: {value.source}" for key, value in items]
    return Expression(f"{{{', '.join(pairs)}}}", kind=Kind.DICT)


def conditional(then: Expression, test: Expression, other: Expression) -> Expression:
    """``then if test else other``; of the kind that both have."""
    kind = then.kind if then.kind is other.kind else Kind.ANY
    source = f"{then.within(Binds.OR)} if {test.within(Binds.OR)} else {other.source}"
    return Expression(source, Binds.CONDITIONAL, kind)


def text_of(parts: Iterable[Expression | str]) -> Expression:
    """A text of constants, and of expressions without quotes that are formatted between them."""
    pieces = []
    for operand in parts:
        if isinstance(operand, str):
            if operand:
                pieces.append(repr(operand))
        else:
            begin = (
                " " if operand.source.startswith("{") else ""
            )  # two braces would be one of the text
            pieces.append(f"f'{{{begin}{operand.source}}}'")
    return Expression(f"({' '.join(pieces) or repr('')})", kind=Kind.STRING)


# --- conditions ------------------------------------------------------------------------------------


def compare(a: Operand, operator: str, b: Operand) -> Expression:
    """``a == b``, ``a in b`` and the like."""
    # Comparisons form chains: an operand that is one has parentheses.
    source = f"{_within(a, Binds.SUM)} {operator} {_within(b, Binds.SUM)}"
    return Expression(source, Binds.COMPARISON, Kind.BOOL)


def is_of(value: Expression, kind: Kind) -> Expression:
    """Whether a value is of a kind, which a true outcome proves."""
    test = compare(call("type", value), "is", TYPES[kind])
    return test.proving((value, kind)) if value.is_local else test


def defined(local: str, value: Expression) -> Expression:
    """Whether a value is defined; a new local holds it."""
    return compare(f"({local} := {value.source})", "is not", "U")


def negation(of: Expression) -> Expression:
    """``not a``."""
    if of.value is True:
        return FALSE
    if of.value is False:
        return TRUE
    return Expression(f"not {of.within(Binds.NOT)}", Binds.NOT, Kind.BOOL)


def all_of(tests: Sequence[Expression]) -> Expression:
    """``a and b``: true where there are none."""
    if len(tests) < 2:
        return tests[0] if tests else TRUE
    source = " and ".join([test.within(Binds.AND) for test in tests])
    proves = tuple([proof for test in tests for proof in test.proves])
    return Expression(source, Binds.AND, Kind.BOOL, proves=proves)


def any_of(tests: Sequence[Expression]) -> Expression:
    """``a or b``: false where there are none. It proves nothing, since either may have held."""
    if len(tests) < 2:
        return tests[0] if tests else FALSE
    return Expression(" or ".join([test.within(Binds.OR) for test in tests]), Binds.OR, Kind.BOOL)
