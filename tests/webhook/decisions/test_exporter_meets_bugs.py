"""An exporter whose transport has a bug: the export goes on."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.webhook.decisions.exporting import Peer, balanced, converse, make, obliging
from webhook.decisions.exporter import transport
from webhook.decisions.exporter.unix import UnixTransport


class Faulty:
    """A transport of somebody's own, with a bug: in connecting, in sending or in reading."""

    where: ClassVar[list[str]] = []

    def __init__(self, address: transport.Address) -> None:
        self._real = UnixTransport(address)

    async def connect(self) -> Any:
        if self._is_next("connect"):
            raise KeyError("no such thing")
        return FaultyConnection(await self._real.connect(), self)

    def _is_next(self, where: str) -> bool:
        found = self.where[:1] == [where]
        if found:
            self.where.pop(0)
        return found


class FaultyConnection:
    """Fails where it is to, and else does as the real one."""

    def __init__(self, real: Any, faulty: Faulty) -> None:
        self._real = real
        self._faulty = faulty

    def __getattr__(self, name: str) -> Any:
        if self._faulty._is_next(name):
            raise ZeroDivisionError(name)
        return getattr(self._real, name)


def test_a_bug_ends_a_connection_and_not_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, told, and what was queued arrives over the next one."""
    monkeypatch.setattr(transport, "_REGISTERED", dict(transport._REGISTERED))
    transport.register("faulty", f"{__name__}:Faulty")
    Faulty.where[:] = ["connect", "hello", "connect", "send", "receive"]

    async def run() -> None:
        exporter = make(tmp_path, sidecarURL=f"faulty://{tmp_path}/s")
        async with Peer(tmp_path, obliging) as peer:
            await converse(exporter, {"n": 1}, {"n": 2})
            assert {line["n"] for line in peer.lines if "n" in line} == {1, 2}
        assert not Faulty.where, "each was met"
        assert exporter.counters.faults >= 4, "two may end one connection"
        assert exporter.counters.acknowledged == 2
        assert balanced(exporter)

    asyncio.run(run())
