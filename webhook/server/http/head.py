"""Checks a request's head before its body is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools

from webhook.server.http.limits import HEADERS_MAX

if TYPE_CHECKING:
    import asyncio

STRANGER: Final = "waddle.stranger"
"""The scope's key of a client's address that is known not to be an API server."""

RequestTarget = tuple[bytes, str, bytes, bytes]
"""The target as received, its decoded path, its raw path and its query."""

HeadRefusal = tuple[int, str, str]
"""Status, metric label and message."""


DIALLED_SECONDS: Final = 0.1
"""The longest time between a handshake and the head of the request that the connection was opened
for. A later request came over an idle connection, and its client counts from then.
"""


class Opening:
    """When a connection was opened, and so since when its client waits for the first answer.

    An API server without a free connection opens one for a request, whose time runs meanwhile; with
    many at once the last waits for the handshakes of all.
    """

    __slots__ = ("_accepted_at", "_greeted_at")

    def __init__(self, accepted_at: float, greeted_at: float) -> None:
        self._accepted_at = accepted_at
        self._greeted_at = greeted_at

    def since(self, now: float) -> float:
        """Returns since when the client of a complete head has been waiting.

        Only the first request waited for the connection.
        """
        waited = now - self._greeted_at
        handshake = self._greeted_at - self._accepted_at
        first, self._accepted_at = self._accepted_at, math.inf
        return min(first, now) if waited <= max(DIALLED_SECONDS, handshake) else now


UNKNOWN: Final = Opening(math.inf, -math.inf)
"""For a connection that is not open yet."""


def connection_scope(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """Returns the part of the ASGI scope that all requests of a connection share."""
    client = transport.get_extra_info("peername")
    server = transport.get_extra_info("sockname")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
        "server": server[:2] if server else None,
        "client": client[:2] if client else None,
        "root_path": "",
    }


def client_of(address: object) -> str:
    """Returns the client of a connection by its peer's address; empty if there is none."""
    return str(address[0]) if isinstance(address, tuple) and address else ""


def fault_in(
    headers: list[tuple[bytes, bytes]], fields: dict[bytes, bytes], version: str
) -> HeadRefusal | None:
    """Returns why a request with these header fields is refused; None if it is not.

    ``fields`` are the headers by name; the last one counts.
    """
    if b"host" not in fields and version == "1.1":
        return 400, "malformed", "malformed HTTP request: no Host header"
    if len(fields) != len(headers):
        # RFC 9112, 3.2; codings given twice are applied twice.
        for name in (b"host", b"transfer-encoding"):
            if sum(1 for given, _ in headers if given == name) > 1:
                shown = name.decode().title()
                return 400, "malformed", f"malformed HTTP request: more than one {shown} header"
    coding = fields.get(b"transfer-encoding")
    if coding is not None and coding.strip().lower() != b"chunked":
        # The parser checks the last coding only, and does not decode the others.
        return 400, "malformed", "transfer codings other than chunked are not supported"
    return None


def size_of(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """Returns the bytes of a head with this target and these fields."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def size_fault(size: int, count: int, bytes_max: int) -> HeadRefusal | None:
    """Returns why a head of this size is refused; None if it is not."""
    if size > bytes_max:
        return 431, "header_too_large", f"request line and headers exceed {bytes_max} bytes"
    if count > HEADERS_MAX:
        return 431, "header_too_large", f"more than {HEADERS_MAX} headers"
    return None


def request_scope(
    connection: dict[str, Any],
    parser: httptools.HttpRequestParser,
    target: RequestTarget,
    headers: list[tuple[bytes, bytes]],
) -> dict[str, Any]:
    """Returns the ASGI scope of a request, made of its connection's."""
    scope = connection.copy()
    scope["http_version"] = parser.get_http_version()
    scope["method"] = parser.get_method().decode("ascii")
    _, scope["path"], scope["raw_path"], scope["query_string"] = target
    scope["headers"] = headers
    return scope


def target_of(url: bytes) -> RequestTarget | None:
    """Returns a request's target, taken apart; None where it has no path."""
    target = url if url.startswith(b"/") else origin_form(url)
    if not target:
        return None
    path, _, query = target.partition(b"?")
    decoded = path.decode("latin-1")
    return url, unquote(decoded) if "%" in decoded else decoded, path, query


def origin_form(target: bytes) -> bytes:
    """The path and query of a target in absolute form (RFC 9112, 3.2.2); empty if it has none."""
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        return b""
    if not url.schema or not url.path:
        return b""
    return url.path + b"?" + url.query if url.query else url.path
