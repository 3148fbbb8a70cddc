"""Built-ins that compute with numbers, and the difference of sets that shares ``-`` with them.

Documented in OPA's reference under "Numbers"; behaviour from v1/topdown/arithmetic.go.
"""

from __future__ import annotations

from webhook.golang import bigfloat
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run import numbers
from webhook.rego.run.values import RegoSet, Value, type_name
from webhook.rego.types import NUMBER, SET, any_of

NUMBER_OR_SET = any_of(NUMBER, SET)


def _require_numbers(a: Value, b: Value) -> None:
    for position, value in enumerate((a, b), 1):
        if type_name(value) != "number":
            wrong_operand(position, value, "number")


@builtin("plus", NUMBER, NUMBER, result=NUMBER, infix="+", check=False)
def plus(a: Value, b: Value) -> int | float:
    """Returns the sum."""
    if type(a) is int and type(b) is int:
        return a + b
    _require_numbers(a, b)
    return numbers.add(a, b)


@builtin("minus", NUMBER_OR_SET, NUMBER_OR_SET, result=NUMBER_OR_SET, infix="-", check=False)
def minus(a: Value, b: Value) -> Value:
    """Returns the difference of two numbers or two sets."""
    if type(a) is int and type(b) is int:
        return a - b
    if type(a) is RegoSet and type(b) is RegoSet:
        return a.difference(b)
    left, right = type_name(a), type_name(b)
    if left == "number" and right == "number":
        return numbers.subtract(a, b)
    if left not in {"number", "set"}:
        wrong_operand(1, a, "number", "set")
    return wrong_operand(2, b, "set" if right == "number" else "number")


@builtin("mul", NUMBER, NUMBER, result=NUMBER, infix="*", context=True, check=False)
def mul(context: Context, a: Value, b: Value) -> int | float:
    """Returns the product."""
    if type(a) is int and type(b) is int:
        result = a * b if -LONG < a < LONG and -LONG < b < LONG else _long_product(context, a, b)
        return result  # noqa: RET504  # the name says what the two ways have in common
    _require_numbers(a, b)
    return numbers.multiply(a, b)


LONG = 1 << 4096
"""The smallest product that is charged: a smaller one costs less than a step or two."""


def _long_product(context: Context, a: int, b: int) -> int:
    if a.bit_length() + b.bit_length() > bigfloat.MAX_BITS:
        raise numbers.number_too_large()
    context.charge(1 + a.bit_length() * b.bit_length() // 80_000)
    return a * b


@builtin("div", NUMBER, NUMBER, result=NUMBER, infix="/", check=False)
def div(a: Value, b: Value) -> int | float:
    """Returns the quotient; an integer if it is whole."""
    _require_numbers(a, b)
    try:
        return numbers.divide(a, b)
    except ZeroDivisionError:
        raise BuiltinError("divide by zero") from None


@builtin("rem", NUMBER, NUMBER, result=NUMBER, infix="%", check=False)
def rem(a: Value, b: Value) -> int:
    """Returns the remainder of a division of integers, with the sign of the dividend."""
    _require_numbers(a, b)
    x, y = numbers.as_int(a), numbers.as_int(b)
    if x is None or y is None:
        raise BuiltinError("modulo on floating-point number")
    if not y:
        raise BuiltinError("modulo by zero")
    return numbers.remainder(x, y)


@builtin("abs", NUMBER, result=NUMBER)
def abs_(x: float) -> int | float:
    """Returns the number without its sign."""
    return numbers.absolute(x)


@builtin("round", NUMBER, result=NUMBER)
def round_(x: float) -> int:
    """Returns the nearest integer; halves go away from zero."""
    return numbers.rounded(x)


@builtin("ceil", NUMBER, result=NUMBER)
def ceil(x: float) -> int:
    """Returns the number rounded up to an integer."""
    return numbers.ceiling(x)


@builtin("floor", NUMBER, result=NUMBER)
def floor(x: float) -> int:
    """Returns the number rounded down to an integer."""
    return numbers.floor(x)
