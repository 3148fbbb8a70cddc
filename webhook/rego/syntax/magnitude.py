"""Bounds numbers as OPA does: binary exponents up to a hundred thousand either way."""

from __future__ import annotations

import math
from typing import Final

MAX_EXPONENT: Final = 100_000
"""Largest binary exponent of a number that may be read (OPA v1/ast/term.go, maxNumberExp)."""

MAX_DIGITS: Final = 40_000
"""A third more than an integer of :data:`MAX_EXPONENT` has; OPA has no bound for a fraction's."""

_MAX_GO_EXPONENT: Final = (1 << 31) - 1
"""Beyond it Go's ``big.Float`` reads no number at all, and beyond 64 bits not even a zero."""

_SIGNIFICANT: Final = 17
"""Digits that tell the exponent, but for numbers within 1e-15 of the bound itself."""

_BITS_A_DIGIT: Final = math.log2(10)


def fault_of_number(text: str) -> str:
    """Returns why OPA does not hold the number of this text, in its words; empty where it does.

    ``text`` is in JSON's syntax, perhaps with nothing before its point.
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, part = mantissa.lstrip("+-").partition(".")
    digits = (whole + part).lstrip("0")
    # No text of an exponent is longer than Python converts: 20 digits are more than 64 bits.
    written = exponent.lstrip("+-").lstrip("0")
    power = int(written[:20] or 0)
    if power >= 1 << 63:
        return "invalid float"
    if not digits:
        return ""
    if len(digits) > MAX_DIGITS:
        return "number too big"
    shift = (-power if exponent.startswith("-") else power) - len(part)
    # Digits of which 17 are looked at, times a power of ten.
    looked_at = digits[:_SIGNIFICANT]
    bits = math.log2(int(looked_at)) + (len(digits) - len(looked_at)) * _BITS_A_DIGIT
    if abs(math.floor(bits) + 1 + shift) > _MAX_GO_EXPONENT:
        return "invalid float"
    exponent_of_two = math.floor(bits + shift * _BITS_A_DIGIT) + 1
    return "number too big" if abs(exponent_of_two) > MAX_EXPONENT else ""
