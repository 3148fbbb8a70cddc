"""Thousands of connections that never say a word."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from loadtest.drill.drill import Bystander, Row, server

CONNECTIONS = 5_000
DESCRIPTORS_MAX = 400
MEMORY_MIB_MAX = 64
ANSWER_MS_MAX = 250


def run() -> Iterator[Row]:
    """All at once, while others ask."""
    name = f"{CONNECTIONS:,} silent connections"
    with server("--handshake-timeout=60s") as running, ExitStack() as stack:
        address = ("127.0.0.1", running.ports["admission"])
        held = 0
        with Bystander(running=running) as others:
            for number in range(CONNECTIONS):
                connection = socket.create_connection(address, 60)
                # Connections that the server has closed need not be held: descriptors are few.
                if number >= CONNECTIONS - 500:
                    stack.enter_context(connection)
                else:
                    stack.callback(connection.close)
                with contextlib.suppress(OSError):
                    held = max(held, len(list(Path(f"/proc/{running.process.pid}/fd").iterdir())))
        yield Row(name, "descriptors", held, DESCRIPTORS_MAX)
        yield Row(name, "memory above rest", others.more_mib, MEMORY_MIB_MAX, "MiB")
        yield Row(name, "p99 of the others", others.milliseconds(0.99), ANSWER_MS_MAX, "ms")
        yield Row(name, "others answered wrongly", others.wrong, 0)
