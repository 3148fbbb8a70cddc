"""JSON that nests deeper than orjson goes: decoded and encoded without recursion.

The API server takes documents of 10,000 levels (Go's own limit), so what it has
stored may be as deep: the history in ``managedFields``, a field of a custom
resource that keeps everything. orjson ends at 1,024 levels when it decodes and at
254 when it encodes. What is here is some thirty times slower, and for nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTH_MAX: Final = 10_016
"""Levels: the 10,000 that Go's decoder takes of an object, and some for what it is sent in (a
review, a list, an event of a watch)."""

_TOKEN: Final = re.compile(
    r"""[ \t\n\r]*(?:"((?:[^"\\\x00-\x1f]|\\.)*)"|([{}\[\],:])|([^ \t\n\r{}\[\],:"]+))"""
)
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_NOTHING: Final = object()
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")

_SCALARS: Final = {"true": True, "false": False, "null": None}

# What may come next, while decoding.
_VALUE, _FIRST_ITEM, _FIRST_KEY, _KEY, _COLON, _MORE, _END = range(7)


def loads(raw: bytes) -> Any:
    """Decode a document; integers are exact. Raises :class:`ValueError`, which says where."""
    text = raw.decode()
    decoding = _Decoding()
    for found in _tokens(text):
        string, mark, word = found.groups()
        position = found.start(found.lastindex or 0)
        if mark is not None:
            decoding.mark(mark, position)
        elif string is not None:
            decoding.string(_string(string, position), position)
        else:
            decoding.value(_word(word, position), position)
    if decoding.state != _END:
        raise _error("unexpected end of data", len(text))
    return decoding.root


class _Decoding:
    """A document as far as it has been read."""

    __slots__ = ("keys", "open", "root", "state")

    def __init__(self) -> None:
        self.state = _VALUE
        self.root: Any = None
        self.open: list[Any] = []
        self.keys: list[str] = []

    def string(self, text: str, position: int) -> None:
        """A string: a key, or a value."""
        if self.state in (_FIRST_KEY, _KEY):
            self.keys.append(text)
            self.state = _COLON
        else:
            self.value(text, position)

    def value(self, value: Any, position: int) -> None:
        """A value that is whole."""
        if self.state not in (_VALUE, _FIRST_ITEM):
            raise _error("unexpected value", position)
        self._put(value)

    def mark(self, mark: str, position: int) -> None:
        """A mark between values, or one that begins or ends an object or array."""
        state = self.state
        if mark in "{[" and state in (_VALUE, _FIRST_ITEM):
            if len(self.open) == DEPTH_MAX:
                raise _error(f"nested deeper than {DEPTH_MAX} levels", position)
            self.open.append({} if mark == "{" else [])
            self.state = _FIRST_KEY if mark == "{" else _FIRST_ITEM
        elif mark == ":" and state == _COLON:
            self.state = _VALUE
        elif mark == "," and state == _MORE:
            self.state = _KEY if type(self.open[-1]) is dict else _VALUE
        elif self._ends(mark):
            self._put(self.open.pop())
        else:
            raise _error(f"unexpected {mark}", position)

    def _ends(self, mark: str) -> bool:
        """Whether this mark ends what was opened last, here."""
        if not self.open or self.state not in (_MORE, _FIRST_KEY, _FIRST_ITEM):
            return False
        return mark == ("}" if type(self.open[-1]) is dict else "]")

    def _put(self, value: Any) -> None:
        self.state = _MORE
        if not self.open:
            self.root, self.state = value, _END
        elif type(self.open[-1]) is dict:
            self.open[-1][self.keys.pop()] = value
        else:
            self.open[-1].append(value)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    position, end = 0, len(text)
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            blank = _BLANK.match(text, position)
            at = blank.end() if blank else position
            if at == end:
                return
            raise _error("a string that does not end, or holds a control character", at)
        yield found
        position = found.end()


def _string(text: str, position: int) -> str:
    if "\\" not in text:
        return text
    return str(_small(f'"{text}"', position))


def _word(text: str, position: int) -> Any:
    if text in _SCALARS:
        return _SCALARS[text]
    if len(text) > 18 and _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # more digits than Python converts
            raise _error("number is infinity", position) from None
    return _small(text, position)


def _small(text: str, position: int) -> Any:
    """A string or number as orjson has it."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _error(str(error).partition(":")[0], position) from None


def _error(what: str, position: int) -> ValueError:
    return ValueError(f"{what}: char {position}")


def dumps(value: Any, scalar: Callable[[Any], bytes], *, sort_keys: bool = False) -> bytes:
    """Encode a value of any depth; ``scalar`` encodes what is neither object nor array."""
    parts: list[bytes] = []
    # Of each open object or array: what is left of it, and what ends it.
    open_: list[tuple[Iterator[Any], bytes]] = []
    separator = b""
    item: Any = value
    following: Any
    while True:
        parts.append(separator)
        if type(item) is dict:
            members = sorted(item.items()) if sort_keys else item.items()
            parts.append(b"{")
            open_.append((iter(members), b"}"))
            separator = b""
        elif type(item) is list or type(item) is tuple:
            parts.append(b"[")
            open_.append((iter(item), b"]"))
            separator = b""
        else:
            parts.append(scalar(item))
            separator = b","
        while open_:
            left, end = open_[-1]
            following = next(left, _NOTHING)
            if following is not _NOTHING:
                break
            open_.pop()
            parts.append(end)
            separator = b","
        else:
            return b"".join(parts)
        if end == b"}":
            name: Any = following[0]
            item = following[1]
            if type(name) is not str:
                raise TypeError("Dict key must be str")
            parts += (separator, scalar(name), b":")
            separator = b""
        else:
            item = following
