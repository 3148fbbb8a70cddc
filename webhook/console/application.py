"""The console's answers: each page as HTML or JSON, forms, files of violations, and events."""

from __future__ import annotations

import asyncio
import json
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from webhook.api.encoding import encode
from webhook.console import decisions, pages, violations
from webhook.console.drawing import Drawing
from webhook.console.gate import HEADERS, LOOPBACK, refusal
from webhook.console.pages import NotThere
from webhook.console.picture import EMPTY
from webhook.console.playground import MODES, TEXT_CHARACTERS_MAX, Attempt, Busy, Playground
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from webhook.console.picture import Picture, Shown, ShownViolation
    from webhook.constraint.snapshot import Snapshot
    from webhook.log import Logger

QUERY_CHARACTERS_MAX: Final = 8192
FORM_BYTES_MAX: Final = 8 * TEXT_CHARACTERS_MAX
"""Three fields, each character written as three or more."""

FORM_SECONDS: Final = 30.0
EVENTS_MAX: Final = 64
"""Browsers that follow at once; another one is told to look again by itself."""

EVENT_SECONDS: Final = 15.0
"""Between two signs of life."""

STREAM_SECONDS: Final = 600.0
"""Of one stream; a browser begins another by itself."""

_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Source(Protocol):
    """Where policies in force come from."""

    def snapshot(self) -> Snapshot | None:
        """The policies in force, compiled; None where there are none yet. One thread at a time asks."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """What a console is told at its start."""

    decisions: Path | None = None
    hosts: Collection[str] = LOOPBACK
    as_sarif: Callable[[Sequence[ShownViolation]], str] | None = None


@dataclass(slots=True)
class Console:
    """The application's parts; one loop uses it."""

    shown: Shown
    source: Source
    options: ConsoleOptions
    log: Logger
    drawing: Drawing = field(default_factory=Drawing)
    playground: Playground = field(default_factory=Playground)
    streams: int = 0
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def application(self) -> ASGIApp:
        """The ASGI application."""
        simple = {
            "/": ("overview", self._overview),
            "/policies": ("policies", pages.policies),
            "/policy": ("policy", pages.policy),
            "/resource": ("resource", pages.resource),
            "/rollouts": ("rollouts", pages.rollouts),
            "/health": ("health", pages.health),
        }
        routes = [
            *(Route(path, self._page(path, *how)) for path, how in simple.items()),
            Route("/violations", self._violations),
            Route("/decisions", self._decisions),
            Route("/playground", self._playground, methods=["GET", "POST"]),
            Route("/events", self._events),
            Route("/healthz", _ok),
            Route("/readyz", self._ready),
            Route("/static/{name}", _static),
        ]
        handlers: Any = {HTTPException: self._refused, Exception: self._fault}
        inner = Starlette(routes=routes, exception_handlers=handlers)
        return _Gate(inner, self.options.hosts)

    # --- pages --------------------------------------------------------------------------------

    def _overview(self, picture: Picture, query: pages.Query) -> pages.Document:
        document = pages.overview(picture, query)
        return {**document, "decisionLog": self.options.decisions is not None}

    def _page(
        self, path: str, name: str, view: Callable[[Picture, pages.Query], pages.Document]
    ) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                document = view(self.shown.picture, _query(request))
            except NotThere as error:
                raise HTTPException(404, f"not known here: {error}") from None
            return self._answer(request, name, path, document)

        return answer

    async def _violations(self, request: Request) -> Response:
        query = _query(request)
        form = query.get("format", "")
        if form == "csv":
            found = pages.found_violations(self.shown.picture, query)
            text = "".join(violations.as_csv(found))
            return _file(text, "text/csv; charset=utf-8", "violations.csv")
        if form == "sarif" and self.options.as_sarif is not None:
            found = pages.found_violations(self.shown.picture, query)
            text = await asyncio.to_thread(self.options.as_sarif, found)
            return _file(text, "application/sarif+json", "violations.sarif")
        document = pages.violation_page(self.shown.picture, query)
        return self._answer(request, "violations", "/violations", document)

    async def _decisions(self, request: Request) -> Response:
        query = _query(request)
        said = {name: query.get(name, "") for name in ("q", "uid", "verdict")}
        document: dict[str, Any] = {"on": self.options.decisions is not None, "query": said}
        if self.options.decisions is not None:
            search = decisions.DecisionSearch(said["q"], said["uid"], said["verdict"])
            async with self.looking:  # one look at a time, whoever asks
                found = await asyncio.to_thread(decisions.look, self.options.decisions, search)
            document |= found
        return self._answer(request, "decisions", "/decisions", document)

    async def _playground(self, request: Request) -> Response:
        form = await _form(request) if request.method == "POST" else {}
        said = Attempt.of(form)
        outcome = None
        if request.method == "POST":
            try:
                outcome = await self.playground.attempt(
                    said, self.source.snapshot, self.shown.picture
                )
            except Busy:
                raise HTTPException(503, "others are trying something: ask again soon") from None
        document = {
            "mode": said.mode,
            "modes": list(MODES),
            "policy": said.policy,
            "input": said.input,
            "query": said.query,
            "outcome": outcome,
        }
        return self._answer(request, "playground", "/playground", document)

    def _answer(
        self, request: Request, name: str, path: str, document: Any, status: int = 200
    ) -> Response:
        around = self._around(request)
        if _wants_json(request):
            return _json({"shown": around["shown"], **document}, status)
        text = self.drawing.page(name, path, around, document)
        return Response(
            text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8"
        )

    def _around(self, request: Request) -> dict[str, Any]:
        picture = self.shown.picture
        query = [(name, value) for name, value in _query(request).items() if name != "format"]
        return {
            "shown": {
                "over": picture.over,
                "place": picture.place,
                "version": picture.version,
                "taken": picture.taken,
                "trouble": list(picture.trouble),
            },
            "query": dict(query),
            "number": self.shown.number,
            "sarif": self.options.as_sarif is not None,
            "live": request.method == "GET",
        }

    # --- errors -------------------------------------------------------------------------------

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._answer(
            request,
            "error",
            "",
            {"status": error.status_code, "error": error.detail},
            error.status_code,
        )

    async def _fault(self, request: Request, error: Exception) -> Response:
        self.log.fault("bug in a page", error)
        document = {"status": 500, "error": f"a fault of the console's: {type(error).__name__}"}
        if _wants_json(request):
            return _json(document, 500)
        return PlainTextResponse(document["error"], 500)

    # --- what moves ---------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        del request
        if self.streams >= EVENTS_MAX:
            # 204 is what tells a browser not to come again by itself.
            return Response(status_code=204)
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[str]:
        """The number of the picture, and again when it is another; silence is broken by comments."""
        self.streams += 1
        try:
            number = self.shown.number
            yield f"retry: 5000\nevent: shown\ndata: {number}\n\n"
            until = asyncio.get_running_loop().time() + STREAM_SECONDS
            while not self.shown.ended and asyncio.get_running_loop().time() < until:
                try:
                    async with asyncio.timeout(EVENT_SECONDS):
                        number = await self.shown.changed(number)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if not self.shown.ended:
                    yield f"event: shown\ndata: {number}\n\n"
        finally:
            self.streams -= 1

    async def _ready(self, request: Request) -> Response:
        del request
        if self.shown.picture is EMPTY:
            return PlainTextResponse("nothing was read yet", 503)
        return PlainTextResponse("ok")


class _Gate:
    """Refuses what must not come in, and puts headers on all that goes out."""

    def __init__(self, inner: ASGIApp, hosts: Collection[str]) -> None:
        self._inner = inner
        self._hosts = frozenset(name.lower() for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refused = refusal(scope["method"], scope["path"], headers, self._hosts)
        if refused is None and len(scope["query_string"]) > QUERY_CHARACTERS_MAX:
            refused = 414, "the query is too long"
        if refused is not None:
            await PlainTextResponse(refused[1], refused[0])(scope, receive, headed)
            return
        await self._inner(scope, receive, headed)


def _query(request: Request) -> pages.Query:
    return dict(request.query_params.items())


def _wants_json(request: Request) -> bool:
    if request.query_params.get("format") == "json":
        return True
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _json(document: Any, status: int = 200) -> Response:
    try:
        body = encode(document, indent=True)
    except (TypeError, ValueError):
        # A lone surrogate, which no UTF-8 has: written out.
        body = json.dumps(document, indent=2).encode()
    return Response(body, status, media_type="application/json")


def _file(text: str, media_type: str, name: str) -> Response:
    return Response(
        text.encode("utf-8", "replace"),
        media_type=media_type,
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, as browsers send it; or of a JSON object of texts."""
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > FORM_BYTES_MAX:
                    raise HTTPException(413, f"more than {FORM_BYTES_MAX} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the form did not come within {FORM_SECONDS:g} s") from None
    try:
        text = body.decode()
        if request.headers.get("content-type", "").startswith("application/json"):
            said = json.loads(text)
            return (
                {name: value for name, value in said.items() if isinstance(value, str)}
                if isinstance(said, dict)
                else {}
            )
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=20, errors="strict"))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the form cannot be read") from None


async def _ok(request: Request) -> Response:
    del request
    return PlainTextResponse("ok")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    found = {path.name: path for path in _STATIC.iterdir()}.get(name)
    if found is None or found.suffix not in _TYPES:
        raise HTTPException(404, "no such file")
    return Response(found.read_bytes(), media_type=_TYPES[found.suffix])
