"""A small API server for faults that the real one cannot be made to show.

A test scripts its answers, one for each request, in order; the requests are kept.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.cluster import write_kubeconfig
from webhook.cluster.credentials import load_credentials


def event(kind, name, version, **metadata):
    """A line of a watch."""
    body = {"type": kind, "object": obj(name, version, **metadata)}
    return json.dumps(body).encode() + b"\n"


def obj(name, version, **metadata):
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            **metadata,
        },
    }


def error_event(code):
    """The event that ends a watch."""
    status = {"kind": "Status", "code": code, "message": "scripted", "reason": "Expired"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def listed(*objects, version, token=""):
    """A page of a list."""
    body = {"kind": "ConfigMapList", "items": list(objects)}
    return 200, [json.dumps(body | {"metadata": metadata(version, token)}).encode()], "end"


def metadata(version, token=""):
    """Of a list."""
    return {"resourceVersion": str(version), **({"continue": token} if token else {})}


def status(code, message="scripted"):
    """A refusal."""
    return code, [json.dumps({"kind": "Status", "code": code, "message": message}).encode()], "end"


class FaultServer:
    """Answers from a script: (status, chunks, how it ends).

    It ends with "end" (the body is whole), "tear" (the connection breaks), "hang"
    (nothing more comes, and the connection stays) or "drip" (a byte comes now and then).
    A list of one object, by which a watch compares its version, is no part of the script: it is
    answered with :attr:`version`.
    """

    def __init__(self, script):
        self.script = list(script)
        self.version = 1_000_000
        self.compares = True
        """Whether lists of one object are comparisons, and not what a test is about."""
        self.comparisons = 0
        self.requests = []
        self.done = asyncio.Event()

    async def serve(self, reader, writer):
        """Serves a connection."""
        try:
            while request := await self._request(reader):
                if self.compares and request[1].get("limit") == "1":
                    self.comparisons += 1
                    await self._answer(writer, *listed(version=self.version))
                    continue
                self.requests.append(request)
                if not self.script:
                    self.done.set()
                    await asyncio.Event().wait()
                if await self._answer(writer, *self.script.pop(0)):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _request(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        line = head.split(b" ")[1].decode()
        if body := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
            await reader.readexactly(int(body[1]))
        parts = urlsplit(line)
        query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
        return parts.path, query

    async def _answer(self, writer, code, chunks, ending):
        writer.write(f"HTTP/1.1 {code} Scripted\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        while ending == "drip":
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        if ending == "hang":
            await asyncio.Event().wait()
        if ending == "tear":
            writer.transport.abort()
            return True
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return False


@asynccontextmanager
async def scripted(folder, *script, compares=True):
    """The server, and credentials for it."""
    played = FaultServer(script)
    played.compares = compares
    tasks: set[Any] = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        await played.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    path = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{port}")
    try:
        yield played, load_credentials(path)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
