"""Locations: ``spec.containers[name: *].image`` and other paths of mutators and path tests.

A location has fields with ``.`` between them, each of which may be followed by a list item: ``[key:
value]`` or ``[key: *]`` for all. Names are ASCII or quoted; the grammar is Gatekeeper's
(pkg/mutation/path), and so are the beginnings of the messages.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from webhook.api.encoding import encode
from webhook.mutation.errors import InvalidMutator

NODES_MAX: Final = 128
"""Nodes of a location. An object nests less deeply; applying is recursive, two calls a node."""

INTEGER_MAX: Final = 2**63 - 1

_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<int>[0-9]+)
      | (?P<name>[A-Za-z0-9_-]+)
      | (?P<mark>[.\[\]:*])
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | (?P<end>\Z)
      | (?P<wrong>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.|\Z)", re.DOTALL)
_TO_QUOTE: Final = re.compile(r"""['"\t\n \\*\[\]:.]|\A[0-9]""")


class Field(NamedTuple):
    """A field of an object."""

    name: str

    def __str__(self) -> str:
        return _quoted(self.name)


class ListItem(NamedTuple):
    """The items of a list whose field ``key`` is ``value``; all items if it is None."""

    key: str
    value: str | int | None

    def __str__(self) -> str:
        value = self.value
        text = "*" if value is None else str(value) if type(value) is int else _quoted(str(value))
        return f"[{_quoted(self.key)}: {text}]"


_TOKENS: Final = {
    ".": "SEPARATOR",
    "[": "LBRACKET",
    "]": "RBRACKET",
    "*": "GLOB",
    ":": "COLON",
    "name": "IDENT",
    "int": "INT",
    "end": "EOF",
    "wrong": "ERROR",
}
"""The names of tokens in messages, by character or kind."""

Node = Field | ListItem
Location = tuple[Node, ...]


def canonical(location: Location) -> str:
    """Returns the location in Gatekeeper's own spelling, which its messages carry."""
    text = ""
    for number, node in enumerate(location):
        text += "." if number and type(node) is Field else ""
        text += str(node)
    return text


def quoted(text: str) -> str:
    """Returns a text as Gatekeeper's messages quote it."""
    return encode(text).decode()


def parse(text: str) -> Location:
    """Parses a location; an empty location has no nodes.

    Raises :class:`InvalidMutator`.
    """
    return _Parser(text).parse()


class _Token(NamedTuple):
    kind: str
    text: str


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._token = self._scan()

    def parse(self) -> Location:
        nodes: list[Node] = []
        while self._token.kind == "name":
            nodes.append(Field(self._take().text))
            if self._accept("["):
                nodes.append(self._item())
            if self._accept("."):
                if self._token.kind == "end":
                    raise InvalidMutator("trailing separators are forbidden")
            elif self._token.kind != "end":
                raise self._unexpected("'.' or eof")
        if self._token.kind != "end":
            raise self._unexpected("field name or eof")
        if len(nodes) > NODES_MAX:
            raise InvalidMutator(f"a location has at most {NODES_MAX} nodes, got {len(nodes)}")
        return tuple(nodes)

    def _item(self) -> ListItem:
        if self._token.kind != "name":
            raise self._unexpected("keyField in listSpec")
        key = self._take().text
        if not self._accept(":"):
            raise self._unexpected(f"':' following keyField {key}")
        value: str | int | None
        if self._accept("*"):
            value = None
        elif self._token.kind == "name":
            value = self._take().text
        elif self._token.kind == "int":
            value = self._integer(key)
        else:
            raise self._unexpected("key value or glob in listSpec")
        if not self._accept("]"):
            raise self._unexpected("']' following listSpec")
        return ListItem(key, value)

    def _integer(self, key: str) -> int:
        digits = self._take().text.lstrip("0") or "0"
        # Of longer ones Python reads no number at all.
        if len(digits) > len(str(INTEGER_MAX)) or int(digits) > INTEGER_MAX:
            raise InvalidMutator(
                f"invalid integer: overflow in integer string: {digits[:32]}: "
                f"parsing key value for key: {key}"
            )
        return int(digits)

    def _take(self) -> _Token:
        token, self._token = self._token, self._scan()
        return token

    def _accept(self, mark: str) -> bool:
        if self._token.kind != mark:
            return False
        self._take()
        return True

    def _scan(self) -> _Token:
        match = _TOKEN.match(self._text, self._position)
        assert match is not None  # The group "wrong" matches every other character.
        self._position = match.end()
        kind, text = match.lastgroup or "", match[match.lastgroup or 0]
        if kind in ("double", "single"):
            return _Token("name", _ESCAPED.sub(r"\1", text))
        if kind == "wrong" and text in "\"'":  # A quote that nothing ends: the rest is in it.
            text = _ESCAPED.sub(r"\1", self._text[self._position :])
            self._position = len(self._text)
        return _Token(text if kind == "mark" else kind, text)

    def _unexpected(self, expected: str) -> InvalidMutator:
        token = self._token
        got = f"{_TOKENS[token.kind]}: {quoted(token.text)}"
        return InvalidMutator(f"unexpected token: expected {expected}, got: {got}")


def _quoted(name: str) -> str:
    if name and not _TO_QUOTE.search(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
