"""The tokens of Go's text/template: text, and the parts of actions between braces."""

from __future__ import annotations

import re
from typing import Final

from webhook.golang.strings import quote
from webhook.values import dataclass


class TemplateError(ValueError):
    """The template cannot be parsed or executed; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its position; lines from 1, columns from 0."""

    kind: str
    text: str
    line: int
    column: int


_INSIDE: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+) | (?P<declare>:=) | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<raw>`[^`]*`) | (?P<char>'(?:[^'\\\n]|\\[^\n])*') | (?P<variable>\$\w*)
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+
        |(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?)(?!\w))
    | (?P<field>\.\w+) | (?P<dot>\.) | (?P<name>\w+) | (?P<sign>[=|(),])""",
    re.VERBOSE,
)
_SPACES: Final = " \t\r\n"
KEYWORDS: Final = frozenset(
    [
        "block",
        "break",
        "continue",
        "define",
        "else",
        "end",
        "if",
        "nil",
        "range",
        "template",
        "with",
    ]
)
_TERMINATORS: Final = frozenset(" \t\r\n.,|:)(")


class _Lexer:
    """Splits a template into text, and the parts of actions between delimiters."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.tokens: list[Token] = []

    def error(self, message: str) -> TemplateError:
        line = self.source.count("\n", 0, self.at) + 1
        return TemplateError(f"template: template:{line}: {message}")

    def add(self, kind: str, text: str, at: int) -> None:
        line = self.source.count("\n", 0, at) + 1
        column = at - (self.source.rfind("\n", 0, at) + 1)
        self.tokens.append(Token(kind, text, line, column))

    def run(self) -> list[Token]:
        source = self.source
        while self.at < len(source):
            opening = source.find("{{", self.at)
            text = source[self.at :] if opening < 0 else source[self.at : opening]
            trims = opening >= 0 and source[opening + 2 : opening + 3] == "-"
            trims = trims and source[opening + 3 : opening + 4] in set(_SPACES) - {""}
            shown = text.rstrip(_SPACES) if trims else text
            if shown:
                self.add("text", shown, self.at)
            if opening < 0:
                self.at = len(source)
                break
            self.at = opening + 2 + (2 if trims else 0)
            if source.startswith("/*", self.at):
                self.comment()
            else:
                self.action(opening)
        self.add("end of file", "", len(source))
        return self.tokens

    def comment(self) -> None:
        closing = self.source.find("*/", self.at + 2)
        if closing < 0:
            raise self.error("unclosed comment")
        self.at = closing + 2
        if not self.close():
            raise self.error("comment ends before closing delimiter")

    def close(self) -> bool:
        """Skips a right delimiter, if it is next; returns whether it was."""
        trim = re.compile(r"[ \t\r\n]-\}\}").match(self.source, self.at)
        if trim:
            self.at = trim.end()
            rest = self.source[self.at :]
            self.at += len(rest) - len(rest.lstrip(_SPACES))
            return True
        if self.source.startswith("}}", self.at):
            self.at += 2
            return True
        return False

    def action(self, opening: int) -> None:
        self.add("open", "{{", opening)
        depth = 0
        while True:
            start = self.at
            if self.close():
                if depth:
                    raise self.error("unclosed left paren")
                self.add("close", "}}", start)
                return
            match = _INSIDE.match(self.source, self.at)
            if match is None:
                raise self.fault()
            kind, text = match.lastgroup or "", match[0]
            if kind == "space" and re.compile(r"[ \t\r\n]-\}\}").match(
                self.source, match.end() - 1
            ):
                text = text[:-1]
                if not text:
                    continue
            self.at += len(text)
            if kind in {"field", "variable", "name"} and not self.terminated():
                raise self.error(f"bad character {_shown(self.source[self.at])}")
            depth += {"(": 1, ")": -1}.get(text, 0) if kind == "sign" else 0
            if depth < 0:
                raise self.error("unexpected right paren")
            if kind == "sign":
                kind = text
            elif kind == "name":
                kind = text if text in KEYWORDS else "bool" if text in {"true", "false"} else kind
            self.add(kind, text, start)

    def terminated(self) -> bool:
        rest = self.source[self.at : self.at + 1]
        return not rest or rest in _TERMINATORS or self.source.startswith("}}", self.at)

    def fault(self) -> TemplateError:
        rest = self.source[self.at : self.at + 1]
        if not rest:
            return self.error("unclosed action")
        if rest in "\"`'":
            kind = {'"': "quoted string", "`": "raw quoted string", "'": "character constant"}
            return self.error(f"unterminated {kind[rest]}")
        if rest == ":":
            return self.error("expected :=")
        if rest in "+-0123456789":
            word = re.compile(r"[+\-.\w]+").match(self.source, self.at)
            return self.error(f"bad number syntax: {quote(word[0] if word else rest)}")
        if "!" <= rest <= "~":
            return self.error(f"unexpected {quote(rest)} in operand")
        return self.error(f"unrecognized character in action: {_shown(rest)}")


def _shown(character: str) -> str:
    shown = f" '{character}'" if character.isprintable() else ""
    return f"U+{ord(character):04X}{shown}"


def tokens(source: str) -> list[Token]:
    """Returns the tokens, the last one ``end of file``. Raises :class:`TemplateError`."""
    return _Lexer(source).run()
