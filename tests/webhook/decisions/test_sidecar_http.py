"""The sidecar's port for scrapes and probes answers, whoever else says nothing."""

import asyncio
from contextlib import AsyncExitStack, suppress

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
