"""Clients of a console that never send a whole request, before any login."""

import contextlib
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from loadtest.drill.drill import Row
from tests.webhook.console.folder import console_over, write_folder
from tests.webhook.console.running import RunningConsole

CONNECTIONS = 1_200
ENDLESS_BYTES = 200 * 1024 * 1024
MEMORY_MIB_MAX = 64
SECONDS_MAX = 1.0


def connect(console: RunningConsole) -> socket.socket:
    """A connection to it."""
    return socket.create_connection(("127.0.0.1", console.port), 60)


def rss_mib(console: RunningConsole) -> float:
    """Resident memory now."""
    pages = int(Path(f"/proc/{console.process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 1024 / 1024


def run() -> Iterator[Row]:
    """Half a head by each of many connections; then one header without an end."""
    with (
        tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder,
        console_over(write_folder(Path(folder))) as console,
    ):
        name, rest = f"{CONNECTIONS:,} half-sent heads", rss_mib(console)
        wrong, slowest = 0, 0.0
        with ExitStack() as stack:
            for number in range(CONNECTIONS):
                connection = stack.enter_context(connect(console))
                with contextlib.suppress(OSError):
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
                if number % 50 == 0:
                    began = time.monotonic()
                    wrong += console.get("/healthz").status != 200
                    slowest = max(slowest, time.monotonic() - began)
        yield Row(name, "answers of /healthz that are missing", wrong, 0)
        yield Row(name, "slowest answer", slowest, SECONDS_MAX, "s")
        yield Row(name, "memory above rest", rss_mib(console) - rest, MEMORY_MIB_MAX, "MiB")
        name, sent, peak = "an endless header", 0, 0.0
        with connect(console) as connection, contextlib.suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            while sent < ENDLESS_BYTES:
                sent += connection.send(b"x" * 65536)
                peak = max(peak, rss_mib(console))
        yield Row(name, "memory above rest", peak - rest, MEMORY_MIB_MAX, "MiB")
        yield Row(name, "/healthz is not answered", console.get("/healthz").status != 200, 0)
