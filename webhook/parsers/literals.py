"""Words that Go's ``strconv`` takes for numbers and booleans, as INI and HOCON values are asked."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from webhook.parsers import numbers

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
    """The number or boolean that a text writes; the text where it writes none."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return numbers.number(value) if math.isfinite(value) else text
    if _HEXADECIMAL.fullmatch(text):
        return numbers.number(float.fromhex(text.replace("_", "")))
    return _BOOLEANS.get(text, text)
