"""Floats in Go's text forms: strconv's shortest digits in format ``g``, and JSON."""

from __future__ import annotations

from decimal import Decimal


def float_text(value: float) -> str:
    """Formats a float as Go's ``strconv.FormatFloat(value, 'g', -1, 64)``."""
    if value.is_integer() and -1e6 < value < 1e6:  # where %e takes over
        whole = int(value)
        return str(whole) if whole or str(value) == "0.0" else "-0"
    text = repr(value)
    digits, point = _digits(text)
    return general(digits, point, negative=text[0] == "-")


def _digits(text: str) -> tuple[str, int]:
    """Returns the significant digits of a float's ``repr``, and their decimal point."""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    digits = whole + part
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    return stripped.rstrip("0"), point - (len(digits) - len(stripped))


def general(digits: str, point: int, *, negative: bool) -> str:
    """Returns Go's shortest format ``g``, with an exponent below -4 or from 6 on (``%v``: 21)."""
    sign = "-" if negative else ""
    exponent = point - 1
    if exponent < -4 or exponent >= 6:  # strconv: "use precision 6 for this decision"
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def json_number(value: float) -> str:
    """Formats a finite float as ``encoding/json``: an exponent below 1e-6 and from 1e21."""
    if not value:
        return "-0" if str(value)[0] == "-" else "0"
    if 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(repr(value)):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"
