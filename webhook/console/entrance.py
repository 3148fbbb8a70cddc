"""Refuses bad requests before any page is made, and sends visitors to sign in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from webhook.console.gate import HEADERS, PROBES, refusal
from webhook.console.visitor import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from webhook.console.login import Login

QUERY_CHARACTERS_MAX: Final = 8192
VISITOR: Final = "visitor"
"""The key of the visitor in a request's scope, if the console has a login."""

OPEN: Final = frozenset({BEGIN, END})
"""Paths that need no session, as they show nothing of the cluster."""

_STATIC: Final = "/static/"


class Entrance:
    """Refuses bad requests, identifies visitors, and adds security headers to responses."""

    def __init__(self, inner: ASGIApp, hosts: Collection[str], login: Login | None) -> None:
        self._inner = inner
        self._hosts = frozenset(name.lower() for name in hosts)
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._stopped(scope) or self._sent(scope)
        if answer is None:
            await self._inner(scope, receive, headed)
        else:
            await answer(scope, receive, headed)

    def _stopped(self, scope: Scope) -> Response | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refused = refusal(scope["method"], scope["path"], headers, self._hosts)
        if refused is None and len(scope["query_string"]) > QUERY_CHARACTERS_MAX:
            refused = 414, "the query is too long"
        return None if refused is None else PlainTextResponse(refused[1], refused[0])

    def _sent(self, scope: Scope) -> Response | None:
        """Stores the visitor in the scope; returns a redirect or 401 if a sign-in is needed."""
        if self._login is None:
            return None
        headers = Headers(scope=scope)
        scope[VISITOR] = self._login.visitor(headers.get("cookie", ""))
        path = scope["path"]
        is_open = path in PROBES or path.startswith(_STATIC) or path in OPEN | {self._login.path}
        if scope[VISITOR] is not None or is_open:
            return None
        if not _is_navigation(scope["method"], headers):
            body = {"status": 401, "error": "sign in: the session has ended, or there was none"}
            return _json(body, 401)
        query = scope["query_string"].decode("latin-1")
        back = f"{quote(path)}?{query}" if query else quote(path)
        return RedirectResponse(f"{BEGIN}?{urlencode({'to': back})}", 303)


def _is_navigation(method: str, headers: Headers) -> bool:
    """Whether a browser loads a page for a person, so that a redirect makes sense."""
    return (
        method in {"GET", "HEAD"}
        and headers.get("sec-fetch-mode", "navigate") == "navigate"
        and "text/html" in headers.get("accept", "")
    )


def _json(document: Any, status: int) -> Response:
    return JSONResponse(document, status)
