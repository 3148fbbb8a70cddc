"""The exporter's queue against a plain list of what it should hold."""

import resource

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from webhook.decisions.exporter.outbox import Outbox

MAX_RECORDS, MAX_BYTES = 6, 40


class OutboxMachine(RuleBasedStateMachine):
    """Adds, sends, acknowledges, loses connections."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(MAX_RECORDS, MAX_BYTES)
        self.held: list[tuple[int, bytes]] = []
        self.sent = 0
        self.sequence = 0

    @rule(line=st.text("abc", min_size=1, max_size=12).map(str.encode))
    def offer(self, line: bytes) -> None:
        room = len(self.held) < MAX_RECORDS and (
            sum(len(held) for _, held in self.held) + len(line) <= MAX_BYTES
        )
        assert self.outbox.has_room(len(line)) is room
        self.sequence += 1
        if room:
            self.outbox.add(self.sequence, line)
            self.held.append((self.sequence, line))

    @rule(max_bytes=st.integers(1, 30))
    def send(self, max_bytes: int) -> None:
        lines = bytes(self.outbox.take(max_bytes)).splitlines()
        assert lines == [line for _, line in self.held[self.sent :][: len(lines)]]
        assert len(lines) <= 1 or sum(map(len, lines)) <= max_bytes
        assert lines or self.sent == len(self.held)
        self.sent += len(lines)

    @precondition(lambda self: self.sequence)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, self.sequence))
        gone = [held for held in self.held if held[0] <= number]
        assert self.outbox.acknowledge(number) == len(gone)
        del self.held[: len(gone)]
        self.sent = max(self.sent - len(gone), 0)

    @rule()
    def lose_connection(self) -> None:
        assert self.outbox.rewind() == self.sent
        self.sent = 0

    @rule()
    def send_without_acknowledgement(self) -> None:
        assert self.outbox.release() == self.sent
        del self.held[: self.sent]
        self.sent = 0

    @invariant()
    def sizes_agree(self) -> None:
        assert len(self.outbox) == len(self.held)
        assert self.outbox.in_flight == self.sent
        assert self.outbox.unsent == len(self.held) - self.sent
        assert self.outbox.queued_bytes == sum(len(line) for _, line in self.held)


TestOutbox = OutboxMachine.TestCase
TestOutbox.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_records_that_come_and_go_take_no_memory_from_the_system() -> None:
    """Page by page, in batches of a busy moment and with some that are larger than a page."""
    outbox = Outbox(10_000, 16 * 1024 * 1024)
    line = b"x" * 1_100
    sequence = 0

    def moment() -> None:
        nonlocal sequence
        for _ in range(200):
            sequence += 1
            outbox.add(sequence, line)
        while outbox.take(256 * 1024):
            pass
        assert outbox.acknowledge(sequence) == 200

    moment()
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(100):
        moment()
    # Two for each record, when each was an object of its own.
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 2_000


def test_a_record_larger_than_a_page_keeps_its_place() -> None:
    """Between smaller ones, of which it takes none with it."""
    outbox = Outbox(10, 1_000_000)
    lines = [b"a", b"b" * 100_000, b"c"]
    for number, line in enumerate(lines):
        outbox.add(number, line)
    assert [outbox.take(1_000) for _ in range(4)] == [b"a\n", lines[1] + b"\n", b"c\n", b""]
    assert outbox.acknowledge(1) == 2
    assert (outbox.rewind(), bytes(outbox.take(1_000))) == (1, b"c\n")


def test_who_wants_to_know_is_informed_which_records_have_left_for_good():
    sequences: list[int] = []
    outbox = Outbox(max_records=10, max_bytes=1000, notify=sequences.append)
    assert outbox.newest == 0
    for sequence in (1, 2, 3):
        outbox.add(sequence, b"x")
        assert outbox.newest == sequence
    outbox.take(2)
    outbox.acknowledge(0)
    assert sequences == []
    outbox.acknowledge(1)
    outbox.take(100)
    outbox.rewind()
    outbox.take(100)
    outbox.release()
    assert sequences == [1, 3]
    assert outbox.newest == 0
