"""Parses JMESPath, as Kyverno reads it (https://jmespath.org/specification.html).

Nested variables of Kyverno, ``'{{ … }}'`` within an expression, are texts of several parts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.kyverno.patterns import Unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class QueryNode(NamedTuple):
    """A node of an expression: its kind, its value, and its parts."""

    kind: str
    value: Any = None
    parts: tuple[QueryNode, ...] = ()


CURRENT: Final = QueryNode("current")
_VARIABLE: Final = re.compile(r"\{\{-?((?:\{[^{}]*\}|[^{}])*)\}\}")
"""A variable without variables inside."""

_TOKEN: Final = re.compile(
    r"\s+|(?P<name>[A-Za-z_]\w*)|(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<raw>'(?:[^'\\]|\\.)*')"
    r"|(?P<json>`(?:[^`\\]|\\.)*`)|(?P<number>-?[0-9]+)"
    r"|(?P<mark>\[\]|\[\?|\|\||&&|==|!=|<=|>=|[.\[\]{}()*@,:|<>!&])"
)
_BINDS: Final = {
    "|": 1,
    "||": 2,
    "&&": 3,
    "==": 5,
    "!=": 5,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "[]": 9,
    "*": 20,
    "[?": 21,
    ".": 40,
    "!": 45,
    "[": 55,
    "(": 60,
}
_PROJECTION: Final = 10
"""The binding power below which an operator ends a projection."""

_DEPTH_MAX: Final = 60
_PLACE: Final = re.compile("\x00([0-9]+)\x00")


class _Token(NamedTuple):
    kind: str
    text: str


def variables_of(text: str) -> list[str | QueryNode]:
    """Splits a text into literal pieces and variables, which are parsed.

    Variables may be nested in the texts of others. Raises
    :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    inner: list[QueryNode] = []

    def placed(match: re.Match[str]) -> str:
        inner.append(parsed(match[1], inner))
        return f"\x00{len(inner) - 1}\x00"

    reached = 1
    while reached:
        text, reached = _VARIABLE.subn(placed, text)
    pieces = _PLACE.split(text)
    return [
        inner[int(piece)] if at % 2 else piece for at, piece in enumerate(pieces) if piece or at % 2
    ]


def parsed(text: str, inner: Sequence[QueryNode] = ()) -> QueryNode:
    """Parses an expression; raises :class:`~webhook.kyverno.patterns.Unwritable`.

    ``inner`` are the variables nested in its texts, by their indexes.
    """
    parser = _Parser(text, _tokens(text), inner)
    node = parser.expression(0)
    if parser.here().kind != "end":
        raise Unwritable(f"JMESPath {text.strip()}: {parser.here().text} is not expected")
    return node


def _tokens(text: str) -> list[_Token]:
    reached, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unwritable(f"JMESPath {text.strip()}: it cannot be read at {text[at:]}")
        at = match.end()
        if match.lastgroup is not None:
            reached.append(_Token(match.lastgroup, match[0]))
    return [*reached, _Token("end", "its end")]


class _Parser:
    def __init__(self, text: str, tokens: list[_Token], inner: Sequence[QueryNode]) -> None:
        self._text = text.strip()
        self._tokens = tokens
        self._inner = inner
        self._at = 0
        self._depth = 0

    def here(self) -> _Token:
        return self._tokens[self._at]

    def expression(self, binds: int) -> QueryNode:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise Unwritable(f"JMESPath {self._text}: it is nested too deeply")
        node = self._first(self._next())
        while self.here().kind == "mark" and binds < _BINDS.get(self.here().text, 0):
            node = self._then(node, self._next().text)
        self._depth -= 1
        return node

    def _next(self) -> _Token:
        token = self.here()
        self._at += token.kind != "end"
        return token

    def _expect(self, text: str) -> None:
        if (token := self._next()).text != text or token.kind != "mark":
            raise Unwritable(f"JMESPath {self._text}: {text} is expected, not {token.text}")

    def _first(self, token: _Token) -> QueryNode:
        """Parses an expression that begins with a token."""
        if token.kind == "name":
            if self.here().text == "(" and self.here().kind == "mark":
                self._next()
                return QueryNode("call", token.text, self._until(")", self._argument))
            return QueryNode("field", token.text)
        if token.kind in {"quoted", "raw", "json"}:
            return self._literal(token)
        starts: dict[str, Callable[[], QueryNode]] = {
            "@": lambda: CURRENT,
            "*": lambda: QueryNode("values", None, (CURRENT, self._projected(20))),
            "[": lambda: self._bracket(CURRENT),
            "[]": lambda: QueryNode(
                "project", None, (QueryNode("flatten", None, (CURRENT,)), self._rest())
            ),
            "[?": lambda: self._filter(CURRENT),
            "!": lambda: QueryNode("not", None, (self.expression(45),)),
            "(": self._grouped,
            "{": lambda: QueryNode("hash", None, self._until("}", self._pair)),
        }
        if token.kind != "mark" or token.text not in starts:
            raise Unwritable(f"JMESPath {self._text}: {token.text} is not expected")
        return starts[token.text]()

    def _then(self, left: QueryNode, mark: str) -> QueryNode:
        """Parses the part after ``left`` that begins with a mark."""
        if mark == ".":
            if self.here().text == "*":
                self._next()
                return QueryNode("values", None, (left, self._projected(40)))
            return QueryNode("sub", None, (left, self._after_dot(40)))
        if mark in {"|", "||", "&&"}:
            kind = {"|": "pipe", "||": "or", "&&": "and"}[mark]
            return QueryNode(kind, None, (left, self.expression(_BINDS[mark])))
        if mark == "[]":
            return QueryNode("project", None, (QueryNode("flatten", None, (left,)), self._rest()))
        if mark == "[?":
            return self._filter(left)
        if mark == "[":
            return self._bracket(left)
        if mark in {"==", "!=", "<", "<=", ">", ">="}:
            return QueryNode("compare", mark, (left, self.expression(5)))
        raise Unwritable(f"JMESPath {self._text}: {mark} is not expected")

    def _literal(self, token: _Token) -> QueryNode:
        if token.kind == "quoted":
            return QueryNode("field", self._name(token.text))
        if token.kind == "raw":
            text = token.text[1:-1].replace("\\'", "'")
            pieces = _PLACE.split(text)
            if len(pieces) == 1:
                return QueryNode("literal", text)
            parts = [
                self._inner[int(piece)] if at % 2 else QueryNode("literal", piece)
                for at, piece in enumerate(pieces)
            ]
            return QueryNode(
                "text", None, tuple(part for part in parts if part != QueryNode("literal", ""))
            )
        text = token.text[1:-1].replace("\\`", "`")
        if _PLACE.search(text):
            raise Unwritable(f"JMESPath {self._text}: a variable within a literal")
        try:
            return QueryNode("literal", json.loads(text))
        except json.JSONDecodeError:
            raise Unwritable(f"JMESPath {self._text}: `{text}` is not JSON") from None

    def _name(self, quoted: str) -> str:
        try:
            return str(json.loads(quoted))
        except json.JSONDecodeError:
            raise Unwritable(f"JMESPath {self._text}: {quoted} is no name in quotes") from None

    def _grouped(self) -> QueryNode:
        node = self.expression(0)
        self._expect(")")
        return node

    def _until(self, end: str, read: Callable[[], QueryNode]) -> tuple[QueryNode, ...]:
        """Parses parts separated by commas, up to a closing mark."""
        parts: list[QueryNode] = []
        while self.here().text != end or self.here().kind != "mark":
            parts.append(read())
            if self.here().text != end:
                self._expect(",")
        self._next()
        return tuple(parts)

    def _argument(self) -> QueryNode:
        if self.here().text == "&" and self.here().kind == "mark":
            self._next()
            return QueryNode("reference", None, (self.expression(0),))
        return self.expression(0)

    def _pair(self) -> QueryNode:
        name = self._next()
        self._expect(":")
        text = self._name(name.text) if name.kind == "quoted" else name.text
        return QueryNode("pair", text, (self.expression(0),))

    def _bracket(self, left: QueryNode) -> QueryNode:
        """Parses an index, a projection, or a list of expressions."""
        token = self.here()
        if token.kind == "number":
            self._next()
            self._expect("]")
            return QueryNode("index", int(token.text), (left,))
        if token.text == "*" and self._tokens[self._at + 1].text == "]":
            self._at += 2
            return QueryNode("project", None, (left, self._rest()))
        if token.text == ":":
            raise Unwritable(f"JMESPath {self._text}: a slice of a list")
        if left is not CURRENT:
            raise Unwritable(f"JMESPath {self._text}: {token.text} is not expected")
        return QueryNode("list", None, self._until("]", lambda: self.expression(0)))

    def _filter(self, left: QueryNode) -> QueryNode:
        condition = self.expression(0)
        self._expect("]")
        return QueryNode("filter", None, (left, condition, self._rest(21)))

    def _rest(self, binds: int = 9) -> QueryNode:
        return self._projected(binds)

    def _projected(self, binds: int) -> QueryNode:
        """Parses the part of a projection that is applied to each item."""
        token = self.here()
        if token.kind == "mark" and token.text == ".":
            self._next()
            if self.here().text == "*":
                self._next()
                return QueryNode("values", None, (CURRENT, self._projected(20)))
            return self._after_dot(binds)
        if token.kind == "mark" and token.text in {"[", "[?"}:
            return self.expression(binds)
        if token.kind == "mark" and _BINDS.get(token.text, 0) >= _PROJECTION:
            raise Unwritable(f"JMESPath {self._text}: {token.text} is not expected")
        return CURRENT

    def _after_dot(self, binds: int) -> QueryNode:
        token = self.here()
        if token.kind in {"name", "quoted"}:
            return self.expression(binds)
        if token.kind == "mark" and token.text == "[":
            self._next()
            return QueryNode("list", None, self._until("]", lambda: self.expression(0)))
        if token.kind == "mark" and token.text == "{":
            self._next()
            return QueryNode("hash", None, self._until("}", self._pair))
        raise Unwritable(f"JMESPath {self._text}: {token.text} is not expected after a dot")
