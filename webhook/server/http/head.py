"""What a request's head must be: decided before its body is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools

if TYPE_CHECKING:
    import asyncio

STRANGER: Final = "waddle.stranger"
"""Where the scope of a request has its client's address, if that is known to be no API server."""

HeadRefusal = tuple[int, str, str]
"""Status, reason for the metric, message."""


def connection_scope(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """What the ASGI scopes of all requests of a connection have in common."""
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
    """Whose a connection is, by the address that the system gives of its peer; empty if none."""
    return str(address[0]) if isinstance(address, tuple) and address else ""


def fault_in(
    headers: list[tuple[bytes, bytes]], fields: dict[bytes, bytes], version: str
) -> HeadRefusal | None:
    """Why a request with these header fields is refused; None where it is not.

    ``fields`` are the headers by name, the last of each.
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
        # The parser looks at the last coding only, and hands out what the others have made of it.
        return 400, "malformed", "transfer codings other than chunked are not supported"
    return None


def target_of(url: bytes) -> tuple[bytes, str, bytes, bytes] | None:
    """A target as it came, its path with escapes resolved and without, its query; None if no path."""
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
