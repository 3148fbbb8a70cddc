"""Receivers behind the decision log's sinks: they take, refuse, hang, and keep a record."""

from collections.abc import Sequence

import orjson

from tests.simulation.log_offers import Books
from tests.simulation.loop import Loop
from tests.simulation.process import Process
from webhook.decisions.sinks.sink import Item, RecordsRefused, SinkUnavailable


class Receiver:
    """A receiver behind a sink: it outlives all processes and keeps a record."""

    def __init__(self, loop: Loop, name: str, books: Books) -> None:
        self.loop = loop
        self.name = name
        self.books = books
        self.failing = 0.0
        self.forgetful = 0.0
        """The probability that an answer is lost after a batch was taken."""
        self.poison = 0.0
        self.taken: list[tuple[str, str, int, float]] = []
        """Queue's incarnation, process, sequence, and when: in order of arrival."""
        self.unanswered: set[tuple[str, int]] = set()
        self.refused: dict[tuple[str, int], bytes] = {}
        """Records that were refused for good and must be among the dead letters."""

    def take(self, incarnation: str, items: Sequence[Item]) -> None:
        """A batch arrives; raises as a sink does."""
        chance = self.loop.random
        keys = []
        for item in items:
            record = orjson.loads(item.record)
            if wrong := self.books.judge(record):
                self.loop.fail(f"{self.name} got {wrong}")
            keys.append((str(record["process"]), int(record["sequence"])))
        numbers = " ".join(f"{name}:{number}" for name, number in keys)
        if chance.random() < self.failing:
            self.loop.notify(self.name, f"answers 503 to {incarnation} for {numbers}")
            raise SinkUnavailable("503")
        if any(_is_poison(key, self.poison) for key in keys):
            if len(keys) == 1:
                self.refused[keys[0]] = items[0].record
            self.loop.notify(self.name, f"refuses from {incarnation} {numbers}")
            raise RecordsRefused("400")
        self.loop.notify(self.name, f"takes from {incarnation} {numbers}")
        now = self.loop.seconds
        self.taken += [(incarnation, *key, now) for key in keys]
        if chance.random() < self.forgetful:
            self.unanswered.update(keys)
            raise SinkUnavailable("no answer")


def _is_poison(key: tuple[str, int], share: float) -> bool:
    return share > 0 and (key[1] * 2654435761 % 1000) / 1000 < share


class WorldSink:
    """The product's seam to a sink, of one drain."""

    def __init__(self, receiver: Receiver, process: Process, incarnation: str) -> None:
        self._receiver = receiver
        self._process = process
        self._incarnation = incarnation

    def send(self, items: Sequence[Item]) -> None:
        loop = self._receiver.loop
        loop.sleep(loop.random.expovariate(100.0))  # the way there
        self._receiver.take(self._incarnation, items)
        loop.sleep(loop.random.expovariate(200.0))  # and back: whoever ends now does not know

    def close(self) -> None:
        """Closes nothing."""
