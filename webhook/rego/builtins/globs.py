"""Built-ins on globs, in the syntax of github.com/gobwas/glob.

Documented in OPA's reference under "Glob"; behaviour from v1/topdown/glob.go. A
glob is turned into a regular expression for the whole string: ``*`` and ``?``
stop at delimiters, ``**`` does not, ``{a,b}`` are alternatives, ``[a-z]``,
``[abc]`` and ``[!abc]`` are classes, which hold delimiters too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from webhook.golang.strings import utf8
from webhook.rego.builtins.registry import Context, builtin, wrong_element, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import Pattern, pattern, quote_meta
from webhook.rego.types import BOOLEAN, NULL, STRING, any_of, array_of

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

# gobwas/glob: the characters that QuoteMeta escapes.
_SPECIAL: Final = re.compile(r"[*?\\\[\]{}]")


@builtin("glob.quote_meta", STRING, result=STRING)
def quote_meta_(pattern_: str) -> str:
    """Returns a glob that matches exactly this string."""
    return _SPECIAL.sub(lambda special: "\\" + special[0], pattern_)


@builtin(
    "glob.match",
    STRING,
    any_of(NULL, array_of(STRING)),
    STRING,
    result=BOOLEAN,
    context=True,
    check=False,
)
def match(context: Context, pattern_: Value, delimiters: Value, value: Value) -> bool:
    """Returns whether the glob matches the whole string; null is no delimiter, ``[]`` the dot."""
    if type(pattern_) is not str:
        wrong_operand(1, pattern_, "string")
    stops = ""
    if type(delimiters) is list:
        for item in delimiters:
            if type(item) is not str:
                wrong_element(2, delimiters, item, "string")
            if len(item) != 1:
                wrong_element(2, delimiters, item, "rune")
        stops = "".join(delimiters) or "."
    elif delimiters is not None:
        wrong_operand(2, delimiters, "array", "null")
    if type(value) is not str:
        wrong_operand(3, value, "string")
    glob = compiled(pattern_, stops)
    context.charge(1 + len(value) // 16 + glob.steps_in(len(value)))
    return glob.found_in(value)


@lru_cache(maxsize=512)
def compiled(glob: str, delimiters: str) -> Pattern:
    """Compiles the glob to a pattern; raises BuiltinError with gobwas/glob's message."""
    body = _Translation(glob, delimiters).run()
    return pattern(f"^{body}$")


def _escaped(characters: str) -> str:
    """Escapes characters with a meaning in a class of a regular expression."""
    return re.sub(r"[\\\]\[^\-]", lambda special: "\\" + special[0], characters)


def _class(characters: str, *, negated: bool = False) -> str:
    return f"[{'^' if negated else ''}{_escaped(characters)}]"


class _Translation:
    """Translates a glob into the regular expression for a whole string, in one pass."""

    def __init__(self, glob: str, delimiters: str) -> None:
        self.glob = glob
        self.at = 0
        """The offset of the next character."""
        self.one = (
            _class("".join(dict.fromkeys(delimiters)), negated=True) if delimiters else "(?s:.)"
        )
        """Matches a character that is no delimiter."""
        self.level = 0
        """The number of open braces."""

    def error(self, reason: str) -> BuiltinError:
        place = len(utf8(self.glob[: self.at]))
        return BuiltinError(f"glob: syntax error at {place}: {reason}")

    def run(self) -> str:
        parts: list[str] = []
        glob = self.glob
        while self.at < len(glob):
            character = glob[self.at]
            self.at += 1
            if character == "*":
                if glob.startswith("*", self.at):
                    self.at += 1
                    parts.append("(?s:.)*")
                else:
                    parts.append(f"{self.one}*")
            elif character == "?":
                parts.append(self.one)
            elif character == "[":
                parts.append(self.range())
            elif character == "{":
                self.level += 1
                parts.append("(?:")
            elif character == "}" and self.level:
                self.level -= 1
                parts.append(")")
            elif character == "," and self.level:
                parts.append("|")
            elif character == "\\":
                parts.append(quote_meta(self.escaped()))
            else:
                parts.append(quote_meta(character))
        if self.level:
            raise self.error("unclosed `{`")
        return "".join(parts)

    def escaped(self) -> str:
        """Reads the character behind a backslash."""
        if self.at == len(self.glob):
            raise self.error("trailing backslash")
        self.at += 1
        return self.glob[self.at - 1]

    def read(self) -> str:
        """Reads a character of a class."""
        if self.at == len(self.glob):
            raise self.error("unexpected end of input")
        self.at += 1
        return self.glob[self.at - 1]

    def range(self) -> str:
        """Reads a class after its opening bracket: ``a-z``, or single characters."""
        negated = False
        first = self.read()
        if first == "!":
            negated = True
            first = self.read()
        if self.glob.startswith("-", self.at):
            self.at += 1
            high = self.read()
            if self.read() != "]":
                raise self.error("expected close range character")
            if high < first:
                raise self.error("range hi character is less than lo")
            return f"[{'^' if negated else ''}{_escaped(first)}-{_escaped(high)}]"
        self.at -= 1
        members: list[str] = []
        while self.at < len(self.glob) and self.glob[self.at] != "]":
            self.at += 1
            character = self.glob[self.at - 1]
            members.append(self.escaped() if character == "\\" else character)
        if self.at == len(self.glob):
            raise self.error("unexpected end of input")
        self.at += 1
        if not members:
            raise self.error("could not parse range")
        return _class("".join(dict.fromkeys(members)), negated=negated)
