"""CEL libraries that Kyverno has beyond Kubernetes: numbers, Base64 and ``orValue`` of any value.

Numbers are those of cel-go (ext/math.go). Kyverno's ``math.greatest`` and ``math.least`` take any
number of arguments; here at most 32.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import NOTHING, Optional, Uint, held
from webhook.cel.syntax.macros import VALUE_OR

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.run.meter import Meter

_ARGUMENTS_MAX: Final = 32
_BITS: Final = 64


OVERLOADS: Final = f"""
orValue .(dyn, dyn) dyn
{VALUE_OR} (dyn, dyn) dyn
base64.encode (bytes) string
base64.decode (string) bytes
math.ceil,math.floor,math.trunc,math.round (double) double
math.isNaN,math.isInf,math.isFinite (double) bool
math.abs,math.sign (int) int
math.abs,math.sign (uint) uint
math.abs,math.sign (double) double
math.sqrt (int) double
math.sqrt (uint) double
math.sqrt (double) double
math.bitAnd,math.bitOr,math.bitXor (int, int) int
math.bitAnd,math.bitOr,math.bitXor (uint, uint) uint
math.bitShiftLeft,math.bitShiftRight (int, int) int
math.bitShiftLeft,math.bitShiftRight (uint, int) uint
math.bitNot (int) int
math.bitNot (uint) uint
""" + "\n".join(
    f"math.greatest,math.least ({', '.join(['dyn'] * count)}) dyn"
    for count in range(1, _ARGUMENTS_MAX + 1)
)
"""The overloads of the libraries."""


# --- optionals ------------------------------------------------------------------------------------


@form(VALUE_OR, None, None)
def value_or(value: Any, other: Any) -> Any:
    """Returns the value of an optional, or the other value; a value that is no optional as it is."""
    if type(value) is not Optional:
        return value
    return other if value.value is NOTHING else held(value)


# --- Base64 ---------------------------------------------------------------------------------------


@form("base64.encode", bytes, charges=True)
def encode(meter: Meter, raw: bytes) -> str:
    """Encodes bytes, with padding."""
    meter.charge(len(raw) // 10)
    text = base64.b64encode(raw).decode()
    meter.charge_size(text)
    return text


@form("base64.decode", str, charges=True)
def decode(meter: Meter, text: str) -> bytes:
    """Decodes Base64 with or without padding, as cel-go does."""
    meter.charge(len(text) // 10)
    plain = text.replace("\r", "").replace("\n", "")
    padded = plain if "=" in plain else plain + "=" * (-len(plain) % 4)
    try:
        return base64.b64decode(padded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise EvaluationError("base64.decode: illegal base64 data") from None


# --- Numbers --------------------------------------------------------------------------------------


def _of_double(compute: Callable[[float], float]) -> Callable[[float], float]:
    """Returns a function that leaves infinities and NaN unchanged."""
    return lambda number: compute(number) if math.isfinite(number) else number


def _half_away(number: float) -> float:
    whole = math.floor(abs(number))
    return math.copysign(whole + (abs(number) - whole >= 0.5), number)


form("math.ceil", float)(_of_double(lambda number: math.copysign(math.ceil(number), number)))
form("math.floor", float)(_of_double(lambda number: math.copysign(math.floor(number), number)))
form("math.trunc", float)(_of_double(lambda number: math.copysign(math.trunc(number), number)))
form("math.round", float)(_of_double(_half_away))
form("math.isNaN", float)(math.isnan)
form("math.isInf", float)(math.isinf)
form("math.isFinite", float)(math.isfinite)


@form("math.abs", int)
def absolute(number: int) -> int:
    """Returns the absolute value; the smallest integer overflows."""
    return _within(abs(number))


form("math.abs", float)(abs)
form("math.abs", Uint)(lambda number: number)
form("math.sign", int)(lambda number: (number > 0) - (number < 0))
form("math.sign", Uint)(lambda number: Uint(number > 0))
form("math.sign", float)(
    lambda number: number if math.isnan(number) or not number else math.copysign(1.0, number)
)


@form("math.sqrt", float)
@form("math.sqrt", int)
@form("math.sqrt", Uint)
def root(number: float) -> float:
    """Returns the square root; NaN for a negative number."""
    return math.sqrt(number) if number >= 0 else math.nan


def _within(number: int) -> int:
    if not -(1 << (_BITS - 1)) <= number < 1 << (_BITS - 1):
        raise EvaluationError("integer overflow")
    return number


def signed(number: int) -> int:
    """Returns the signed integer of the lowest 64 bits."""
    bits = number & ((1 << _BITS) - 1)
    return bits - (1 << _BITS) if bits >> (_BITS - 1) else bits


def _unsigned(number: int) -> Uint:
    return Uint(int(number) & ((1 << _BITS) - 1))


def _shifted(number: int, offset: int, name: str) -> int:
    if offset < 0:
        raise EvaluationError(f"math.{name}() negative offset: {offset}")
    if offset >= _BITS:
        return 0
    raw = int(number) & ((1 << _BITS) - 1)
    return raw << offset if name == "bitShiftLeft" else raw >> offset


def _bits(of: type, result_type: Callable[[int], int]) -> None:
    """Registers the bit functions of one integer type."""
    form("math.bitAnd", of, of)(lambda first, other: result_type(int(first) & int(other)))
    form("math.bitOr", of, of)(lambda first, other: result_type(int(first) | int(other)))
    form("math.bitXor", of, of)(lambda first, other: result_type(int(first) ^ int(other)))
    form("math.bitNot", of)(lambda number: result_type(~int(number)))
    for name in ("bitShiftLeft", "bitShiftRight"):
        form(f"math.{name}", of, int)(
            lambda number, offset, name=name: result_type(_shifted(number, offset, name))
        )


_bits(int, signed)
_bits(Uint, _unsigned)


def _extreme(name: str, choose: Callable[..., Any], *given: Any) -> Any:
    numbers = given[0] if len(given) == 1 and type(given[0]) is list else given
    if not numbers:
        raise EvaluationError(f"math.{name}(list) argument must not be empty")
    if any(type(number) not in {int, Uint, float} for number in numbers):
        raise EvaluationError(f"no such overload: math.{name} of what is no number")
    return choose(numbers)


for _count in range(1, _ARGUMENTS_MAX + 1):
    _operands = [None] * _count
    form("math.greatest", *_operands)(lambda *given: _extreme("greatest", max, *given))
    form("math.least", *_operands)(lambda *given: _extreme("least", min, *given))
