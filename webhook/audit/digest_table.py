"""A table from digests to values, for many digests and few different values.

A dict takes some 150 bytes for each digest. Here a digest takes about :data:`ENTRY_BYTES`: records
of fixed length lie side by side in buckets, which :meth:`bytearray.find` searches. Equal values are
stored once, and freed with their last digest.
"""

from __future__ import annotations

from array import array
from typing import Final

OBJECT_DIGEST_BYTES: Final = 16
ENTRY_BYTES: Final = 30
"""The memory of a digest at most, on average: its record, and its share of a bucket."""
VALUE_BYTES: Final = 144
"""The memory of a value at most, besides its length: an object, its entry in a dict, a number."""

_NUMBER: Final = slice(OBJECT_DIGEST_BYTES, OBJECT_DIGEST_BYTES + 4)
_MARK: Final = OBJECT_DIGEST_BYTES + 4
_RECORD: Final = _MARK + 1
"""A digest, the number of its value, and the mark of the last round in which it was seen."""
_MARKS: Final = 256
_BUCKET_MAX: Final = 24
_BUCKET_MIN: Final = 6
"""The records of a bucket on average, at most and at least."""


class DigestTable:
    """The table. Values go through rounds: what a complete round did not see is dropped."""

    def __init__(self) -> None:
        self._buckets = [bytearray()]
        self._entries = 0
        self._round = 0
        self._values: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._uses = array("I")
        self._free: list[int] = []
        self._value_bytes = 0

    def __len__(self) -> int:
        return self._entries

    def __contains__(self, digest: bytes) -> bool:
        return self._find(self._bucket(digest), digest) >= 0

    @property
    def memory(self) -> int:
        """Returns the memory of the table at most, about."""
        return self._entries * ENTRY_BYTES + self._value_bytes

    def cost(self, value: bytes) -> int:
        """Returns the memory that another digest with this value takes."""
        return ENTRY_BYTES + (0 if value in self._numbers else VALUE_BYTES + len(value))

    def begin(self) -> None:
        """Begins a round; an incomplete one drops nothing."""
        self._round = (self._round + 1) % _MARKS

    def see(self, digest: bytes) -> bytes | None:
        """Returns the value of a digest, and keeps it beyond this round; None without one."""
        bucket = self._bucket(digest)
        at = self._find(bucket, digest)
        if at < 0:
            return None
        bucket[at + _MARK] = self._round
        return self._values[_number(bucket, at)]

    def put(self, digest: bytes, value: bytes) -> None:
        """Gives a new digest a value; one that is there keeps its value."""
        if self.see(digest) is not None:
            return
        number = self._numbers.get(value)
        if number is None:
            number = self._numbered(value)
        self._uses[number] += 1
        self._bucket(digest).extend(digest + number.to_bytes(4, "little") + bytes((self._round,)))
        self._entries += 1
        if self._entries > len(self._buckets) * _BUCKET_MAX:
            self._spread(len(self._buckets) * 2)

    def end(self) -> None:
        """Ends a complete round: drops what it did not see."""
        for bucket in self._buckets:
            marks = bucket[_MARK::_RECORD]
            if marks.count(self._round) == len(marks):
                continue
            seen = bytearray()
            for at in range(0, len(bucket), _RECORD):
                if bucket[at + _MARK] == self._round:
                    seen += bucket[at : at + _RECORD]
                else:
                    self._release(_number(bucket, at))
            self._entries -= (len(bucket) - len(seen)) // _RECORD
            bucket[:] = seen
        size = len(self._buckets)
        while size > 1 and self._entries < size * _BUCKET_MIN:
            size //= 2
        if size < len(self._buckets):
            self._spread(size)

    def _numbered(self, value: bytes) -> int:
        """Stores a new value; returns its number."""
        if self._free:
            number = self._free.pop()
            self._values[number] = value
        else:
            number = len(self._values)
            self._values.append(value)
            self._uses.append(0)
        self._numbers[value] = number
        self._value_bytes += VALUE_BYTES + len(value)
        return number

    def _release(self, number: int) -> None:
        self._uses[number] -= 1
        if not self._uses[number]:
            value = self._values[number]
            del self._numbers[value]
            self._values[number] = b""
            self._free.append(number)
            self._value_bytes -= VALUE_BYTES + len(value)

    def _bucket(self, digest: bytes | bytearray) -> bytearray:
        # The number of buckets is a power of two.
        return self._buckets[int.from_bytes(digest[:4], "little") & (len(self._buckets) - 1)]

    @staticmethod
    def _find(bucket: bytearray, digest: bytes) -> int:
        """Returns the place of a digest's record; -1 without one."""
        at = bucket.find(digest)
        while at > 0 and at % _RECORD:  # across two records
            at = bucket.find(digest, at + 1)
        return at

    def _spread(self, size: int) -> None:
        """Spreads the records over so many buckets, and frees each old one on the way."""
        old, self._buckets = self._buckets, [bytearray() for _ in range(size)]
        while old:
            bucket = old.pop()
            for at in range(0, len(bucket), _RECORD):
                record = bucket[at : at + _RECORD]
                self._bucket(record).extend(record)


def _number(bucket: bytearray, at: int) -> int:
    return int.from_bytes(bucket[at + _NUMBER.start : at + _NUMBER.stop], "little")
