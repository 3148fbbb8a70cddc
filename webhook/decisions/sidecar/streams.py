"""Follows senders' streams: duplicates, gaps, marks and the owner of each."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Final

from webhook.decisions.wire.framing import ProtocolError, StreamID
from webhook.values import dataclass

STREAMS_MAX: Final = 1024
"""The most streams remembered; the least recent is forgotten first. Each start of each replica is a
stream. A thousand is days of a large Deployment's restarts, and 64 KiB in each segment's header."""

JUMP_MAX: Final = 2**32
"""The most sequence numbers that may be missing in a row: a replica that drops ten thousand
decisions a second uses them up in five days without a sidecar."""


@dataclass(slots=True)
class StreamMark:
    """The received and durable marks of one stream. ``owner`` is the peer that began it."""

    received: int
    durable: int
    owner: str


class Streams:
    """The marks of all streams.

    An owner is the identity of a peer from the transport (a certificate's name, a user's id). Only
    the owner may continue a stream, or state its acknowledged position. ``duplicates`` counts
    records received again. ``gaps`` counts sequence numbers that never arrived, since senders had
    dropped them. ``began`` counts streams that were new here.
    """

    __slots__ = ("_marks", "began", "duplicates", "gaps")

    def __init__(self) -> None:
        self._marks: OrderedDict[StreamID, StreamMark] = OrderedDict()
        self.duplicates = 0
        self.gaps = 0
        self.began = 0

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def owners(self) -> dict[StreamID, str]:
        """The client that opened each stream, by its certificate's name or its address."""
        return {stream: mark.owner for stream, mark in self._marks.items()}

    def open(self, stream: StreamID, acknowledged: int, owner: str) -> int:
        """Begins or resumes a stream; returns the highest durable sequence number.

        A stream unknown here starts from the number that the sender saw acknowledged. Raises
        :class:`ProtocolError` for a stream of another owner.
        """
        mark = self._marks.get(stream)
        if mark is None:
            mark = self._begin(stream, acknowledged, owner)
        self._check_owner(mark, owner)
        self._marks.move_to_end(stream)
        return mark.durable

    def receive(self, stream: StreamID, sequence: int, owner: str) -> bool:
        """Whether a record is new; otherwise counts it as a duplicate.

        Counts gaps before a new one.

        Raises :class:`ProtocolError` for a stream of another owner, or a number that cannot come
        next.
        """
        mark = self._marks.get(stream)
        if mark is None:  # plain ndjson, or forgotten since its hello
            mark = self._begin(stream, sequence - 1, owner)
        self._check_owner(mark, owner)
        if sequence <= mark.received:
            self.duplicates += 1
            return False
        _check_jump(mark, sequence)
        self.gaps += sequence - mark.received - 1
        mark.received = sequence
        return True

    def finish(self, stream: StreamID, last_sequence: int) -> None:
        """Ends a stream at the sender's last number: missing numbers up to it count as gaps.

        Raises :class:`ProtocolError` for an impossible number.
        """
        mark = self._marks.get(stream)
        if mark is not None and last_sequence > mark.received:
            _check_jump(mark, last_sequence)
            self.gaps += last_sequence - mark.received
            mark.received = last_sequence

    def commit(self, marks: Mapping[StreamID, int]) -> None:
        """Marks streams as durable up to these numbers."""
        for stream, sequence in marks.items():
            mark = self._marks.get(stream)
            if mark is not None and sequence > mark.durable:
                mark.durable = sequence

    def durable(self, stream: StreamID) -> int:
        """Returns the highest durable number of a stream; 0 for an unknown one."""
        mark = self._marks.get(stream)
        return 0 if mark is None else mark.durable

    def restore(self, marks: Mapping[StreamID, int], owners: Mapping[StreamID, str]) -> None:
        """Takes the marks from the log; a stream without an owner gets the next peer as owner."""
        for stream, sequence in marks.items():
            self._marks[stream] = StreamMark(sequence, sequence, owners.get(stream, ""))
        self._forget()

    def _begin(self, stream: StreamID, received: int, owner: str) -> StreamMark:
        mark = self._marks[stream] = StreamMark(received, received, owner)
        self.began += 1
        self._forget()
        return mark

    def _check_owner(self, mark: StreamMark, owner: str) -> None:
        if not mark.owner:
            mark.owner = owner
            self.began += 1
        if mark.owner != owner:
            raise ProtocolError("not_yours", f"{mark.owner} began this stream, you are {owner}")

    def _forget(self) -> None:
        """Forgets streams beyond the bound, of the owner with the most: no owner displaces others."""
        while len(self._marks) > STREAMS_MAX:
            ((owner, _),) = Counter(mark.owner for mark in self._marks.values()).most_common(1)
            oldest = next(stream for stream, mark in self._marks.items() if mark.owner == owner)
            del self._marks[oldest]


def _check_jump(mark: StreamMark, sequence: int) -> None:
    if sequence - mark.received > JUMP_MAX:
        raise ProtocolError(
            "bad_record", f"sequence {sequence} cannot follow {mark.received} in one step"
        )
