"""Converts numbers as Go's ``float64`` does.

conftest passes nearly every format through Go's JSON, which reads a number as a ``float64``. OPA
then prints numbers from a million with an exponent (``1e+06``). Here a ``float`` is printed so, and
an ``int`` in digits: whole numbers below a million are ``int``, all others ``float``.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from webhook.api.yaml_reader import json_float
from webhook.parsers.errors import ParseError

_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9]+)?"
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX]_?[0-9a-fA-F][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?[pP][+-]?[0-9]+"
)
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def typed(text: str) -> Any:
    """Returns the number or boolean of a text by Go's ``strconv``; otherwise the text."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return number(value) if math.isfinite(value) else text
    if _HEXADECIMAL.fullmatch(text):
        return number(float.fromhex(text.replace("_", "")))
    return _BOOLEANS.get(text, text)


_PLAIN: Final = 1_000_000
"""The number from which Go's format ``g`` has an exponent."""


def number(value: float) -> int | float:
    """Returns the value after a pass through ``float64``.

    Raises :class:`ParseError` beyond its range.
    """
    if -_PLAIN < value < _PLAIN:
        whole = int(value)
        return whole if whole == value else value
    try:
        plain = float(value)
    except OverflowError:
        plain = math.inf
    if not math.isfinite(plain):
        raise ParseError("number out of range")
    return plain


def of_text(text: str) -> int | float:
    """Returns the number of an integer's text."""
    if len(text) < 7:  # below a million
        return int(text)
    return number(float(text))


def plain(value: Any) -> Any:
    """Returns the value as Go's JSON writes it.

    Floats without a fraction below 1e21 as integers.
    """
    kind = type(value)
    if kind is dict:
        return {name: plain(inner) for name, inner in value.items()}
    if kind is list:
        return [plain(inner) for inner in value]
    return json_float(value) if kind is float else value
