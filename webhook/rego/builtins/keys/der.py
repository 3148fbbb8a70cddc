"""A reader of DER (X.690) that keeps the raw bytes of every element.

``cryptography`` reads certificates too, but gives out neither the raw elements
that Go's JSON form of a certificate carries nor Go's faults.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from webhook.rego.errors import BuiltinError

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
UTF8_STRING: Final = 0x0C
NUMERIC_STRING: Final = 0x12
PRINTABLE_STRING: Final = 0x13
T61_STRING: Final = 0x14
IA5_STRING: Final = 0x16
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
BMP_STRING: Final = 0x1E
SEQUENCE: Final = 0x30
SET: Final = 0x31

NULL: Final = b"\x05\x00"
"""The whole element."""

_UTC: Final = re.compile(rb"(\d{10}(?:\d\d)?)(Z|[+-]\d{4})")
_GENERALIZED: Final = re.compile(rb"(\d{14})(Z|[+-]\d{4})")


def context(number: int, *, constructed: bool = False) -> int:
    """Returns the tag of a context-specific element."""
    return 0x80 | (0x20 if constructed else 0) | number


class Reader:
    """A position in DER bytes; every method raises :class:`BuiltinError` with ``fault``."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def rest(self) -> bytes:
        """Returns the unread bytes."""
        return self._data[self._position :]

    def __bool__(self) -> bool:
        return self._position < len(self._data)

    def peek(self, tag: int) -> bool:
        """Returns whether the next element has this tag."""
        return bool(self) and self._data[self._position] == tag

    def any(self, fault: str) -> tuple[int, bytes, bytes]:
        """Returns the next element: its tag, its content, and all of its bytes."""
        data, start = self._data, self._position
        if start + 2 > len(data) or data[start] & 0x1F == 0x1F:  # tags of two bytes: none is used
            raise BuiltinError(fault)
        length, body = data[start + 1], start + 2
        if length >= 0x80:
            width = length & 0x7F
            length = int.from_bytes(data[body : body + width], "big")
            # DER: the shortest form, and Go reads at most four bytes of length.
            if not 1 <= width <= 4 or length < 0x80 or length >> (8 * (width - 1)) == 0:
                raise BuiltinError(fault)
            body += width
        end = body + length
        if end > len(data):
            raise BuiltinError(fault)
        self._position = end
        return data[start], data[body:end], data[start:end]

    def element(self, tag: int, fault: str) -> bytes:
        """Returns all bytes of the next element, which must have this tag."""
        tag_read, _, whole = self.any(fault)
        if tag_read != tag:
            raise BuiltinError(fault)
        return whole

    def read(self, tag: int, fault: str) -> bytes:
        """Returns the content of the next element, which must have this tag."""
        tag_read, content, _ = self.any(fault)
        if tag_read != tag:
            raise BuiltinError(fault)
        return content

    def enter(self, tag: int, fault: str) -> Reader:
        """Returns a reader of the next element's content."""
        return Reader(self.read(tag, fault))

    def optional(self, tag: int, fault: str) -> Reader | None:
        """Returns a reader of the next element's content, if it has this tag."""
        return self.enter(tag, fault) if self.peek(tag) else None

    def integer(self, fault: str, tag: int = INTEGER) -> int:
        """Returns the next element as an integer in its shortest form."""
        content = self.read(tag, fault)
        if not content:
            raise BuiltinError(fault)
        if len(content) > 1 and (
            (content[0] == 0 and content[1] < 0x80) or (content[0] == 0xFF and content[1] >= 0x80)
        ):
            raise BuiltinError(fault)
        return int.from_bytes(content, "big", signed=True)

    def boolean(self, fault: str) -> bool:
        """Returns the next element as a boolean, 0 or 255."""
        content = self.read(BOOLEAN, fault)
        if content not in (b"\x00", b"\xff"):
            raise BuiltinError(fault)
        return content == b"\xff"

    def oid(self, fault: str) -> tuple[int, ...]:
        """Returns the next element as an object identifier."""
        return oid_arcs(self.read(OBJECT_IDENTIFIER, fault), fault)

    def bits(self, fault: str) -> tuple[bytes, int]:
        """The next element as a bit string: its bytes, and how many bits at the end are unused."""
        content = self.read(BIT_STRING, fault)
        if not content or content[0] > 7 or (len(content) == 1 and content[0]):
            raise BuiltinError(fault)
        unused = content[0]
        if unused and content[-1] & ((1 << unused) - 1):
            raise BuiltinError(fault)
        return content[1:], unused

    def time(self) -> str:
        """Returns the next element as RFC 3339 text, with Go's faults."""
        if self.peek(UTC_TIME):
            return _utc_time(self.read(UTC_TIME, "x509: malformed UTCTime"))
        if self.peek(GENERALIZED_TIME):
            fault = "x509: malformed GeneralizedTime"
            matched = _GENERALIZED.fullmatch(self.read(GENERALIZED_TIME, fault))
            if matched is None:
                raise BuiltinError(fault)
            return _timestamp(matched[1].decode(), matched[2].decode(), fault)
        raise BuiltinError("x509: unsupported time format")


def right_aligned(bits: tuple[bytes, int]) -> bytes:
    """Returns a bit string's bytes with the unused bits moved to the front."""
    data, unused = bits
    if not unused:
        return data
    return (int.from_bytes(data, "big") >> unused).to_bytes(len(data), "big")


def oid_arcs(content: bytes, fault: str) -> tuple[int, ...]:
    """Returns the numbers of an encoded object identifier."""
    if not content or content[-1] & 0x80:
        raise BuiltinError(fault)
    arcs: list[int] = []
    value, fresh = 0, True
    for byte in content:
        if fresh and byte == 0x80:  # a leading zero
            raise BuiltinError(fault)
        value = value << 7 | byte & 0x7F
        fresh = not byte & 0x80
        if value >> 63:
            raise BuiltinError(fault)
        if fresh:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return (first, arcs[0] - 40 * first, *arcs[1:])


def _utc_time(content: bytes) -> str:
    fault = "x509: malformed UTCTime"
    matched = _UTC.fullmatch(content)
    if matched is None:
        raise BuiltinError(fault)
    digits = matched[1].decode()
    century = "19" if int(digits[:2]) >= 50 else "20"  # RFC 5280, 4.1.2.5.1
    return _timestamp(f"{century}{digits}".ljust(14, "0"), matched[2].decode(), fault)


def _timestamp(digits: str, zone: str, fault: str) -> str:
    try:
        dt.datetime.strptime(digits, "%Y%m%d%H%M%S")  # noqa: DTZ007  # checked, not used
    except ValueError:
        raise BuiltinError(fault) from None
    offset = "Z" if zone in ("Z", "+0000", "-0000") else f"{zone[:3]}:{zone[3:]}"
    date = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{date}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}{offset}"
