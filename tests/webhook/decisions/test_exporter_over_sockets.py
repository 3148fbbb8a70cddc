"""The exporter's pages on a socket that takes less than there is: they are used again."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import uvloop

from tests.patience import PATIENCE_SECONDS
from tests.webhook.decisions.exporting import Peer, balanced, make
from webhook.decisions.exporter.unix import _UnixConnection


def test_what_the_socket_has_not_taken_yet_is_not_written_over(tmp_path: Path) -> None:
    """A receiver may have from elsewhere what is still being sent: its memory is used again."""

    async def run() -> None:
        offered = asyncio.Event()

        async def ahead(peer: Peer) -> None:
            await peer.read()
            peer.say(type="hello", protocol=1, acknowledged=0)
            await blocked()
            peer.say(type="ack", sequence=300)
            await offered.wait()
            while (await peer.read()).get("type") != "bye":
                peer.say(type="ack", sequence=peer.lines[-1]["sequence"])

        async def blocked() -> None:
            """More waits than the socket takes."""
            while exporter.outbox.in_flight < 64:  # noqa: ASYNC110  # it tells nobody
                await asyncio.sleep(0)
            assert exporter.outbox.unsent

        def texts(name: str) -> list[dict[str, Any]]:
            return [{"id": name, "text": name * 4000} for _ in range(300)]

        exporter = make(tmp_path)
        async with Peer(tmp_path, ahead) as peer, asyncio.TaskGroup() as tasks:
            tasks.create_task(exporter.run())
            assert all(map(exporter.offer, texts("a")))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while exporter.queued:  # noqa: ASYNC110  # it tells nobody
                    await asyncio.sleep(0.001)
            assert all(map(exporter.offer, texts("b")))
            offered.set()
            await exporter.drain(PATIENCE_SECONDS)
        records = [line for line in peer.lines if "text" in line]
        sent = [(record["sequence"], record["text"]) for record in records]
        before = len(sent) - 300
        assert sent[:before] == [(number, "a" * 4000) for number in range(1, before + 1)]
        assert sent[before:] == [(number, "b" * 4000) for number in range(301, 601)]
        assert balanced(exporter)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as a replica's
        runner.run(run())


class FullTransport(asyncio.Transport):
    """Of a socket that takes nothing; keeps what it is given, as it was given."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__({"socket": connected})
        self.given: list[Any] = []

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.given))

    def write(self, data: Any) -> None:
        self.given.append(data)


def test_a_transport_keeps_nothing_of_memory_that_is_used_again() -> None:
    near, far = socket.socketpair(socket.AF_UNIX)
    with near, far:
        near.setblocking(False)
        connection, transport = _UnixConnection(), FullTransport(near)
        connection.connection_made(transport)
        page = bytearray(b"a" * 4_000_000)
        for part in (memoryview(page)[:3_000_000], memoryview(page)[3_000_000:]):
            asyncio.run(connection.send(part))
        page[:] = b"b" * len(page)
        taken = len(page) - transport.get_write_buffer_size()
        assert taken > 0
        assert b"".join(transport.given) == b"a" * (len(page) - taken)
        far.setblocking(False)
        assert far.recv(taken, socket.MSG_WAITALL) == b"a" * taken
