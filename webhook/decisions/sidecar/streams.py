"""Who sent what so far: duplicates, gaps and marks of each sender's stream."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.decisions.framing import StreamID

STREAMS_MAX: Final = 1024
"""Streams remembered, the least recent forgotten first: each start of each replica is one.
A thousand is days of a large Deployment's restarts, and 64 KiB in each segment's header."""


@dataclass(slots=True)
class Mark:
    """How far one stream has come: received, and of that durable."""

    received: int
    durable: int


class Streams:
    """The marks of all streams.

    ``duplicates`` counts records received again, ``gaps`` the sequence numbers
    that never arrived: what senders dropped before this process saw it.
    """

    __slots__ = ("_marks", "duplicates", "gaps")

    def __init__(self) -> None:
        self._marks: OrderedDict[StreamID, Mark] = OrderedDict()
        self.duplicates = 0
        self.gaps = 0

    def __len__(self) -> int:
        return len(self._marks)

    def open(self, stream: StreamID, acknowledged: int) -> int:
        """Begin or resume a stream; the sequence number up to which all is durable here.

        A stream unknown here starts from what the sender saw acknowledged.
        """
        mark = self._marks.get(stream)
        if mark is None:
            mark = self._marks[stream] = Mark(acknowledged, acknowledged)
            self._forget()
        self._marks.move_to_end(stream)
        return mark.durable

    def receive(self, stream: StreamID, sequence: int) -> bool:
        """Whether a record is new; counts it as a duplicate, and its gap, otherwise."""
        mark = self._marks.get(stream)
        if mark is None:  # plain ndjson, or forgotten since its hello
            mark = self._marks[stream] = Mark(sequence - 1, sequence - 1)
            self._forget()
        if sequence <= mark.received:
            self.duplicates += 1
            return False
        self.gaps += sequence - mark.received - 1
        mark.received = sequence
        return True

    def finish(self, stream: StreamID, last_sequence: int) -> None:
        """The sender's last number: what is missing up to it will not come."""
        mark = self._marks.get(stream)
        if mark is not None and last_sequence > mark.received:
            self.gaps += last_sequence - mark.received
            mark.received = last_sequence

    def commit(self, marks: Mapping[StreamID, int]) -> None:
        """These streams are durable up to these numbers."""
        for stream, sequence in marks.items():
            mark = self._marks.get(stream)
            if mark is not None and sequence > mark.durable:
                mark.durable = sequence

    def durable(self, stream: StreamID) -> int:
        """Up to where a stream is durable; 0 for one unknown."""
        mark = self._marks.get(stream)
        return 0 if mark is None else mark.durable

    def restore(self, marks: Mapping[StreamID, int]) -> None:
        """Take the marks that the log holds."""
        for stream, sequence in marks.items():
            self._marks[stream] = Mark(sequence, sequence)
        self._forget()

    def _forget(self) -> None:
        while len(self._marks) > STREAMS_MAX:
            self._marks.popitem(last=False)
