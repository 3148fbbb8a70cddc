"""An exporter with a receiver that the test plays."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import orjson

from tests.patience import PATIENCE_SECONDS
from webhook import log
from webhook.decisions.configuration import parse
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.settings import read_settings

QUIET = log.Log(lambda _: None).logger("test")


def make(folder: Path, logger: log.Logger = QUIET, **settings: Any) -> Exporter:
    """An exporter to a socket in a folder, quick to send and to come back."""
    values = {
        "sidecarURL": f"unix://{folder}/s",
        "flushSeconds": 0.001,
        "backoff": {"initialSeconds": 0.001, "maxSeconds": 0.01},
        **settings,
    }
    return Exporter(
        read_settings(parse(orjson.dumps(values), "test")), Origin(pod_uid="uid", pod="pod"), logger
    )


def balanced(exporter: Exporter) -> bool:
    """Whether the counters add up."""
    counters = exporter.counters
    return counters.offered == (
        counters.acknowledged + counters.sent + sum(counters.dropped.values()) + exporter.queued
    )


class Peer:
    """A receiver on a socket that does what a test scripts for each connection."""

    def __init__(self, folder: Path, *scripts: Callable[["Peer"], Awaitable[None]]) -> None:
        self._path = folder / "s"
        self._scripts = list(scripts)
        self.lines: list[dict[str, Any]] = []
        self.connections = 0
        self.over = asyncio.Event()
        self._serving: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.over.set()
        await asyncio.wait(self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.append(task)
        self.reader, self.writer = reader, writer
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        try:
            await script(self)
        finally:
            writer.close()

    async def read(self) -> dict[str, Any]:
        line = await self.reader.readline()
        if not line:
            raise ConnectionResetError
        value: dict[str, Any] = orjson.loads(line)
        self.lines.append(value)
        return value

    def say(self, **frame: Any) -> None:
        self.writer.write(orjson.dumps(frame) + b"\n")


async def obliging(peer: Peer, protocol: int = 1) -> None:
    """Acknowledges each record."""
    try:
        hello = await peer.read()
        peer.say(type="hello", protocol=protocol, acknowledged=hello["acknowledged"])
        while True:
            frame = await peer.read()
            if "sequence" in frame:
                peer.say(type="ack", sequence=frame["sequence"])
    except ConnectionResetError:
        return


async def converse(exporter: Exporter, *records: dict[str, Any]) -> None:
    """Offer records, drain, and end."""
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(exporter.run())
        for record in records:
            assert exporter.offer(record)
        await exporter.drain(PATIENCE_SECONDS)
