"""The console's responses: each page as HTML or JSON, forms, files of violations, and events."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from webhook.api.gvk import gvk_of
from webhook.console import decisions, pages, violations
from webhook.console.drawing import Drawing
from webhook.console.entrance import VISITOR, Entrance
from webhook.console.gate import LOOPBACK
from webhook.console.pages import NotThere
from webhook.console.picture import EMPTY, NamedObject, NotReadable, Picture
from webhook.console.playground import MODES, TEXT_CHARACTERS_MAX, Attempt, Busy, Playground
from webhook.console.responses import as_file, as_json, ok, static, wants_json
from webhook.console.rights import RightsUnknown
from webhook.console.visitor import BEGIN, END, SignInRefused
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from webhook.console.login import Login
    from webhook.console.picture import Shown, ShownCluster, ShownViolation
    from webhook.console.rights import Rights
    from webhook.console.visitor import Right, Sent, Visitor
    from webhook.log import Logger
    from webhook.review.policy_set import PolicySet

FORM_BYTES_MAX: Final = 8 * TEXT_CHARACTERS_MAX
"""Three fields, each character written as three or more."""

FORM_SECONDS: Final = 30.0
EVENTS_MAX: Final = 64
"""The most browsers with an event stream; further ones poll."""

DENIALS_SECONDS: Final = 30.0
DENIALS_MAX: Final = 100
"""The most visitors with cached denials, each with 60 numbers."""

EVENT_SECONDS: Final = 15.0
"""Between two signs of life."""

STREAM_SECONDS: Final = 600.0
"""The duration of one stream, in seconds; the browser then opens another."""

NOBODYS: Final = Picture("", "", "", "")
"""The picture for a visitor with unknown rights."""

_HIDDEN_FAULT: Final = "a policy could not decide"


class Objects(Protocol):
    """The reader of single objects in their present state."""

    async def right(self, place: NamedObject) -> Right | None:
        """Returns the right to read it; None if rights are not checked. Raises NotReadable."""

    async def read(self, place: NamedObject) -> dict[str, Any]:
        """Returns the object; raises NotReadable."""


class Source(Protocol):
    """The source of policies in force."""

    def policies(self) -> PolicySet | None:
        """Returns the compiled policies in force; None before there are any.

        One thread at a time calls it.
        """

    async def refresh_notes(self) -> None:
        """Reads what replicas report about themselves, unless it was just read."""

    @property
    def objects(self) -> Objects | None:
        """Returns the reader of single objects; None before the first picture."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """The options of a console at its start."""

    decisions: Path | None = None
    hosts: Collection[str] = LOOPBACK
    as_sarif: Callable[[Picture, Sequence[ShownViolation]], str] | None = None
    login: Login | None = None
    rights: Rights | None = None
    """The rights of visitors; present with a login."""
    clusters: Sequence[ShownCluster] = ()
    """All clusters of this process, if there are several."""


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
    denials: dict[Visitor | None, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    """Denials by visitor, with the time of their count."""

    def application(self) -> ASGIApp:
        """The ASGI application."""
        simple = {
            "/policies": ("policies", pages.policies),
            "/policy": ("policy", pages.policy),
            "/rollouts": ("rollouts", pages.rollouts),
            "/exceptions": ("exceptions", pages.exceptions),
        }
        routes = [
            *(Route(path, self._page(path, *how)) for path, how in simple.items()),
            Route("/", self._overview),
            Route("/violations", self._violations),
            Route("/resource", self._resource),
            Route("/health", self._health),
            Route("/decisions", self._decisions),
            Route("/playground", self._playground, methods=["GET", "POST"]),
            Route("/events", self._events),
            Route("/healthz", ok),
            Route("/readyz", self._ready),
            Route("/static/{name}", static),
        ]
        if self.options.login is not None:
            routes += [
                Route(BEGIN, self._sign_in),
                Route(END, self._sign_out, methods=["POST"]),
                Route(self.options.login.path, self._signed_in),
            ]
        handlers: Any = {
            HTTPException: self._refused,
            RightsUnknown: self._refused,
            SignInRefused: self._refused,
            Exception: self._fault,
        }
        inner = Starlette(routes=routes, exception_handlers=handlers)
        return Entrance(inner, self.options.hosts, self.options.login)

    async def _seen(self, request: Request) -> Picture:
        """Return the picture that the visitor may see; raises :class:`RightsUnknown`."""
        if self.options.rights is None:
            return self.shown.picture
        visitor = _visitor(request)
        assert visitor is not None, "the entrance lets nobody else to a page"
        return await self.options.rights.seen(visitor, self.shown.picture)

    async def _may(self, request: Request, right: Right) -> bool:
        """Returns whether the visitor has a right; always true without a login."""
        visitor, rights = _visitor(request), self.options.rights
        return rights is None or (visitor is not None and await rights.may(visitor, right))

    # --- pages --------------------------------------------------------------------------------

    async def _overview(self, request: Request) -> Response:
        picture = await self._seen(request)
        document = pages.overview(picture, _query(request))
        document["decisionLog"] = self.options.decisions is not None
        document |= await self._denials(request)
        return self._answer(request, picture, "overview", "/", document)

    async def _denials(self, request: Request) -> dict[str, Any]:
        """Returns denials a minute over the last hour of the log; read twice a minute at most."""
        nothing: dict[str, Any] = {"denialsPerMinute": [], "newestMinute": 0}
        if self.options.decisions is None:
            return nothing
        visitor, now = _visitor(request), time.monotonic()
        async with self.looking:
            known = self.denials.get(visitor)
            if known is None or now - known[0] > DENIALS_SECONDS:
                answered = await asyncio.to_thread(
                    decisions.look,
                    self.options.decisions,
                    decisions.DecisionSearch(),
                    self._record_reader(request),
                )
                if len(self.denials) >= DENIALS_MAX:
                    self.denials.clear()
                known = now, {name: answered.get(name, none) for name, none in nothing.items()}
                self.denials[visitor] = known
            return known[1]

    def _page(
        self, path: str, name: str, view: Callable[[Picture, pages.Query], pages.ObjectDocument]
    ) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            picture = await self._seen(request)
            try:
                document = view(picture, _query(request))
            except NotThere as error:
                raise HTTPException(404, f"not found: {error}") from None
            return self._answer(request, picture, name, path, document)

        return answer

    async def _health(self, request: Request) -> Response:
        await self.source.refresh_notes()
        picture = await self._seen(request)
        document = pages.health(picture, _query(request))
        return self._answer(request, picture, "health", "/health", document)

    async def _violations(self, request: Request) -> Response:
        query, picture = _query(request), await self._seen(request)
        form = query.get("format", "")
        # Of many thousands, and nobody else waits for them, nor does a probe.
        if form == "csv":
            text = await asyncio.to_thread(_csv, picture, query)
            return as_file(text, "text/csv; charset=utf-8", "violations.csv")
        if form == "sarif" and self.options.as_sarif is not None:
            matching = await asyncio.to_thread(pages.found_violations, picture, query)
            text = await asyncio.to_thread(self.options.as_sarif, picture, matching)
            return as_file(text, "application/sarif+json", "violations.sarif")
        document = await asyncio.to_thread(pages.violation_page, picture, query)
        return self._answer(request, picture, "violations", "/violations", document)

    async def _resource(self, request: Request) -> Response:
        query, picture = _query(request), await self._seen(request)
        document = pages.resource(picture, query)
        document["live"] = await self._live(request, picture, document)
        return self._answer(request, picture, "resource", "/resource", document, follows=False)

    async def _live(
        self, request: Request, picture: Picture, document: pages.ObjectDocument
    ) -> dict[str, Any]:
        """Reviews an object's present state by the policies in force.

        Returns an ``error`` on failure.
        """
        objects = self.source.objects
        gvk = gvk_of(document)
        if objects is None or not gvk.kind or not document["name"]:
            return {
                "error": "no object is named"
                if objects
                else "nothing has been read yet: try again in a moment"
            }
        place = NamedObject(gvk, document["namespace"], document["name"])
        try:
            right = await objects.right(place)
            if right is not None and not await self._may(request, right):
                return {"error": f"you have no right to {right}"}
            obj = await objects.read(place)
            outcome = await self.playground.live(obj, self.source.policies)
        except NotReadable as error:
            return {"error": str(error)}
        except Busy:
            return {"error": "other users are trying something: try again in a moment"}
        return self._of_what_is_seen(outcome, picture)

    def _of_what_is_seen(self, outcome: dict[str, Any], picture: Picture) -> dict[str, Any]:
        """Returns an outcome without messages about policies that the visitor may not read."""
        if self.options.rights is None:
            return outcome
        for review in outcome.get("reviews", ()):
            rows = review["violations"]
            seen = [row for row in rows if (row["kind"], row["name"]) in picture.by_key]
            review |= {"violations": seen, "hidden": len(rows) - len(seen)}
            if review["hidden"] or picture.hidden:
                review["notDecided"] = [_HIDDEN_FAULT] if review["notDecided"] else []
        return outcome

    async def _decisions(self, request: Request) -> Response:
        query, picture = _query(request), await self._seen(request)
        filters = {name: query.get(name, "") for name in ("q", "uid", "minute", *decisions.FILTERS)}
        document: dict[str, Any] = {"on": self.options.decisions is not None, "query": filters}
        if self.options.decisions is not None:
            search, page = decisions.DecisionSearch.of(filters), pages.page_number(query)
            may = self._record_reader(request)
            async with self.looking:  # one look at a time, whoever asks
                document |= await asyncio.to_thread(
                    decisions.look, self.options.decisions, search, may, page
                )
        return self._answer(request, picture, "decisions", "/decisions", document)

    def _record_reader(self, request: Request) -> Callable[[Right], bool] | None:
        """Returns a function that checks the visitor's rights from another thread."""
        loop = asyncio.get_running_loop()
        if self.options.rights is None:
            return None
        return lambda right: asyncio.run_coroutine_threadsafe(
            self._may(request, right), loop
        ).result()

    async def _playground(self, request: Request) -> Response:
        picture = await self._seen(request)
        form = await _form(request) if request.method == "POST" else {}
        attempt = Attempt.of(form)
        outcome = None
        if request.method == "POST":
            try:
                records = await self._recorded(request) if attempt.mode == "recorded" else None
                outcome = await self.playground.attempt(
                    attempt, self.source.policies, picture, records, self._record_reader(request)
                )
            except Busy:
                raise HTTPException(
                    503, "the playground is busy with other users: try again in a moment"
                ) from None
            if attempt.mode == "review":
                outcome = self._of_what_is_seen(outcome, picture)
        has_log = self.options.decisions is not None
        document = {
            "mode": attempt.mode,
            "modes": [mode for mode in MODES if mode != "recorded" or has_log],
            "policy": attempt.policy,
            "input": attempt.input,
            "query": attempt.query,
            "outcome": outcome,
        }
        return self._answer(request, picture, "playground", "/playground", document)

    async def _recorded(self, request: Request) -> decisions.Recorded:
        """Returns the newest decisions that the visitor may replay."""
        if self.options.decisions is None:
            raise HTTPException(400, "no decision log was given to this console (--decisions)")
        may = self._record_reader(request)
        async with self.looking:
            try:
                return await asyncio.to_thread(decisions.recorded, self.options.decisions, may)
            except OSError as error:
                why = f"{self.options.decisions}: {error.strerror or error}"
                raise HTTPException(503, why) from None

    def _answer(  # each is a part of a page
        self,
        request: Request,
        picture: Picture,
        name: str,
        path: str,
        document: Any,
        *,
        status: int = 200,
        follows: bool = True,
    ) -> Response:
        around = self._around(request, picture, follows=follows)
        if wants_json(request):
            return as_json({"shown": around["shown"], **document}, status)
        text = self.drawing.page(name, path, around, document)
        return Response(
            text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8"
        )

    def _around(self, request: Request, picture: Picture, *, follows: bool) -> dict[str, Any]:
        query = [(name, value) for name, value in _query(request).items() if name != "format"]
        visitor = _visitor(request)
        return {
            "shown": pages.shown(picture, visitor),
            "query": dict(query),
            "number": self.shown.number,
            "clusters": self.options.clusters,
            "sarif": self.options.as_sarif is not None,
            "live": follows and request.method == "GET",
            "is_page": request.method == "GET" and bool(picture.version),
            "visitor": visitor,
            "login": self.options.login is not None,
        }

    # --- signing in ---------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        assert self.options.login is not None
        return _sent(await self.options.login.begin(request.query_params.get("to", "/")))

    async def _signed_in(self, request: Request) -> Response:
        assert self.options.login is not None
        cookie = request.headers.get("cookie", "")
        return _sent(await self.options.login.finish(_query(request), cookie))

    async def _sign_out(self, request: Request) -> Response:
        login = self.options.login
        assert login is not None
        request.scope[VISITOR] = None
        document = {"provider": await login.provider.logout_address()}
        answer = self._answer(request, NOBODYS, "signed_out", "", document, follows=False)
        answer.headers.append("set-cookie", login.leave())
        return answer

    # --- errors -------------------------------------------------------------------------------

    async def _refused(self, request: Request, error: Exception) -> Response:
        status, text = 503, str(error)
        if isinstance(error, HTTPException):
            status, text = error.status_code, error.detail
        elif isinstance(error, SignInRefused):
            status = error.status
            self.log.warning("a sign-in failed", reason=text)
        picture = self.shown.picture if self.options.login is None else NOBODYS
        document = {"status": status, "error": text, "signIn": isinstance(error, SignInRefused)}
        return self._answer(request, picture, "error", "", document, status=status, follows=False)

    async def _fault(self, request: Request, error: Exception) -> Response:
        self.log.fault("bug in a page", error)
        document = {"status": 500, "error": f"a bug in the console: {type(error).__name__}"}
        if wants_json(request):
            return as_json(document, 500)
        return PlainTextResponse(document["error"], 500)

    # --- events -------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        if self.streams >= EVENTS_MAX:
            # After 204 a browser does not reconnect by itself.
            return Response(status_code=204)
        return StreamingResponse(self._stream(_query(request)), media_type="text/event-stream")

    async def _stream(self, query: pages.Query) -> AsyncIterator[str]:
        """Streams the picture's number at each change, with comments in between.

        With ``replicas`` in the query it also reads their reports, for an open page of health.
        """
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
                    if "replicas" in query:
                        await self.source.refresh_notes()
                    continue
                if not self.shown.ended:
                    yield f"event: shown\ndata: {number}\n\n"
        finally:
            self.streams -= 1

    async def _ready(self, request: Request) -> Response:
        del request
        if self.shown.picture is EMPTY:
            return PlainTextResponse("nothing has been read yet: try again in a moment", 503)
        return PlainTextResponse("ok")


def _csv(picture: Picture, query: pages.Query) -> str:
    return "".join(violations.as_csv(pages.found_violations(picture, query), picture.by_key))


def _visitor(request: Request) -> Visitor | None:
    visitor: Visitor | None = request.scope.get(VISITOR)
    return visitor


def _sent(sent: Sent) -> Response:
    answer = RedirectResponse(sent.address, 303)
    for cookie in sent.cookies:
        answer.headers.append("set-cookie", cookie)
    return answer


def _query(request: Request) -> pages.Query:
    return dict(request.query_params.items())


async def _form(request: Request) -> dict[str, str]:
    """Returns the fields of a browser's form, or of a JSON object of texts."""
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
            fields = json.loads(text)
            return (
                {name: value for name, value in fields.items() if isinstance(value, str)}
                if isinstance(fields, dict)
                else {}
            )
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=20, errors="strict"))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the form cannot be read") from None
