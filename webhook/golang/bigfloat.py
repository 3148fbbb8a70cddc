"""Numbers of 64 bits of mantissa, as Go's ``big.Float`` computes and prints them.

The precision is the default of ``big.Float.SetString``, by which OPA reads every number that is no
integer (v1/topdown/builtins).
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

PRECISION: Final = 64
"""Bits of mantissa that ``big.Float.SetString`` gives a number without a precision."""

DOUBLE_PRECISION: Final = 53
"""The precision of ``big.NewFloat``, in bits; results stored in such a number keep it."""

MAX_BITS: Final = 1 << 20
"""The largest integer that is computed, in bits: 315,653 digits; OPA has no limit."""


MAX_DIGITS: Final = 315_653
"""The digits of :data:`MAX_BITS`; longer texts are not read as numbers."""

_DIRECT_DIGITS: Final = 2000
"""The most digits that Python converts itself; its time grows with their square."""

_EXACT: Final = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
)


def int_from_text(digits: str) -> int:
    """Returns an integer of any length; :data:`MAX_DIGITS` take a tenth of a second, not three."""
    if len(digits) <= _DIRECT_DIGITS:
        return int(digits)
    whole = _halves(digits.lstrip("+-"), {})
    return -whole if digits[0] == "-" else whole


def _halves(digits: str, powers: dict[int, int]) -> int:
    if len(digits) <= _DIRECT_DIGITS:
        return int(digits)
    half = len(digits) >> 1
    if half not in powers:
        powers[half] = 10**half
    return _halves(digits[:-half], powers) * powers[half] + _halves(digits[-half:], powers)


def int_text(value: int) -> str:
    """Returns the digits of an integer; :data:`MAX_BITS` take a tenth of a second."""
    bits = value.bit_length()
    if bits <= 3 * _DIRECT_DIGITS:
        return str(value)
    return format(_as_decimal(value, bits, {}), "f")


def _as_decimal(value: int, bits: int, powers: dict[int, Decimal]) -> Decimal:
    """Returns the decimal, by halves: :mod:`decimal` multiplies in nearly linear time."""
    if bits <= 3 * _DIRECT_DIGITS:
        return Decimal(value)
    half = bits >> 1
    if half not in powers:
        powers[half] = _EXACT.power(Decimal(2), half)
    high = value >> half
    low = value - (high << half)
    return _EXACT.fma(
        _as_decimal(high, bits - half, powers), powers[half], _as_decimal(low, half, powers)
    )


Binary: TypeAlias = tuple[int, int]
"""A mantissa of 64 bits (or 0) and a power of two. With a named precision, the mantissa has that
many bits."""


def nearest(numerator: int, denominator: int = 1, bits: int = PRECISION) -> Binary:
    """Returns the quotient rounded to nearest, ties to even."""
    if not numerator:
        return 0, 0
    size = abs(numerator)
    shift = bits + 1 - (size.bit_length() - denominator.bit_length())
    if shift >= 0:
        mantissa, rest = divmod(size << shift, denominator)
    else:
        mantissa, rest = divmod(size, denominator << -shift)
    exponent = -shift
    extra = mantissa.bit_length() - bits
    half = 1 << (extra - 1)
    low = mantissa & ((half << 1) - 1)
    mantissa >>= extra
    exponent += extra
    if low > half or (low == half and (rest or mantissa & 1)):
        mantissa += 1
        if mantissa >> bits:
            mantissa >>= 1
            exponent += 1
    return (mantissa if numerator > 0 else -mantissa), exponent


_DIGITS_ENOUGH: Final = 40
"""Twice the digits that 64 bits of mantissa can need."""


def _decimal_digits(mantissa: int, exponent: int) -> tuple[str, int]:
    """Returns the significant digits, cut for very large or very small numbers."""
    if 0 <= exponent < 1000:
        text = int_text(mantissa << exponent)
        return text.rstrip("0"), len(text)
    if -1000 < exponent < 0:
        text = int_text(mantissa * 5**-exponent)
        return text.rstrip("0"), len(text) + exponent
    power = _DIGITS_ENOUGH - int((mantissa.bit_length() + exponent) * 0.30103)
    if power >= 0:
        scaled = mantissa * _power_of_ten(power)
        scaled = scaled >> -exponent if exponent < 0 else scaled << exponent
    else:
        scaled = (mantissa << exponent) // _power_of_ten(-power)
    text = str(scaled)
    return text.rstrip("0"), len(text) - power


@lru_cache(maxsize=16)
def _power_of_ten(power: int) -> int:
    return 10**power  # type: ignore[no-any-return]  # an integer, as the power is not negative


def shortest(mantissa: int, exponent: int) -> tuple[str, int]:
    """Returns the fewest digits that are read back as the same bits, and their decimal point.

    As Go's math/big (ftoa.go, roundShortest).
    """
    size = abs(mantissa)
    digits, point = _decimal_digits(size, exponent)
    lower, _ = _decimal_digits(2 * size - 1, exponent - 1)
    upper, _ = _decimal_digits(2 * size + 1, exponent - 1)
    inclusive = size & 1 == 0
    for place, digit in enumerate(digits):
        low = lower[place] if place < len(lower) else "0"
        high = upper[place] if place < len(upper) else "0"
        down = low != digit or (inclusive and place + 1 == len(lower))
        up = digit != high and (inclusive or ord(digit) + 1 < ord(high) or place + 1 < len(upper))
        if down or up:
            if down and up:
                up = _rounds_up(digits, place + 1)
            return _cut(digits, point, place + 1, up=up)
    return digits, point


def _rounds_up(digits: str, count: int) -> bool:
    if count >= len(digits):
        return False
    if digits[count] == "5" and count + 1 == len(digits):
        return count > 0 and (ord(digits[count - 1]) - 48) & 1 != 0
    return digits[count] >= "5"


def _cut(digits: str, point: int, count: int, *, up: bool) -> tuple[str, int]:
    kept = digits[:count]
    if not up:
        return kept.rstrip("0"), point
    kept = kept.rstrip("9")
    if not kept:
        return "1", point + 1
    return kept[:-1] + chr(ord(kept[-1]) + 1), point


def _scaled(a: Binary, b: Binary) -> tuple[int, int, int]:
    """Returns both mantissas at the smaller exponent."""
    exponent = min(a[1], b[1])
    return a[0] << (a[1] - exponent), b[0] << (b[1] - exponent), exponent


def _shifted(mantissa: int, exponent: int, bits: int = PRECISION) -> Binary:
    result, shift = nearest(mantissa, 1, bits)
    return result, (shift + exponent if result else 0)


def add(a: Binary, b: Binary) -> Binary:
    """Returns ``a + b``."""
    x, y, exponent = _scaled(a, b)
    return _shifted(x + y, exponent)


def subtract(a: Binary, b: Binary) -> Binary:
    """Returns ``a - b``."""
    x, y, exponent = _scaled(a, b)
    return _shifted(x - y, exponent)


def multiply(a: Binary, b: Binary, bits: int = PRECISION) -> Binary:
    """Returns ``a * b`` with ``bits`` bits."""
    return _shifted(a[0] * b[0], a[1] + b[1], bits)


def divide(a: Binary, b: Binary) -> Binary:
    """Returns ``a / b``; ``b`` must not be 0."""
    mantissa, exponent = nearest(a[0] if b[0] > 0 else -a[0], abs(b[0]))
    return mantissa, (exponent + a[1] - b[1] if mantissa else 0)


HALF: Final = nearest(1, 2)


def integer_part(value: Binary) -> int:
    """Returns the integer part, rounded towards 0."""
    mantissa, exponent = value
    if exponent >= 0:
        return mantissa << exponent
    whole = abs(mantissa) >> -exponent
    return -whole if mantissa < 0 else whole
