"""The process of ``waddle console``: a source that is followed, and a port that answers."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Final, Protocol

import uvicorn

from webhook.console.application import Console, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.console.application import ConsoleOptions
    from webhook.console.picture import Shown
    from webhook.log import Logger

CONNECTIONS_MAX: Final = 200
DRAIN_SECONDS: Final = 2
"""For answers that are being made; streams of events end by themselves."""


class RunningSource(Source, Protocol):
    """What a picture is made of."""

    async def run(self) -> None:
        """Follow until cancelled."""


async def serve(
    listening: socket.socket,
    source: RunningSource,
    shown: Shown,
    options: ConsoleOptions,
    log: Logger,
) -> None:
    """Follow the source and answer until a signal says to stop."""
    console = Console(shown, source, options, log)
    config = uvicorn.Config(
        console.application(),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        shown.end()  # a stream that goes on would be cut as a fault
        server.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    host, port = listening.getsockname()[:2]
    try:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(source.run(), name="source")
            log.info("console", address=f"http://{shown_host(host)}:{port}/")
            await server.serve([listening])
            following.cancel()
    finally:
        console.playground.stop()


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals alone: it would end the process by the one that it took."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing is captured here."""
        yield

    def stop(self) -> None:
        """Drain and end; at once when told a second time."""
        self.force_exit = self.should_exit
        self.should_exit = True


def shown_host(host: str) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS_MAX)
    except OSError:
        listening.close()
        raise
    return listening
