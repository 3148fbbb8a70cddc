"""The sidecar's port for scrapes and probes answers, whoever else says nothing."""

import asyncio
import socket
from contextlib import AsyncExitStack, suppress

import pytest

from tests.ports import free_port
from webhook.decisions.sidecar.process import CONNECTIONS_MAX, serve


def test_of_too_many_connections_the_oldest_is_closed_and_the_newest_answered() -> None:
    async def run() -> None:
        port = free_port()
        server = await serve(f"127.0.0.1:{port}", {"/healthz": lambda: (200, b"ok\n")})
        async with server, AsyncExitStack() as stack:
            silent = []
            for _ in range(CONNECTIONS_MAX + 1):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                silent.append(reader)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert (await reader.read()).endswith(b"ok\n")
            with suppress(ConnectionResetError):
                assert await silent[0].read() == b""
            assert not silent[CONNECTIONS_MAX - 1].at_eof()

    asyncio.run(run())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_without_a_host_it_is_reached_by_ipv4_and_ipv6() -> None:
    """The manifests say so: of 0.0.0.0 a cluster of IPv6 alone reaches nothing."""

    async def run() -> None:
        port = free_port()
        async with await serve(f":{port}", {"/healthz": lambda: (200, b"ok\n")}):
            for address in ("127.0.0.1", "::1"):
                reader, writer = await asyncio.open_connection(address, port)
                writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert (await reader.read()).endswith(b"ok\n")
                writer.close()

    asyncio.run(run())
