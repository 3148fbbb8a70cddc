"""A connection that fails takes nobody else's descriptor along."""

import asyncio
import contextlib
import gc
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop

from tests.behaviour.serving import unverified
from tests.cluster import write_kubeconfig
from tests.patience import PATIENCE_SECONDS
from webhook.certificates.pairs import self_signed
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER for a close that resets."""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A port whose connections the test accepts."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def reset_at_once(listening: socket.socket, ours: socket.socket) -> None:
    """End a connection as the server that is killed does, and wait until it is known here."""
    accepted, _ = listening.accept()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    accepted.close()
    assert select.select([ours], [], [], PATIENCE_SECONDS)[0]


def descriptors() -> dict[str, str]:
    """Returns the open descriptors with their targets."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of this very listing
            found[path.name] = str(path.readlink())
    return found


async def connect(ours: socket.socket, context: ssl.SSLContext | None) -> None:
    """Connects as aiohttp does, with a connected socket."""
    hostname = None if context is None else "localhost"
    await asyncio.get_running_loop().create_connection(
        asyncio.Protocol, sock=ours, ssl=context, server_hostname=hostname
    )


async def connect_and_be_reset(listening: socket.socket) -> None:
    """Connect to a server that resets before the first byte of TLS is written."""
    ours = socket.socket()
    ours.setblocking(False)
    await asyncio.get_running_loop().sock_connect(ours, listening.getsockname())
    reset_at_once(listening, ours)
    with pytest.raises(ConnectionResetError):
        await connect(ours, unverified())
    held = ours.detach()  # else it would close a stranger's when it is collected
    assert held == -1, "a socket object holds the number of a descriptor that libuv has closed"


def test_a_connection_that_is_reset_at_once_closes_its_descriptor_once(
    listening: socket.socket,
) -> None:
    """The next to be opened, as an admission's, has the same number, and keeps it."""

    async def run() -> None:
        await connect_and_be_reset(listening)
        gc.collect()  # the loops of tests before this one keep theirs until then
        before = descriptors()  # libuv keeps one in reserve from its first connection on
        await connect_and_be_reset(listening)
        strangers = socket.socketpair()
        # The failure's last references go when its callbacks have run.
        for _ in range(10):
            await asyncio.sleep(0)
        gc.collect()
        for stranger in strangers:
            os.fstat(stranger.fileno())
            stranger.close()
        assert descriptors() == before, "and nothing is left open"

    event_loop.run(run())


def test_a_connection_ends_with_its_transport(listening: socket.socket) -> None:
    """The socket that was handed in holds nothing, and the descriptor is closed all the same."""

    async def run() -> None:
        ours = socket.create_connection(listening.getsockname())
        ours.setblocking(False)
        theirs, _ = listening.accept()
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=ours
        )
        assert ours.fileno() == -1
        transport.write(b"x")
        theirs.settimeout(PATIENCE_SECONDS)
        assert theirs.recv(1) == b"x"
        transport.close()
        assert await asyncio.to_thread(theirs.recv, 1) == b""
        theirs.close()

    event_loop.run(run())


def test_a_client_is_not_opened_on_a_loop_that_closes_descriptors_twice(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")

    async def open_client() -> None:
        async with ClusterClient(load_credentials(kubeconfig)):
            pass

    with pytest.raises(TypeError, match=r"cluster\.event_loop"):
        uvloop.run(open_client())
    event_loop.run(open_client())


class Losing(asyncio.Protocol):
    """Knows whether its connection is gone."""

    lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


def test_a_peer_that_does_not_say_goodbye_is_not_waited_for(
    listening: socket.socket, tmp_path: Path
) -> None:
    """The connection is gone before its loop is closed, which complains of what still waits."""
    pair = self_signed(["localhost"], datetime.now(UTC))
    file = tmp_path / "pair.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    held = []

    def serve() -> None:
        accepted, _ = listening.accept()
        held.append(context.wrap_socket(accepted, server_side=True))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    protocol = Losing()

    async def run() -> None:
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: protocol,
            *listening.getsockname(),
            ssl=unverified(),
            server_hostname="localhost",
        )
        transport.close()

    event_loop.run(run())
    assert protocol.lost
    thread.join(PATIENCE_SECONDS)
    held[0].close()


def test_what_arrives_on_a_connection_that_was_closed_is_no_fault(caplog):
    """As uvloop's TLS tells of it: with the very error that a closed transport raises."""

    async def logged(message: str) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport, _ = await loop.create_connection(asyncio.Protocol, "127.0.0.1", port)
        transport.abort()
        while True:
            await asyncio.sleep(0)
            try:
                transport.write(b"late")
            except RuntimeError as error:
                loop.call_exception_handler({"message": message, "exception": error})
                break
        server.close()

    event_loop.run(logged("Fatal error on SSL protocol"))
    assert caplog.records == []
    event_loop.run(logged("something else"))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
