"""Splits an expression into tokens, by one regular expression with a group for each kind.

The order of its groups matters: ``b"x"`` is bytes and no name, ``1.5`` a double and no int.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from webhook.cel.errors import Problem
from webhook.cel.syntax.ast import place_of


class Token(NamedTuple):
    """A token; ``at`` is its offset in code points."""

    kind: str
    text: str
    at: int


_ESCAPED: Final = (
    r"\\(?:[abfnrtv\"'`\\?]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
)
_STRING: Final = (
    rf'(?:"""(?:[^\\]|{_ESCAPED})*?"""|\'\'\'(?:[^\\]|{_ESCAPED})*?\'\'\''
    rf'|"(?:[^"\\\n\r]|{_ESCAPED})*"|\'(?:[^\'\\\n\r]|{_ESCAPED})*\')'
)
_RAW: Final = r'[rR](?:"""(?s:.)*?"""|\'\'\'(?s:.)*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
_TOKEN: Final = re.compile(
    rf"""
      (?P<SPACE>[\t \r\n\f]+ | //[^\n]*)
    | (?P<BYTES>[bB](?:{_RAW}|{_STRING}))
    | (?P<STRING>{_RAW}|{_STRING})
    | (?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<INT>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<QUOTED>`[A-Za-z0-9_.\-/\ ]+`)
    | (?P<OP>==|!=|<=|>=|&&|\|\||[<>+\-*/%!?:.,()\[\]{{}}])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


_INCOMPLETE: Final = re.compile(
    rf"""
      (?P<quote>["'])(?:(?!(?P=quote))[^\\\n\r]|{_ESCAPED})*
        (?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
    | `[A-Za-z0-9_.\-/\ ]*
    | [=&|]
    """,
    re.VERBOSE | re.ASCII,
)
"""The beginning of a token."""


_SPACE: Final = re.compile(r"(?:[\t \r\n\f]|//[^\n]*)*")


def space_before(gap: str) -> str:
    """Returns the spaces and comments between two tokens, without a text that is no token."""
    return _SPACE.match(gap)[0]  # type: ignore[index]  # it matches the empty text


def tokens_of(source: str) -> tuple[list[Token], list[Problem]]:
    """Returns the tokens, the last of kind END, and a problem for each text that is no token."""
    tokens: list[Token] = []
    problems: list[Problem] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            end = _bad_until(source, at)
            text = f"Syntax error: token recognition error at: '{source[at:end]}'"
            problems.append(Problem(*place_of(source, at), text))
            at = end
            continue
        if match.lastgroup != "SPACE":
            tokens.append(Token(match.lastgroup or "", match[0], at))
        at = match.end()
    tokens.append(Token("END", "<EOF>", len(source)))
    return tokens, problems


def _bad_until(source: str, at: int) -> int:
    """Returns the end of a text that is no token.

    As in ANTLR, the first character that continues no token belongs to it.
    """
    incomplete = _INCOMPLETE.match(source, at)
    return min((incomplete.end() if incomplete else at) + 1, len(source))
