"""Numbers as OPA computes with them: integers exact, all others with 64 bits of mantissa.

OPA keeps a number as its text. Here an integer is an ``int`` and any other number a ``float``,
which stands for the shortest decimal text that Go prints for it: numbers decoded from JSON are as
in Gatekeeper's OPA, where ``1.0`` prints as ``1`` and ``1000000.5`` as ``1.0000005e+06``. A number
that neither type represents exactly (``1.0`` written in a policy, a third, ``1e400``) is a
:class:`Numeral`.

Sums, products and quotients follow Go's ``big.Float`` at its default precision
of 64 bits (OPA v1/topdown/arithmetic.go), so that ``0.1 + 0.2`` is ``0.3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self

from webhook.golang import bigfloat
from webhook.golang.bigfloat import Binary, int_from_text, int_text
from webhook.golang.floats import float_text, general
from webhook.rego.errors import EvaluationError
from webhook.rego.syntax.magnitude import MAX_EXPONENT, fault_of_number

_PLAIN: Final = 1 << 53
"""Below it every integral float is the integer that it prints as."""

_NUMBER: Final = re.compile(r"(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\Z", re.ASCII)


def number_too_large() -> EvaluationError:
    """The end of an evaluation that computes beyond :data:`~webhook.golang.bigfloat.MAX_BITS`."""
    return EvaluationError("eval_cancel_error", "evaluation made a number too large or too small")


class Numeral(float):
    """A number known by its text; compares by its exact decimal value."""

    __slots__ = ("_ratio", "text")

    text: str
    _ratio: Fraction | None

    def __new__(cls, text: str) -> Self:
        """Keeps ``text``, which is in JSON's syntax for numbers."""
        self = super().__new__(cls, text)
        self.text = text
        self._ratio = None
        return self

    @property
    def ratio(self) -> Fraction:
        """The decimal value, computed at its first use: a document may hold many numbers."""
        if self._ratio is None:
            self._ratio = _ratio(self.text)
        return self._ratio

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and self.ratio == exact(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        return self.ratio < exact(other)

    def __le__(self, other: float) -> bool:
        return self.ratio <= exact(other)

    def __gt__(self, other: float) -> bool:
        return self.ratio > exact(other)

    def __ge__(self, other: float) -> bool:
        return self.ratio >= exact(other)

    def __hash__(self) -> int:
        # Equal decimals have the same nearest float. An integer's own hash is wanted where that
        # float is no longer the integer.
        plain = float(self)
        if -_PLAIN < plain < _PLAIN:
            return hash(plain)
        return hash(self.ratio)

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.ratio != 0


def _ratio(text: str) -> Fraction:
    match = _NUMBER.match(text)
    assert match, text
    sign, whole, part, exponent = match.groups()
    digits = int_from_text((whole or "0") + (part or ""))
    power = int(exponent or 0) - len(part or "")
    value = Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)
    return -value if sign else value


def exact(value: float) -> Fraction:
    """Returns the decimal value of a number, as a fraction."""
    if type(value) is Numeral:
        return value.ratio
    return Fraction(value) if isinstance(value, int) else _ratio(repr(value))


def number(text: str) -> int | float:
    """Returns the number of a JSON text; raises ValueError as OPA does.

    The text is kept if no ``int`` or ``float`` prints the same. More digits than
    :data:`bigfloat.MAX_DIGITS` end the evaluation.
    """
    if len(text) > bigfloat.MAX_DIGITS:
        raise number_too_large()
    if not ("." in text or "e" in text or "E" in text):
        return int_from_text(text) if text != "-0" else Numeral(text)
    if ("e" in text or "E" in text) and (fault := fault_of_number(text)):
        raise ValueError(f"invalid number: {fault}")
    plain = float(text)
    return plain if float_text(plain) == text else Numeral(text)


def number_text(value: float) -> str:
    """Returns the number as OPA prints it."""
    if isinstance(value, int):
        return int_text(value)
    if type(value) is float:
        return float_text(value)
    return value.text if isinstance(value, Numeral) else str(value)


def numeral_argument(value: Numeral) -> str:
    """Returns the number as ``sprintf`` shows it: as Go's integer or float, else its own text."""
    if not any(mark in value.text for mark in ".eE"):
        return int_text(int(value))
    plain = float(value)
    return value.text if plain in (float("inf"), float("-inf")) else float_text(plain)


def as_int(value: float) -> int | None:
    """Returns the integer that ``value`` is, however it is written; None for any other number."""
    if isinstance(value, int):
        return value
    if type(value) is float:
        if not value.is_integer():
            return None
        if -_PLAIN < value < _PLAIN:
            return int(value)
    ratio = exact(value)
    return ratio.numerator if ratio.denominator == 1 else None


def as_index(value: float) -> int | None:
    """The integer in 64 bits that ``value`` is written as: ``1`` and ``1.0``, but not ``1e2``."""
    if not isinstance(value, int):
        text = number_text(value)
        if "e" in text or "E" in text:
            return None
        whole = as_int(value)
        if whole is None:
            return None
        value = whole
    return value if -(1 << 63) <= value < 1 << 63 else None


@lru_cache(maxsize=2048)
def _binary_of_text(text: str) -> Binary:
    ratio = _ratio(text)
    return bigfloat.nearest(ratio.numerator, ratio.denominator)


def binary(value: float) -> Binary:
    """Returns the number in 64 bits of mantissa, as ``big.Float`` reads its text."""
    if isinstance(value, int):
        return bigfloat.nearest(value)
    if type(value) is float:
        return _binary_of_text(repr(value))
    return _binary_of_text(number_text(value))


def from_binary(value: Binary) -> int | float:
    """Returns the number, an ``int`` where it is integral."""
    mantissa, exponent = value
    if abs(exponent) > MAX_EXPONENT:
        raise number_too_large()
    if exponent > 0:
        digits, point = bigfloat.shortest(mantissa, exponent)
        whole: int = int_from_text(digits) * 10 ** (point - len(digits))
        return whole if mantissa > 0 else -whole
    if exponent > -bigfloat.PRECISION and not mantissa & ((1 << -exponent) - 1):
        return mantissa >> -exponent
    text = general(*bigfloat.shortest(mantissa, exponent), negative=mantissa < 0)
    plain = float(text)
    return plain if float_text(plain) == text else Numeral(text)


# --- operations ------------------------------------------------------------------------------


def _binary_operation(
    a: float, b: float, whole: Callable[[int, int], int], part: Callable[[Binary, Binary], Binary]
) -> int | float:
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return whole(x, y)
    return from_binary(part(binary(a), binary(b)))


def add(a: float, b: float) -> int | float:
    """``a + b``."""
    return _binary_operation(a, b, int.__add__, bigfloat.add)


def subtract(a: float, b: float) -> int | float:
    """``a - b``."""
    return _binary_operation(a, b, int.__sub__, bigfloat.subtract)


def multiply(a: float, b: float) -> int | float:
    """``a * b``; the caller has paid for long integers."""
    result = _binary_operation(a, b, int.__mul__, bigfloat.multiply)
    if result == 0 and (a < 0) != (b < 0) and (as_int(a) is None or as_int(b) is None):
        return Numeral("-0")
    return result


def divide(a: float, b: float) -> int | float:
    """``a / b``; raises ZeroDivisionError."""
    x, y = as_index(a), as_index(b)
    if x is not None and y is not None and _small(x) and _small(y):
        if not y:
            raise ZeroDivisionError
        if x and not x % y:
            return x // y
        short = _short_quotient(x, y)
        if short is not None:
            return short
    divisor = binary(b)
    if not divisor[0]:
        raise ZeroDivisionError
    dividend = binary(a)
    if not dividend[0] and divisor[0] < 0:
        return Numeral("-0")
    return from_binary(bigfloat.divide(dividend, divisor))


def _short_quotient(a: int, b: int) -> float | None:
    """The quotient where it is a short decimal, as a thousandth is: then no rounding shows."""
    quotient = a / b
    text = repr(quotient)
    if len(text) > 15 or "e" in text:
        return None
    whole, _, part = text.partition(".")
    return quotient if int(whole + part) * b == a * 10 ** len(part) else None


def _small(value: int) -> bool:
    """Whether OPA computes with ``value`` as a machine integer: 32 bits."""
    return -(1 << 31) <= value < 1 << 31


def remainder(a: int, b: int) -> int:
    """``a % b`` with the sign of ``a``, as in Go; raises ZeroDivisionError."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def truncated(value: float) -> int:
    """Returns the integer part, of the number as 64 bits of mantissa hold it."""
    mantissa, exponent = binary(value)
    if exponent >= 0:
        return mantissa << exponent
    whole = abs(mantissa) >> -exponent
    return -whole if mantissa < 0 else whole


def rounded(value: float) -> int:
    """To the nearest integer, halves away from zero."""
    number_ = binary(value)
    return bigfloat.integer_part(
        bigfloat.subtract(number_, bigfloat.HALF)
        if number_[0] < 0
        else bigfloat.add(number_, bigfloat.HALF)
    )


def absolute(value: float) -> int | float:
    """Without its sign; beyond 32 bits rounded to 64 bits of mantissa, as OPA does."""
    index = as_index(value)
    if index is not None and _small(index):
        return abs(index)
    mantissa, exponent = binary(value)
    return from_binary((abs(mantissa), exponent))


def ceiling(value: float) -> int:
    """Rounded up; between -1 and 0 it is 1, as in OPA (arithmetic.go, arithCeil)."""
    whole = bigfloat.integer_part(binary(value))
    return whole if whole < 0 or _is_whole(value) else whole + 1


def floor(value: float) -> int:
    """Rounded down; between -1 and 0 it is 0, as in OPA (arithmetic.go, arithFloor)."""
    whole = bigfloat.integer_part(binary(value))
    return whole if whole >= 0 or _is_whole(value) else whole - 1


def _is_whole(value: float) -> bool:
    mantissa, exponent = binary(value)
    return exponent >= 0 or (abs(mantissa) >> -exponent) << -exponent == abs(mantissa)
