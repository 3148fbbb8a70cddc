"""Plain ASGI applications with fixed paths: probes, scrapes and profiles.

Starlette's routes would take 3 MiB and a twelfth of a start's CPU for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from webhook.server.http.exchange import Receive, Send
    from webhook.server.http.responder import HttpHeader

    AnswerPage = Callable[[dict[str, Any]], Coroutine[Any, Any, "Page"]]
    """Returns the page for the scope of a request."""

TEXT: Final = b"text/plain; charset=utf-8"

_READS: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer: its body, code and headers."""

    body: bytes
    status: int = 200
    content_type: bytes = TEXT
    headers: tuple[HttpHeader, ...] = ()


class PageApplication:
    """Answers GET and HEAD of its paths; a slash at the end changes nothing."""

    def __init__(self, answers: Mapping[str, AnswerPage]) -> None:
        self.answers = {path.rstrip("/"): answer for path, answer in answers.items()}
        """The function of each path."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Answers one request."""
        answer = self.answers.get(scope["path"].rstrip("/"))
        if answer is None:
            page = Page(b"Not Found", 404)
        elif scope["method"] not in _READS:
            page = Page(b"Method Not Allowed", 405, headers=((b"allow", b"GET, HEAD"),))
        else:
            page = await answer(scope)
        headers = ((b"content-type", page.content_type), *page.headers)
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": page.body})


def query_of(scope: dict[str, Any]) -> dict[str, str]:
    """Returns the parameters of a request's query; the last of equal ones counts."""
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
