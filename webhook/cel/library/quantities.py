"""Kubernetes quantities (k8s.io/apimachinery, api/resource)."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import INT_MAX, INT_MIN, Opaque
from webhook.values import dataclass

NAME: Final = "kubernetes.Quantity"

_QUANTITY: Final = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII
)
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]{1,3}", re.ASCII)
_SCALES: Final = {
    "": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

MAX_DIGITS: Final = 200
"""The longest text of a quantity that is read, in characters."""

KEPT_MAX: Final = 1_000
"""The size of the cache of parsed quantities: the texts of policies, and common ones of objects."""

_LARGEST: Final = 2**63 - 1
_NANO: Final = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class Amount:
    """A value, exact to the nano, and its form: binary, decimal or with an exponent."""

    value: Fraction
    form: str = ""
    scale: int = 0
    """The power of ten of the value if Kubernetes stores it as an integer of 64 bits."""
    is_large: bool = False
    """Whether Kubernetes stores the value as a decimal of any size."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


_BAD_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def read(text: str) -> Amount:
    """Returns a quantity; raises EvaluationError with Kubernetes' message."""
    match = _QUANTITY.fullmatch(text)
    if match is None or not text or len(text) > MAX_DIGITS:
        raise EvaluationError(_BAD_FORM)
    sign, whole, part, suffix = match.groups()
    digits, places = whole or "0", part or ""
    value = Fraction(int(digits + places), 10 ** len(places))
    if suffix in _BINARY:
        value *= 2 ** _BINARY[suffix]
        kind = "binary"
    elif suffix in _SCALES:
        value *= Fraction(10) ** _SCALES[suffix]
        kind = "decimal"
    elif _EXPONENT.fullmatch(suffix):
        value *= Fraction(10) ** int(suffix[1:])
        kind = "exponent"
    else:
        raise EvaluationError("unable to parse quantity's suffix")
    scale, is_large = _kept(kind, suffix, digits, places, value)
    rest = value % _NANO
    if rest:  # a rest below a nano is rounded up
        value += _NANO - rest
    value = min(value, Fraction(_LARGEST)) if kind == "binary" else value
    return Amount(-value if sign == "-" else value, kind, scale, is_large)


def _kept(kind: str, suffix: str, digits: str, places: str, value: Fraction) -> tuple[int, bool]:
    """Returns the scale, and whether it is large (apimachinery, quantity.go, ParseQuantity)."""
    digits = digits.lstrip("0") or "0"
    if kind == "binary":
        room = 15 - len(digits) - _BINARY[suffix] * 3 // 10 - 1
        return 0, bool(places) or room < 0 or value > INT_MAX
    exponent = int(suffix[1:]) if kind == "exponent" else _SCALES[suffix]
    scale = exponent - len(places)
    return scale, 18 - len(digits) - len(places) < 0 or scale < -9


def shown(amount: Amount) -> str:
    """Returns a quantity in its canonical form."""
    value = amount.value
    if amount.form == "binary" and value.denominator == 1 and abs(value) >= 1024:
        size = int(value)
        for suffix, power in reversed(_BINARY.items()):
            if size % 2**power == 0:
                return f"{size >> power}{suffix}"
    for suffix, power in sorted(_SCALES.items(), key=lambda scale: -scale[1]):
        scaled = value / Fraction(10) ** power
        if amount.form == "exponent" and power == 18:
            while scaled and scaled % 1000 == 0:  # exponents have no largest size
                scaled, power = scaled / 1000, power + 3  # noqa: PLW2901
        if scaled.denominator == 1 and (scaled or not power):
            if amount.form == "exponent" and power:
                return f"{scaled.numerator}e{power}"
            return f"{scaled.numerator}{suffix}"
    return str(float(value))


def quantity(amount: Amount) -> Opaque:
    """Returns a quantity as a CEL value."""
    return Opaque(NAME, amount, shown(amount))


@form("quantity", str)
def of_text(text: str) -> Opaque:
    """Returns the quantity of a text."""
    return Opaque(NAME, *_read_and_shown(text))


@lru_cache(KEPT_MAX)
def _read_and_shown(text: str) -> tuple[Amount, str]:
    amount = read(text)
    return amount, text if _is_canonical(text, amount) else shown(amount)


def _is_canonical(text: str, amount: Amount) -> bool:
    """Returns whether Kubernetes keeps the text as it is (quantity.go, too)."""
    match = _QUANTITY.fullmatch(text)
    if amount.is_large or match is None:
        return False
    _, whole, part, _suffix = match.groups()
    digits = ((whole or "").lstrip("0") or "0") + (part or "")
    if amount.form == "binary":
        return int(digits) & 7 != 0
    return amount.scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


@form("isQuantity", str)
def is_quantity(text: str) -> bool:
    """Returns whether a text is a quantity."""
    try:
        read(text)
    except EvaluationError:
        return False
    return True


def _is_whole(quantity: Opaque) -> bool:
    amount: Amount = quantity.value
    if amount.is_large or amount.scale < 0:  # nothing in tenths, too
        return False
    return amount.value.denominator == 1 and INT_MIN <= amount.value <= INT_MAX


@form("isInteger", NAME)
def is_integer(quantity: Opaque) -> bool:
    """Returns whether a quantity is an integer of 64 bits."""
    return _is_whole(quantity)


@form("asInteger", NAME)
def as_integer(quantity: Opaque) -> int:
    """Returns a quantity as an integer."""
    if not _is_whole(quantity):
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.value.value)


@form("asApproximateFloat", NAME)
def as_float(quantity: Opaque) -> float:
    """Returns about the nearest double: Kubernetes multiplies the integer that it stores."""
    kept: Amount = quantity.value
    try:
        if kept.is_large and kept.value and kept.value != _LARGEST:  # rounded to whole nanos
            return float(int(kept.value / _NANO)) * 1e-9
        unscaled = kept.value / Fraction(10) ** kept.scale
        if kept.scale and not kept.is_large and unscaled.denominator == 1:
            return float(unscaled.numerator) * float(10.0**kept.scale)
        return float(kept.value)
    except OverflowError:
        return math.copysign(math.inf, quantity.value.value)


@form("sign", NAME)
def sign(quantity: Opaque) -> int:
    """Returns -1, 0 or 1."""
    value = quantity.value.value
    return int(value > 0) - int(value < 0)


@form("compareTo", NAME, NAME)
def compare(first: Opaque, other: Opaque) -> int:
    """Returns -1, 0 or 1."""
    a, b = first.value.value, other.value.value
    return int(a > b) - int(a < b)


@form("isGreaterThan", NAME, NAME)
def is_greater(first: Opaque, other: Opaque) -> bool:
    """Returns whether a quantity is greater, in any form."""
    return compare(first, other) > 0


@form("isLessThan", NAME, NAME)
def is_less(first: Opaque, other: Opaque) -> bool:
    """Returns whether a quantity is less, in any form: 1000m is not less than 1."""
    return compare(first, other) < 0


def _sum(first: Amount, other: Opaque | int, sign: int) -> Opaque:
    added = Amount(Fraction(other), "decimal") if isinstance(other, int) else other.value
    form_ = first.form if first.value else added.form  # a zero takes the form of the other operand
    if not added.value:
        return _detached(Amount(first.value, form_, first.scale, first.is_large))
    is_large = first.is_large or added.is_large
    scale = min(first.scale, added.scale) if first.value else added.scale
    is_least = added.value == INT_MIN * Fraction(10) ** added.scale
    if sign < 0 and is_least and not is_large and first.value >= 0 and scale == added.scale:
        sign = 1  # as in Go: the least integer of 64 bits is its own negative
    total = first.value + sign * added.value
    unit = Fraction(10) ** scale
    # Beyond 64 bits Go continues with a decimal; the least integer has no negative in 64 bits.
    is_beyond = not INT_MIN <= total / unit <= INT_MAX
    is_beyond |= sign < 0 and first.value < 0 and added.value / unit == INT_MIN
    return _detached(Amount(total, form_, scale, is_large or is_beyond))


def _detached(amount: Amount) -> Opaque:
    return Opaque(NAME, amount, shown(amount), detached=True)


@form("add", NAME, NAME)
@form("add", NAME, int)
def add(first: Opaque, other: Opaque | int) -> Opaque:
    """Returns the sum."""
    return _sum(first.value, other, 1)


@form("sub", NAME, NAME)
@form("sub", NAME, int)
def subtract(first: Opaque, other: Opaque | int) -> Opaque:
    """Returns the difference."""
    return _sum(first.value, other, -1)
