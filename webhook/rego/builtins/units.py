"""Built-ins that read quantities with units.

Documented in OPA's reference under "Units"; behaviour from
v1/topdown/parse_units.go and parse_bytes.go.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from webhook.rego.builtins.registry import builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import binary, from_binary, multiply, number, truncated
from webhook.rego.types import NUMBER, STRING

MAX_EXPONENT_DIGITS: Final = 6

_PREFIXES: Final = ("k", "m", "g", "t", "p", "e")

_BYTES: Final = (
    {"": 1}
    | {f"{p}{b}": 1000 ** (i + 1) for i, p in enumerate(_PREFIXES) for b in ("", "b")}
    | {f"{p}i{b}": 1024 ** (i + 1) for i, p in enumerate(_PREFIXES) for b in ("", "b")}
)

_UNITS: Final = (
    # A thousandth in Go's float64; the result is cut at ten places, which hides the difference.
    {"": Fraction(1), "m": Fraction(0.001), "M": Fraction(1000**2)}
    | {
        p: Fraction(1000**e)
        for e, ps in enumerate(("kK", "", "gG", "tT", "pP", "eE"), 1)
        for p in ps
    }
    | {
        f"{p}i": Fraction(1024**e)
        for e, ps in enumerate(("kK", "mM", "gG", "tT", "pP", "eE"), 1)
        for p in ps
    }
)

# Go's SetString for a big.Rat or big.Float, as far as digits and signs of a quantity go.
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)


def _split(name: str, text: str) -> tuple[str, str]:
    """Returns the number and the unit."""
    if " " in text:
        raise BuiltinError(f"{name}: spaces not allowed in resource strings")
    at = 0
    while at < len(text):
        character = text[at]
        if not ("0" <= character <= "9" or character in ".eE+-"):
            break
        if character in "eE":
            following = text[at + 1 : at + 2]
            if not ("0" <= following <= "9" or (following and following in "+-")):
                break
            if following in "+-":
                at += 1
            digits = re.match(r"[0-9]*", text[at + 1 :])
            if digits and len(digits[0]) > MAX_EXPONENT_DIGITS:
                raise BuiltinError(f"{name}: exponent too large")
        at += 1
    return text[:at], text[at:]


@builtin("units.parse", STRING, result=NUMBER)
def parse(x: str) -> int | float:
    """Returns the number of a quantity such as ``10G``, ``200m`` or ``1.5Ki``."""
    digits, unit = _split("units.parse", x.replace('"', ""))
    if not digits:
        raise BuiltinError("units.parse: no amount provided")
    unit = unit[:1] + unit[1:].lower()
    factor = _UNITS.get(unit)
    if factor is None:
        raise BuiltinError(f"units.parse: unit {unit} not recognized")
    if not _NUMBER.match(digits):
        raise BuiltinError("units.parse: could not parse amount to a number")
    if abs(int(digits.lower().partition("e")[2] or 0)) > 100_000:
        raise BuiltinError("units.parse: exponent too large")
    value = Fraction(digits.rstrip(".")) * factor
    if value.denominator == 1:
        return value.numerator
    # Ten places, halves away from zero: big.Rat's FloatString.
    scaled = abs(value) * 10**10
    whole = int(scaled) + (scaled - int(scaled) >= Fraction(1, 2))
    text = f"{whole // 10**10}.{whole % 10**10:010d}"
    return number(f"-{text}" if value < 0 else text)


@builtin("units.parse_bytes", STRING, result=NUMBER)
def parse_bytes(x: str) -> int:
    """Returns the whole number of bytes of a quantity such as ``10GB`` or ``4mib``."""
    name = "units.parse_bytes"
    digits, unit = _split(name, x.lower().replace('"', ""))
    if not digits:
        raise BuiltinError(f"{name}: no byte amount provided")
    factor = _BYTES.get(unit)
    if factor is None:
        raise BuiltinError(f"{name}: byte unit {unit} not recognized")
    if not _NUMBER.match(digits):
        raise BuiltinError(f"{name}: could not parse byte amount to a number")
    try:
        amount = number(digits.removeprefix("+"))
    except ValueError:
        raise BuiltinError(f"{name}: exponent too large") from None
    return truncated(multiply(from_binary(binary(amount)), factor))
