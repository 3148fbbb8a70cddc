"""A console's application, asked as a browser asks it, without a port."""

import asyncio
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp, Message

from webhook.api.encoding import decode


class Answered:
    """A response."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def text(self) -> str:
        """A page."""
        return self.body.decode()

    def json(self) -> Any:
        """A page's document."""
        return decode(self.body)


def ask(
    application: ASGIApp,
    path: str,
    query: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
    **headers: str,
) -> Answered:
    """A page, or what comes of a form."""
    body = b"" if form is None else urlencode(form).encode()
    sent: list[Message] = []
    given = {"host": "localhost", "accept": "text/html", **headers}
    if form is not None:
        given["content-type"] = "application/x-www-form-urlencoded"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if form is None else "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(query or {}).encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def answer() -> None:
        await application(scope, receive, send)

    asyncio.run(answer())
    first, *rest = sent
    return Answered(first["status"], b"".join(part.get("body", b"") for part in rest))
