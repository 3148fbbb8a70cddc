"""``string.format`` (cel-go v0.26, ext/formatting.go, with its printer for the locale en_US)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.conversions import to_string
from webhook.cel.run.meter import Meter
from webhook.cel.run.texts import duration_text, timestamp_text
from webhook.cel.run.values import (
    Duration,
    Lost,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    from_key,
    type_name,
)
from webhook.golang.strings import quote

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.?))", re.DOTALL | re.ASCII)
_MAX_PRECISION: Final = (1 << 63) - 1
_DECIMALS_MAX: Final = 1_074
"""The most decimals of a double; further ones are zeros."""
_TOO_LARGE: Final = 1_000_000
"""cel-go's printer gives up on a precision with more than this before its last digit."""

_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class _FormatError(Exception):
    """A clause cannot format its argument."""


REFUSALS: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
    "types, durations, and timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
"""The error of each clause for a value of a wrong type."""


def _refused(clause: str, value: Value) -> _FormatError:
    return _FormatError(REFUSALS[clause].format(type_name(value)))


def _as_string(value: Value) -> str:
    if value is None:
        return "null"
    if type(value) is list:
        return _as_list(value)
    if type(value) is dict:
        return _as_map(value)
    if type(value) is TypeValue:
        return value.name
    if isinstance(value, (str, bool, int, float, bytes, Timestamp, Duration)):
        try:
            return to_string(value)
        except EvaluationError as error:
            raise _FormatError(f'could not convert argument "{error}" to string') from None
    raise _refused("s", value)


def _nested(value: Value) -> str:
    """Returns a value within a list or map as it would be written in CEL."""
    if type(value) is Timestamp:
        return f'timestamp("{timestamp_text(value)}")'
    if type(value) is Duration:
        return f'duration("{duration_text(value)}")'
    if type(value) is float:
        return f"{value:.6f}" if math.isfinite(value) else f'"{_infinite(value)}"'
    if type(value) is str:
        return quote(value)
    if type(value) is bytes:
        return f"b{quote(_as_string(value))}"
    if type(value) in {Lost, Opaque, Optional}:
        raise _FormatError(f"no formatting function for {type_name(value)}")
    return _as_string(value)


def _infinite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _as_list(items: list[Value]) -> str:
    return f"[{', '.join(map(_nested, items))}]"


def _as_map(entries: dict[Value, Value]) -> str:
    pairs = []
    for raw, value in entries.items():
        key = from_key(raw)
        if type(key) not in {str, bool, int, Uint}:
            raise _FormatError(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_nested(key), _nested(value)))
    pairs.sort(key=lambda pair: pair[0].encode("utf-8", "surrogateescape"))
    return f"{{{', '.join(f'{key}:{value}' for key, value in pairs)}}}"


def _decimal(value: Value) -> str:
    if type(value) not in {int, Uint}:
        raise _refused("d", value)
    return str(int(value))


def _number(value: Value, clause: str) -> float:
    if type(value) is float:
        return value or 0.0  # a zero has no sign
    if type(value) is str and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    raise _refused(clause, value)


def _locale_infinite(value: float, width: int = 0) -> str:
    """Returns an infinity, or no number, in the locale's form, at the right of ``width`` characters."""
    text = "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    return text.rjust(width)


def _fixed(precision: int) -> Callable[[Value], str]:
    def fixed(value: Value) -> str:
        number = _number(value, "f")
        if not math.isfinite(number):
            return _locale_infinite(number)
        if precision // 10 > _TOO_LARGE:
            return _NO_VERB
        whole, _, decimals = f"{number:,.{min(precision, _DECIMALS_MAX)}f}".partition(".")
        # The printer rounds by the precision, and keeps the number of zeros in a byte.
        decimals = decimals.rstrip("0").ljust(precision & 0xFF, "0")
        return f"{whole}.{decimals}" if decimals else whole

    return fixed


def _scientific(precision: int) -> Callable[[Value], str]:
    def scientific(value: Value) -> str:
        number = _number(value, "e")
        if not math.isfinite(number):
            return _locale_infinite(number, precision)
        if precision // 10 > _TOO_LARGE:
            return _NO_VERB
        mantissa, _, exponent = f"{number:.6e}".partition("e")
        size = int(exponent)
        shown = f"{'-' if size < 0 else ''}{abs(size):02d}"
        return f"{mantissa}\u00d710{shown.translate(_SUPERSCRIPT)}".rjust(precision & 0xFFFF)

    return scientific


def _binary(value: Value) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in {int, Uint}:
        return format(int(value), "b")
    raise _refused("b", value)


def _octal(value: Value) -> str:
    if type(value) in {int, Uint}:
        return format(int(value), "o")
    raise _refused("o", value)


def _hex(upper: bool) -> Callable[[Value], str]:
    def hexadecimal(value: Value) -> str:
        if type(value) is str:
            text = value.encode("utf-8", "surrogateescape").hex()
        elif type(value) is bytes:
            text = value.hex()
        elif type(value) in {int, Uint}:
            text = format(int(value), "x")
        else:
            raise _refused("x", value)
        return text.upper() if upper else text

    return hexadecimal


_CLAUSES: Final[dict[str, Callable[[int], Callable[[Value], str]]]] = {
    "s": lambda _: _as_string,
    "d": lambda _: _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": lambda _: _binary,
    "x": lambda _: _hex(False),
    "X": lambda _: _hex(True),
    "o": lambda _: _octal,
}

_NO_VERB: Final = "%!(NOVERB)"
_PRECISION: Final = "could not parse formatting clause: error while parsing precision: "


def clauses_of(
    template: str, argument_count: int, *, early: bool = False
) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yields the letter of each clause, with its begin, its end and its precision; ``%%`` is left out.

    Raises :class:`~webhook.cel.errors.EvaluationError` for a malformed clause, and for more clauses
    than the ``argument_count`` arguments. The latter comes first, but for a ``%`` at the end of a constant
    (``early``).
    """
    used = 0
    for match in _CLAUSE.finditer(template):
        if match[1]:
            continue
        letter, precision = match[3], match[2]
        if used >= argument_count and not (early and match[0] == "%"):
            raise EvaluationError(f"index {used} out of range")
        used += 1
        digits = 6
        if precision and letter:
            digits = int(precision.lstrip("0")[:20] or "0")
        if letter not in _CLAUSES or precision == "" or digits > _MAX_PRECISION:
            raise EvaluationError(_clause_fault(letter, precision))
        yield letter, (match.start(), match.end(), digits)


def _clause_fault(letter: str, precision: str | None) -> str:
    """Returns cel-go's message for a malformed clause.

    There are five cases: the template ends within a precision, or elsewhere in a clause; the
    precision has no digits, or is out of range; no clause has the letter.
    """
    if not letter and precision is not None:
        return f"{_PRECISION}could not find end of precision specifier"
    if not letter:
        return "unexpected end of string"
    if precision == "" or (precision and int(precision.lstrip("0")[:20] or "0") > _MAX_PRECISION):
        wrong = "value out of range" if precision else "invalid syntax"
        reason = f'strconv.Atoi: parsing "{precision}": {wrong}'
        return f"{_PRECISION}error while converting precision to integer: {reason}"
    return f'could not parse formatting clause: unrecognized formatting clause "{letter}"'


@form("format", str, list, charges=True)
def format_(meter: Meter, template: str, args: list[Value]) -> str:
    """Returns the template with its clauses filled in."""
    parts: list[str] = []
    at = 0
    meter.charge(len(template) // 10)
    clauses = clauses_of(template, len(args))
    for used, (letter, (start, end, precision)) in enumerate(clauses):
        parts.append(template[at:start].replace("%%", "%"))
        at = end
        try:
            parts.append(meter.charge_size(_CLAUSES[letter](precision)(args[used])))
        except _FormatError as error:
            raise EvaluationError(f"error during formatting: {error}") from None
    parts.append(template[at:].replace("%%", "%"))
    return str(meter.charge_size("".join(parts)))
