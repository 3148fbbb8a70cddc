"""Stage 1: scalars and variables: the terms of one token or two."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from webhook.api.names import LONE_SURROGATE
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import Number, String, Var
from webhook.rego.syntax.magnitude import fault_of_number

if TYPE_CHECKING:
    from webhook.rego.syntax.cursor import Cursor


class ScalarParser:
    """Reads names, numbers and strings."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def variable(self, i: int) -> Var:
        """Returns the variable for the name at ``i``; each ``_`` is a new variable."""
        cursor = self.cursor
        name = cursor.texts[i]
        if name == "_":
            name = f"${cursor.wildcards}"
            cursor.wildcards += 1
        return Var(name, location=cursor.at(i))

    def number(self, prefix: str, first: int) -> Number:
        """The number at the current token; ``prefix`` is the sign that stood at ``first``."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.NUMBER:
            cursor.i += 1
            prefix += "."
            if cursor.kinds[cursor.i] != t.NUMBER:
                cursor.illegal("expected number")
        digits = cursor.texts[cursor.i]
        if not prefix.endswith(".") and digits[0] == "0" and digits[1:2].isdigit():
            cursor.illegal("expected number without leading zero")
        if prefix.endswith(".") and "." in digits:
            cursor.illegal("expected number")
        fault = fault_of_number(prefix + digits)
        if fault == "number too big":
            cursor.refuse(fault)
        elif fault:
            cursor.illegal(fault)
        cursor.i += 1
        return Number(prefix + digits, location=cursor.since(cursor.starts[first]))

    def string(self, i: int, kind: int) -> String:
        """Returns the string that the token at ``i`` is."""
        cursor = self.cursor
        written = cursor.texts[i]
        if kind == t.RAW_STRING:
            return String(written[1:-1], raw=True, location=cursor.at(i))
        if "\\" not in written:
            return String(written[1:-1], location=cursor.at(i))
        return String(self.unescape(written, i, "string literal"), location=cursor.at(i))

    def unescape(self, written: str, i: int, noun: str) -> str:
        """Returns a quoted text decoded; ``noun`` names it where it cannot be."""
        cursor = self.cursor
        try:
            decoded: str = json.loads(written)
        except ValueError:
            cursor.refuse(f"illegal {noun}: {written}", cursor.at(i))
        # Half a pair of surrogates is no character: like OPA, which decodes as Go does.
        return LONE_SURROGATE.sub("\ufffd", decoded)


def without_brace_escapes(text: str) -> str:
    r"""Returns template text without the backslash of each ``\{``.

    In ``\\{`` the brace is not escaped.
    """
    return re.sub(r"\\(.)", lambda match: "{" if match[1] == "{" else match[0], text)
