"""Built-ins on the bits of integers, of any size and in two's complement.

Documented in OPA's reference under "Bits"; behaviour from v1/topdown/bits.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.golang import bigfloat
from webhook.rego.builtins.operands import big_integer
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number_too_large
from webhook.rego.types import NUMBER

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


@builtin("bits.and", NUMBER, NUMBER, result=NUMBER, check=False)
def and_(x: Value, y: Value) -> int:
    """Returns the bits set in both."""
    return big_integer(1, x) & big_integer(2, y)


@builtin("bits.or", NUMBER, NUMBER, result=NUMBER, check=False)
def or_(x: Value, y: Value) -> int:
    """Returns the bits set in either."""
    return big_integer(1, x) | big_integer(2, y)


@builtin("bits.xor", NUMBER, NUMBER, result=NUMBER, check=False)
def xor(x: Value, y: Value) -> int:
    """Returns the bits set in exactly one."""
    return big_integer(1, x) ^ big_integer(2, y)


@builtin("bits.negate", NUMBER, result=NUMBER, check=False)
def negate(x: Value) -> int:
    """Returns every bit turned over."""
    return ~big_integer(1, x)


def _shift(y: Value) -> int:
    places = big_integer(2, y)
    if places < 0:
        raise BuiltinError(
            "operand 2 must be an unsigned integer number but got a negative integer", kind="type"
        )
    return places


@builtin("bits.lsh", NUMBER, NUMBER, result=NUMBER, context=True, check=False)
def lsh(context: Context, x: Value, y: Value) -> int:
    """Returns the number with its bits ``y`` places further left."""
    value = big_integer(1, x)
    places = _shift(y)
    if not value:
        return 0
    if value.bit_length() + places > bigfloat.MAX_BITS:
        raise number_too_large()
    context.charge(1 + places // 1000)
    return value << places


@builtin("bits.rsh", NUMBER, NUMBER, result=NUMBER, check=False)
def rsh(x: Value, y: Value) -> int:
    """Returns the number with its bits ``y`` places further right."""
    value = big_integer(1, x)
    return value >> min(_shift(y), bigfloat.MAX_BITS)
