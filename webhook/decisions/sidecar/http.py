"""The sidecar's own little HTTP server: /metrics, /healthz, /readyz.

A web framework would cost more memory than the queue.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEAD_BYTES_MAX: Final = 8192
READ_SECONDS: Final = 5.0
CONNECTIONS_MAX: Final = 64
"""Of more the oldest is closed: who scrapes or probes asks at once, and is answered at once."""


async def serve(
    address: str, routes: Mapping[str, Callable[[], tuple[int, bytes]]]
) -> asyncio.Server:
    """Answer GET for each route with a status and a text; ``address`` is ``host:port``."""
    host, _, port = address.rpartition(":")
    open_: dict[asyncio.StreamWriter, None] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(open_) >= CONNECTIONS_MAX:
            oldest = next(iter(open_))
            del open_[oldest]
            oldest.transport.abort()
        open_[writer] = None
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_respond(head, routes))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # whoever asked is gone, or never asked
        finally:
            open_.pop(writer, None)
            writer.close()

    return await asyncio.start_server(
        answer, host.strip("[]") or None, int(port), limit=HEAD_BYTES_MAX
    )


def _respond(head: bytes, routes: Mapping[str, Callable[[], tuple[int, bytes]]]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    if method not in {b"GET", b"HEAD"}:
        status, body = 405, b"method not allowed\n"
    elif path not in routes:
        status, body = 404, b"not found\n"
    else:
        status, body = routes[path]()
    reason = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
    lines = (
        f"HTTP/1.1 {status} {reason[status]}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    text = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return text if method == b"HEAD" else text + body
