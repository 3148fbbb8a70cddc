"""A JSON decoder in pieces: as deep as Go's decoder, with exact integers.

orjson decodes 1,024 levels in one call without other threads, and turns integers beyond 64 bits
into floats. Here one pattern finds brackets and commas; orjson decodes the shallow, short pieces
between them; they are assembled without recursion. This takes some ten times as long as orjson
alone, and other threads run meanwhile. With small members it takes twice as long: the end of the
next piece is guessed, and orjson confirms the guess.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import orjson

from webhook.api.long_texts import LongText, decode_text, end_of_text

DEPTH_MAX: Final = 10_016
"""Go's decoder takes 10,000 levels (encoding/json, maxNestingDepth); reviews, lists and records add
a few levels around an object."""

PIECE_BYTES: Final = 64 * 1024
"""Bytes decoded in one call: half a millisecond for dense documents."""

_DESCENT_BYTES: Final = 16 * 1024
"""Bytes of open members after which a container is assembled here; from then on ends are guessed.
"""

_ORJSON_DEPTH: Final = 1_024

_ENDS: Final = {ord("{"): b"},", ord("["): b"],", ord('"'): b'",'}
"""The end of an array's member by its first character, with the comma after it; other members end
before any comma."""

_NEXT_NAME: Final = b',"'
"""The comma after a member of an object, with the beginning of the next member."""

_PIECE_DEPTH: Final = 500
"""Levels of a piece; well within the limits of orjson and the standard library."""

# Possessive, without backtracking. A text longer than some 32 KiB matches without its end, which
# the next piece contains.
_MARK: Final = re.compile(rb'[\[\]{},]|"[^"\\]{0,512}+(?:\\.[^"\\]{0,512}+){0,64}+(")?', re.DOTALL)

_QUOTE: Final = ord('"')
_OPEN: Final = frozenset(b"[{")
_COMMA: Final = ord(",")
_CLOSE: Final = {ord("["): ord("]"), ord("{"): ord("}")}
_BLANK: Final = re.compile(rb"[ \t\n\r]*+")
_COLON: Final = re.compile(rb"[ \t\n\r]*+:[ \t\n\r]*+")

# Digits become 0 and other bytes blanks: searching a run of digits takes a tenth of a regular
# expression's time.
_DIGITS: Final = bytes(0x30 if chr(code) in "0123456789" else 0x20 for code in range(256))
_LONG_RUN: Final = b"0" * 19
"""An integer of fewer digits fits 64 bits; a longer run may also be inside a string, which is
harmless."""

_STRIDE: Final = 4
_SOME_OF_RUN: Final = b"0" * (len(_LONG_RUN) // _STRIDE)
"""Every fourth byte of a long run of digits, wherever the run begins. This search first takes a
third of the time; its other hits (digests in hexadecimal) are checked in full."""


class DecodeError(ValueError):
    """The bytes are no acceptable JSON document; the message has the fault and its position."""


class BeyondBounds(DecodeError):
    """The document exceeds the bounds on size, depth or numbers; it may be valid JSON."""


class TooDeep(DecodeError):
    """Deeper than a piece may be."""


def decode_piece(raw: bytes | bytearray) -> Any:
    """Decodes a piece within orjson's depth.

    Raises :class:`DecodeError`, :class:`TooDeep` among them.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        kind = next((kind for words, kind in _FAULTS if error.msg.startswith(words)), DecodeError)
        raise kind(str(error)) from None
    if _SOME_OF_RUN in raw[::_STRIDE].translate(_DIGITS) and _LONG_RUN in raw.translate(_DIGITS):
        del value  # Not kept during the second decoding.
        try:
            return json.loads(raw)
        except RecursionError:
            raise TooDeep("depth limit exceeded") from None
        except ValueError as error:  # an integer longer than Python reads
            raise BeyondBounds(str(error)) from None
    return value


_FAULTS: Final = (
    ("depth limit exceeded", TooDeep),
    ("number is infinity", BeyondBounds),
)
"""Error classes by the messages of orjson that mean more than invalid JSON."""


def decode_in_pieces(
    raw: bytes | bytearray,
    *,
    text_max: int = sys.maxsize,
    members_max: int = sys.maxsize,
    large: list[Any] | None = None,
    rest: Callable[[], None] | None = None,
) -> Any:
    """Decodes a document of any depth up to :data:`DEPTH_MAX`; raises :class:`DecodeError`.

    ``large`` receives each array and object longer than a piece with its parents, the outermost
    first. ``rest`` is called after each whole piece, so that other threads can run. A longer text
    than ``text_max`` characters, or more members of one object, raises :class:`BeyondBounds`.
    """
    begin = _after_blanks(raw, 0)
    if raw[begin : begin + 1] not in (b"[", b"{"):
        return decode_piece(raw)
    bounds = text_max, members_max
    return _Decoder(raw, begin, bounds, [] if large is None else large, rest).decode()


def _after_blanks(raw: bytes | bytearray, at: int) -> int:
    match = _BLANK.match(raw, at)
    return at if match is None else match.end()


class _Frame:
    """A container that is assembled here, not by a piece."""

    __slots__ = ("after_comma", "close", "filled", "key", "value")

    def __init__(self, opened: int, key: str) -> None:
        self.value: Any = [] if opened == 0x5B else {}
        self.close = _CLOSE[opened]
        self.key = key
        """Its name in the container around it."""
        self.filled = False
        """Whether a nested container has just ended: a comma or the container's end must follow."""
        self.after_comma = False


class _Decoder:
    """The state of one document's decoding."""

    def __init__(
        self,
        raw: bytes | bytearray,
        begin: int,
        bounds: tuple[int, int],
        large: list[Any],
        rest: Callable[[], None] | None,
    ) -> None:
        self._raw = raw
        self._rest = rest
        self._view = memoryview(raw)
        self._frames = [_Frame(raw[begin], "")]
        self._text_max, self._members_max = bounds
        self._large = large
        large.append(self._frames[0].value)
        self._run = begin + 1  # where the innermost frame's members begin that are not decoded yet
        self._opens: list[int] = []  # the containers open within it
        self._levels = _PIECE_DEPTH  # of those, at which they are put together here
        # Where the present member began, of the frame and of each of these.
        self._members = [self._run]
        # Where its name ends, if that is long; all that stands before it has been decoded.
        self._named = 0

    def _is_blank(self, start: int, end: int) -> bool:
        return _BLANK.fullmatch(self._raw, start, end) is not None

    def decode(self) -> Any:
        at: int | None = self._run
        while at is not None:
            at = self._follow(_MARK.finditer(self._raw, at))
        return self._frames[0].value

    def _follow(self, marks: Iterator[re.Match[bytes]]) -> int | None:
        """Decodes to the end of the document or of a long text, and returns the position."""
        raw, opens, members = self._raw, self._opens, self._members
        for mark in marks:
            at = mark.start()
            code = raw[at]
            if code == _COMMA:
                members[-1] = at + 1
                if len(members) == 1 and self._frames[-1].filled:
                    self._go_on(at)
                elif at - self._run > _DESCENT_BYTES and self._take_before(at):
                    return self._run
            elif code in _OPEN:
                opens.append(at)
                members.append(at + 1)
                if len(opens) >= self._levels:
                    self._descend()
            elif code != _QUOTE:
                if opens:
                    opens.pop()
                    members.pop()
                elif self._end(at, code):
                    return None
            elif mark.lastindex is None:
                return self._skip_text(at)
        raise DecodeError("unexpected end of data")

    def _take_before(self, comma: int) -> bool:
        """Decodes the members before this comma if they are long enough.

        Returns whether any were decoded.
        """
        if self._opens:
            self._descend()
        elif comma - self._run > PIECE_BYTES:
            self._take(self._run, comma)
            self._frames[-1].after_comma = True
            self._run = comma + 1
        else:
            return False
        return self._leap()

    def _leap(self) -> bool:
        """Decodes members of the innermost frame while guesses of their ends hold.

        Returns whether any did. Bytes between two brackets that decode are whole members: an
        incomplete text or container would not decode.
        """
        begin, frame = self._run, self._frames[-1]
        if len(self._frames) + _ORJSON_DEPTH > DEPTH_MAX:
            return False
        is_list = type(frame.value) is list
        opened, closed = (b"[", b"]") if is_list else (b"{", b"}")
        add = frame.value.extend if is_list else partial(self._update, frame.value)
        while (comma := self._guess(self._run, is_list=is_list)) >= 0:
            try:
                members = decode_piece(b"".join((opened, self._view[self._run : comma], closed)))
            except DecodeError:
                break  # A wrong guess, or invalid JSON, reported at its position later.
            if not members:
                break
            add(members)
            frame.after_comma = True
            self._run = self._members[0] = comma + 1
            if self._rest is not None:
                self._rest()
        return self._run > begin

    def _guess(self, start: int, *, is_list: bool) -> int:
        """Returns the position of a comma that may end a piece of members; -1 if none is near."""
        raw, near = self._raw, start + PIECE_BYTES
        if not is_list:
            return raw.find(_NEXT_NAME, near, near + PIECE_BYTES)
        first = _after_blanks(raw, start)
        end = _ENDS.get(raw[first] if first < len(raw) else 0, b",")
        position = raw.find(end, near, near + PIECE_BYTES)
        return position if position < 0 else position + len(end) - 1

    def _skip_text(self, start: int) -> int:
        """Returns the end of a text that is longer than a mark."""
        end = end_of_text(self._raw, start + 1)
        if end < 0:
            raise DecodeError("unexpected end of data")
        if end - start > PIECE_BYTES:
            self._take_text(start, end)
        return end

    def _take_text(self, start: int, end: int) -> None:
        """Decodes a long text with its quotes; separately if it is a value."""
        run = self._members[-1]
        if self._opens:
            self._descend()
        elif run > self._run:
            self._take(self._run, run - 1)
            self._frames[-1].after_comma = True
            self._run = run
        frame = self._frames[-1]
        if frame.filled:
            raise DecodeError(f"unexpected content: byte {start}")
        if type(frame.value) is list:
            if not self._is_blank(run, start):
                raise DecodeError(f"unexpected content: byte {run}")
            frame.value.append(self._text(start, end))
        elif not self._is_blank(run, start):
            name = self._name(run, start)
            frame.value[name] = self._text(start, end)
        else:
            self._named = end
            return
        frame.filled = True
        self._run = self._members[0] = end

    def _text(self, start: int, end: int) -> str:
        try:
            return decode_text(self._raw, start + 1, end - 1, self._text_max)
        except LongText as error:
            raise BeyondBounds(f"{error}: the text from byte {start}") from None
        except ValueError as error:
            raise DecodeError(f"{error}: in the text from byte {start}") from None

    def _go_on(self, at: int) -> None:
        """A comma after a container that was put together here."""
        if not self._is_blank(self._run, at):
            raise DecodeError(f"unexpected content: byte {self._run}")
        frame = self._frames[-1]
        frame.filled, frame.after_comma = False, True
        self._run = at + 1

    def _take(self, start: int, end: int) -> None:
        """Decodes members of the innermost frame."""
        frame, between = self._frames[-1], self._view[start:end]
        if self._is_blank(start, end):
            raise DecodeError(f"a value is missing: byte {start}")
        if type(frame.value) is list:
            frame.value.extend(decode_piece(b"".join((b"[", between, b"]"))))
        elif start < self._named:
            # No other member is in this piece: behind that many bytes a comma has the piece before
            # it decoded.
            name = self._long_name(start)
            after = decode_piece(b"".join((b'{""', self._view[self._named : end], b"}")))
            frame.value[name] = after[""]
        else:
            self._update(frame.value, decode_piece(b"".join((b"{", between, b"}"))))

    def _update(self, value: dict[str, Any], members: dict[str, Any]) -> None:
        """Adds members to an object; raises :class:`BeyondBounds` before there are too many."""
        if len(value) + len(members) > self._members_max:
            raise BeyondBounds(f"an object has more than {self._members_max} members")
        value.update(members)

    def _descend(self) -> None:
        """Assembles the open containers here: they are too deep or too long for a piece."""
        raw = self._raw
        if len(self._frames) + len(self._opens) > DEPTH_MAX:
            raise BeyondBounds(f"nested deeper than {DEPTH_MAX} levels")
        for opened, member in zip(self._opens, self._members, strict=False):
            if self._frames[-1].filled:
                raise DecodeError(f"unexpected content: byte {opened}")
            if member > self._run:
                self._take(self._run, member - 1)
            key = ""
            if type(self._frames[-1].value) is dict:
                key = self._name(member, opened)
            elif not self._is_blank(member, opened):
                raise DecodeError(f"unexpected content: byte {member}")
            self._frames.append(_Frame(raw[opened], key))
            self._large.append(self._frames[-1].value)
            self._run = opened + 1
        self._levels = min(_PIECE_DEPTH, DEPTH_MAX - len(self._frames) + 1)
        last = self._members[-1]
        self._opens.clear()
        self._members[:] = [last]
        if last > self._run:
            self._take(self._run, last - 1)
            self._frames[-1].after_comma = True
            self._run = last

    def _long_name(self, start: int) -> str:
        return self._text(_after_blanks(self._raw, start), self._named)

    def _name(self, start: int, end: int) -> str:
        if start < self._named:
            if _COLON.fullmatch(self._raw, self._named, end) is None:
                raise DecodeError(f"unexpected content: byte {self._named}")
            return self._long_name(start)
        before = bytes(self._view[start:end]).strip()
        name = decode_piece(before[:-1] or b"0") if before[-1:] == b":" else None
        if type(name) is not str:
            raise DecodeError(f"unexpected content: byte {start}")
        return name

    def _end(self, at: int, code: int) -> bool:
        """Ends the innermost frame; returns whether it was the outermost."""
        frames = self._frames
        frame = frames[-1]
        if code != frame.close:
            raise DecodeError(f"unexpected content: byte {at}")
        if frame.filled:
            if not self._is_blank(self._run, at):
                raise DecodeError(f"unexpected content: byte {self._run}")
        elif frame.after_comma or not self._is_blank(self._run, at):
            self._take(self._run, at)
        if len(frames) == 1:
            if _after_blanks(self._raw, at + 1) != len(self._raw):
                raise DecodeError(f"unexpected content after the document: byte {at + 1}")
            return True
        frames.pop()
        around = frames[-1]
        if type(around.value) is list:
            around.value.append(frame.value)
        else:
            around.value[frame.key] = frame.value
        around.filled = True
        self._run = self._members[0] = at + 1
        return False


def encode_deep(value: Any, *, sort_keys: bool = False) -> bytes:
    """Encodes a value of any depth on one line; raises TypeError for values that are no JSON."""
    out: list[str] = []
    # The open containers: the remaining members and the closing bracket of each.
    stack: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter((("", value),)), "")]
    while stack:
        members, close = stack[-1]
        for before, item in members:
            out.append(before)
            if type(item) is dict:
                names = sorted(item) if sort_keys else item
                out.append("{")
                stack.append((_members(item, names), "}"))
                break
            if type(item) is list or type(item) is tuple:
                out.append("[")
                stack.append((_items(item), "]"))
                break
            out.append(_scalar(item))
        else:
            out.append(close)
            stack.pop()
    # A lone surrogate is valid in JSON but not in UTF-8; it becomes U+FFFD as in Go.
    return "".join(out).encode("utf-8", "replace")


def _scalar(item: Any) -> str:
    try:
        return orjson.dumps(item).decode()
    except TypeError:  # an integer beyond 64 bits, a lone surrogate, or no JSON
        return json.dumps(item, ensure_ascii=False, allow_nan=False)


def _members(item: dict[str, Any], names: Any) -> Iterator[tuple[str, Any]]:
    comma = ""
    for name in names:
        yield f"{comma}{json.dumps(name, ensure_ascii=False)}:", item[name]
        comma = ","


def _items(item: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    comma = ""
    for member in item:
        yield comma, member
        comma = ","
