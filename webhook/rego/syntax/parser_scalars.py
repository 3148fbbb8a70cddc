"""Stage 1: scalars and variables: the terms of one token or two."""

from __future__ import annotations

import json
import re

from webhook.api.patterns import LONE_SURROGATE
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import Number, String, Var
from webhook.rego.syntax.magnitude import fault_of_number
from webhook.rego.syntax.parser_state import State


class Scalars(State):
    """The part of the parser that reads names, numbers and strings."""

    def variable(self, i: int) -> Var:
        """The variable that the name at ``i`` stands for; each ``_`` is one of its own."""
        name = self.texts[i]
        if name == "_":
            name = f"${self.wildcards}"
            self.wildcards += 1
        return Var(name, location=self.at(i))

    def number(self, prefix: str, first: int) -> Number:
        """The number at the current token; ``prefix`` is the sign that stood at ``first``."""
        if self.kinds[self.i] != t.NUMBER:
            self.i += 1
            prefix += "."
            if self.kinds[self.i] != t.NUMBER:
                self.illegal("expected number")
        digits = self.texts[self.i]
        if not prefix.endswith(".") and digits[0] == "0" and digits[1:2].isdigit():
            self.illegal("expected number without leading zero")
        if prefix.endswith(".") and "." in digits:
            self.illegal("expected number")
        fault = fault_of_number(prefix + digits)
        if fault == "number too big":
            self.refuse(fault)
        elif fault:
            self.illegal(fault)
        self.i += 1
        return Number(prefix + digits, location=self.since(self.starts[first]))

    def string(self, i: int, kind: int) -> String:
        """The string that the token at ``i`` is."""
        written = self.texts[i]
        if kind == t.RAW_STRING:
            return String(written[1:-1], raw=True, location=self.at(i))
        if "\\" not in written:
            return String(written[1:-1], location=self.at(i))
        return String(self.unescape(written, i, "string literal"), location=self.at(i))

    def unescape(self, written: str, i: int, what: str) -> str:
        """A quoted text decoded; ``what`` names it where it cannot be."""
        try:
            decoded: str = json.loads(written)
        except ValueError:
            self.refuse(f"illegal {what}: {written}", self.at(i))
        # Half a pair of surrogates is no character: like OPA, which decodes as Go does.
        return LONE_SURROGATE.sub("\ufffd", decoded)


def without_brace_escapes(text: str) -> str:
    r"""Template text without the backslash of each ``\{``; ``\\{`` has none."""
    return re.sub(r"\\(.)", lambda match: "{" if match[1] == "{" else match[0], text)
