"""The console's process: sources that are followed, pages of one cluster or several, sockets."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from webhook.console import pages
from webhook.console.application import FORM_BYTES_MAX, Console, ConsoleOptions, Source
from webhook.console.drawing import Drawing
from webhook.console.entrance import Entrance
from webhook.console.picture import EMPTY, Picture, ShownCluster
from webhook.console.playground import Playground
from webhook.console.responses import as_json, ok, static, wants_json
from webhook.metrics.registry import Registry
from webhook.server.http.hub import Hub
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import Listener

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from webhook.console.picture import Shown
    from webhook.log import Logger


def clusters_application(
    consoles: Mapping[ShownCluster, Console], hosts: Collection[str], drawing: Drawing
) -> ASGIApp:
    """Returns the ASGI application that serves all clusters."""

    async def overview(request: Request) -> Response:
        rows = [_row(cluster, console.shown.picture) for cluster, console in consoles.items()]
        return answer(request, "clusters", {"clusters": rows}, 200)

    async def ready(request: Request) -> Response:
        del request
        waiting = [console.name for console, it in consoles.items() if it.shown.picture is EMPTY]
        if waiting:
            return PlainTextResponse(f"nothing has been read yet from {', '.join(waiting)}", 503)
        return PlainTextResponse("ok")

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        document = {"status": error.status_code, "error": error.detail, "signIn": False}
        return answer(request, "error", document, error.status_code)

    def answer(request: Request, name: str, document: dict[str, Any], status: int) -> Response:
        if wants_json(request):
            return as_json(document, status)
        around = {**_AROUND, "clusters": tuple(consoles)}
        text = drawing.page(name, "/", around, document)
        return Response(
            text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8"
        )

    routes = [
        Route("/", overview),
        Route("/healthz", ok),
        Route("/readyz", ready),
        Route("/static/{name}", static),
        *(Mount(cluster.root, app=console.application()) for cluster, console in consoles.items()),
    ]
    handlers: Any = {HTTPException: refused}
    return Entrance(Starlette(routes=routes, exception_handlers=handlers), hosts, None)


_AROUND: Final[Mapping[str, Any]] = {
    "shown": {"over": "", "place": "", "version": "", "taken": "", "trouble": [], "hidden": []},
    "query": {},
    "number": 0,
    "live": False,
    "is_page": False,
    "visitor": None,
    "login": False,
}
"""The page frame of the list of clusters, which has no picture and no signed-in visitor."""


def _row(cluster: ShownCluster, picture: Picture) -> dict[str, Any]:
    """Returns a cluster's row: policies, replicas, violations and problems."""
    document = pages.overview(picture, {})
    return {
        "name": cluster.name,
        "path": f"{cluster.root}/",
        "policies": document["policies"],
        "replicas": document["replicas"],
        "violations": document["violations"],
        "trouble": list(picture.trouble),
    }


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
        return clusters_application(named, options.hosts, Drawing())
    (console,) = consoles.values()
    return console.application()


def shown_host(host: str) -> str:
    """Returns an address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
