"""Several clusters in one console: one page lists them, and each has its own pages below a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from webhook.console import pages
from webhook.console.entrance import Entrance
from webhook.console.picture import EMPTY, Picture, ShownCluster
from webhook.console.responses import as_json, ok, static, wants_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from webhook.console.application import Console
    from webhook.console.drawing import Drawing


def application(
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
