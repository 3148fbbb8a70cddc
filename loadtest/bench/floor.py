"""The limit of what Python on uvicorn can do: a bare application that decodes and answers a constant.

`python -m loadtest.bench.floor PORT HEALTH_PORT CERTIFICATES` serves it. Whatever a webhook does
beyond this (routes, limits, deadlines, the review, metrics) is paid on top of it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import uvicorn
import uvloop

CHUNK_BYTES = 65536


async def application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Decode the body, whatever is in it, and allow: only the uid is the request's."""
    assert scope["type"] == "http"
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    review = orjson.loads(body)
    answer = (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%b",'
        b'"allowed":true,"status":{"metadata":{},"code":200}}}' % review["request"]["uid"].encode()
    )
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(answer)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def ready(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a probe."""
    await reader.read(CHUNK_BYTES)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()


async def serve(port: int, health_port: int, certificates: Path) -> None:
    """Serve until a signal comes."""
    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=port,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        ssl_certfile=str(certificates / "tls.crt"),
        ssl_keyfile=str(certificates / "tls.key"),
    )
    await asyncio.start_server(ready, "127.0.0.1", health_port)
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
