"""The exporter's queue against a plain list of what it should hold."""

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

    @rule(line=st.binary(min_size=1, max_size=12))
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
        lines = self.outbox.take(max_bytes)
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
