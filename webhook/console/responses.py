"""Responses other than pages: JSON, downloads, style and script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from starlette.requests import Request

_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def as_json(document: Any, status: int = 200) -> Response:
    """Returns a document as a JSON response."""
    try:
        body = encode(document, indent=True)
    except (TypeError, ValueError):
        # A lone surrogate has no UTF-8 form, so it is written as an escape.
        body = json.dumps(document, indent=2).encode()
    return Response(body, status, media_type="application/json")


def as_file(text: str, media_type: str, name: str) -> Response:
    """Returns a response that browsers save as a file."""
    return Response(
        text.encode("utf-8", "replace"),
        media_type=media_type,
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


async def ok(request: Request) -> Response:
    """Answers that the process is alive."""
    del request
    return PlainTextResponse("ok")


async def static(request: Request) -> Response:
    """Returns style, script or icon; no other file of the folder."""
    name = request.path_params["name"]
    file = {path.name: path for path in _STATIC.iterdir()}.get(name)
    if file is None or file.suffix not in _TYPES:
        raise HTTPException(404, "no such file")
    return Response(file.read_bytes(), media_type=_TYPES[file.suffix])


def wants_json(request: Request) -> bool:
    """Whether the client wants a page as JSON."""
    if request.query_params.get("format") == "json":
        return True
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted
