"""A sidecar's socket acknowledges durable records, with few acknowledgements."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.patience import turns_until
from webhook.decisions.sidecar.unix import UnixReceiver
from webhook.log import Log


class Committing:
    """An intake whose commits a test makes."""

    has_room = True

    def __init__(self) -> None:
        self.newest = 0
        self.committed = 0
        self._listeners: dict[object, Callable[[], None]] = {}
        self.streams = self

    @property
    def is_durable(self) -> bool:
        return self.newest == self.committed

    def open(self, *_: Any) -> int:
        return 0

    def durable(self, _: Any) -> int:
        return self.committed

    def accept(self, records: Any, _: str) -> list[Any]:
        self.newest = records[-1].sequence
        return []

    def listen(self, key: object, callback: Callable[[], None]) -> None:
        self._listeners[key] = callback

    def unlisten(self, key: object) -> None:
        del self._listeners[key]

    def commit(self, sequence: int) -> None:
        self.committed = sequence
        for callback in self._listeners.values():
            callback()


def record(number: int) -> bytes:
    return orjson.dumps({"podUID": "u", "process": "p", "sequence": number}) + b"\n"


def test_commits_of_what_came_together_are_acknowledged_together(tmp_path: Path) -> None:
    intake: Any = Committing()
    receiver = UnixReceiver(tmp_path / "s", intake, Log(lambda _: None).logger("test"))
    hello = {"type": "hello", "protocols": [1], "podUID": "u", "process": "p"}

    async def run() -> list[int]:
        await receiver.start()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(orjson.dumps(hello) + b"\n")
        assert orjson.loads(await reader.readline())["type"] == "hello"
        writer.write(b"".join(map(record, range(1, 6))))
        await turns_until(lambda: intake.newest == 5)
        for sequence in (2, 3, 5):
            intake.commit(sequence)
        sequences = [orjson.loads(await reader.readline())["sequence"]]
        writer.write(b"".join(map(record, range(6, 9))))
        await turns_until(lambda: intake.newest == 8)
        intake.commit(7)  # the rest does not become durable: what is does not wait for it
        sequences.append(orjson.loads(await reader.readline())["sequence"])
        receiver.stop_listening()
        await receiver.close()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        return sequences

    assert asyncio.run(run()) == [5, 7]
