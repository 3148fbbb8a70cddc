"""Numbers as a pass through Go's ``float64`` leaves them.

conftest hands nearly every format to Go's JSON, which reads a number as a ``float64``; OPA then
shows one of a million or more with an exponent (``1e+06``). A Python ``float`` is shown so, an
``int`` as it is: whole numbers below a million are the latter, all others the former.
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
    """The number or boolean that a text writes, as Go's ``strconv`` takes them; else the text."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return number(value) if math.isfinite(value) else text
    if _HEXADECIMAL.fullmatch(text):
        return number(float.fromhex(text.replace("_", "")))
    return _BOOLEANS.get(text, text)


_PLAIN: Final = 1_000_000
"""From here on Go's format ``g`` has an exponent."""


def number(value: float) -> int | float:
    """The value as a ``float64`` that Go writes; raises :class:`ParseError` beyond its range."""
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
    """The number of an integer's text."""
    if len(text) < 7:  # below a million
        return int(text)
    return number(float(text))


def plain(value: Any) -> Any:
    """The value as Go's JSON writes it: floats without a fraction below 1e21 as integers."""
    kind = type(value)
    if kind is dict:
        return {name: plain(inner) for name, inner in value.items()}
    if kind is list:
        return [plain(inner) for inner in value]
    return json_float(value) if kind is float else value
