"""The process of ``waddle console``: follows a source, and serves pages on a port."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Final, Protocol

from webhook.console import clusters
from webhook.console.application import FORM_BYTES_MAX, Console, ConsoleOptions, Source
from webhook.console.drawing import Drawing
from webhook.console.playground import Playground
from webhook.metrics.registry import Registry
from webhook.server.http.hub import Hub
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import Listener, bind

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from webhook.console.picture import Shown, ShownCluster
    from webhook.log import Logger

CONNECTIONS_MAX: Final = 200
DRAIN_SECONDS: Final = 2.0
"""The time for responses in progress at the end; event streams end by themselves."""

LIMITS: Final = ConnectionLimits(
    connections_max=CONNECTIONS_MAX,
    newest_first=True,
    # All users behind a proxy, or kubectl port-forward, count as one client, so it gets two thirds.
    connections_per_client_max=2 * CONNECTIONS_MAX // 3,
    # A session cookie and a proxy's fields take a few KiB.
    header_bytes_max=32 * 1024,
    body_bytes_max=FORM_BYTES_MAX,
    waiting_bytes_max=4 * FORM_BYTES_MAX,
    # As many as connections, so a client with two thirds of them leaves the rest to others.
    in_flight_max=CONNECTIONS_MAX,
    handshake_timeout_seconds=5,
    header_timeout_seconds=10,
    body_timeout_seconds=30,
    idle_timeout_seconds=30,
)
"""The limits on browsers' connections, including those before login."""


class RunningSource(Source, Protocol):
    """Makes the pictures of a console."""

    async def run(self) -> None:
        """Follows the source until cancelled."""


async def serve(
    listening: socket.socket,
    sources: Mapping[ShownCluster | None, tuple[RunningSource, Shown]],
    options: ConsoleOptions,
    log: Logger,
) -> None:
    """Follows each source and serves pages until a signal.

    Several sources have cluster names; a single one has None.
    """
    playground = Playground()
    consoles = {
        cluster: Console(
            *(shown, source, options, log),
            Drawing(root="" if cluster is None else cluster.root),
            playground=playground,
        )
        for cluster, (source, shown) in sources.items()
    }
    hub = Hub(LIMITS, Registry(), log)
    server = Listener(hub, _application(consoles, options), listening, grace_seconds=DRAIN_SECONDS)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if hub.draining:  # A second signal: a user waits at a terminal.
            for connection in tuple(hub.connections):
                connection.abort("shutdown")
        for console in consoles.values():
            console.shown.end()  # an open stream would end as a cut connection
        server.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    host, port = listening.getsockname()[:2]
    try:
        async with asyncio.TaskGroup() as tasks:
            following = [
                tasks.create_task(source.run(), name="source") for source, _ in sources.values()
            ]
            log.info("the console is ready", address=f"http://{shown_host(host)}:{port}/")
            await server.serve()
            for task in following:
                task.cancel()
    finally:
        playground.stop()


def _application(
    consoles: Mapping[ShownCluster | None, Console], options: ConsoleOptions
) -> ASGIApp:
    named = {cluster: shown for cluster, shown in consoles.items() if cluster is not None}
    if named:
        return clusters.application(named, options.hosts, Drawing())
    (console,) = consoles.values()
    return console.application()


def shown_host(host: str) -> str:
    """Returns an address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; on every address without a host. Raises OSError."""
    listening = bind(host, port, backlog=CONNECTIONS_MAX)
    listening.listen(CONNECTIONS_MAX)
    return listening
