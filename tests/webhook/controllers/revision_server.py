"""An API server of PolicyRevisions alone, in memory."""

import asyncio
import json
from itertools import count
from typing import Any

from tests.webhook.cluster.fault_server import FaultServer, status


class RevisionServer(FaultServer):
    """An API server that keeps PolicyRevisions."""

    def __init__(self):
        super().__init__([])
        self.kept: dict[str, Any] = {}
        self.versions = count(1)
        self.refuses = False
        self.held_name = ""
        """Of a revision whose requests wait for ``opened``."""
        self.opened, self.waits = asyncio.Event(), asyncio.Event()

    async def serve(self, reader, writer):
        """Serves a connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b" ", 2)
                headers = dict(
                    line.lower().split(b": ", 1)
                    for line in head.split(b"\r\n")[1:]
                    if b": " in line
                )
                body = await reader.readexactly(int(headers.get(b"content-length", 0)))
                document = json.loads(body) if body else {}
                name = path.decode().partition("?")[0].rpartition("/")[2]
                self.requests.append((method.decode(), name))
                if self.held_name and self.held_name in (name, document_name(document)):
                    self.waits.set()
                    await self.opened.wait()
                await self._answer(writer, *self._answered(method, name, document))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _answered(self, method, name, document):
        if self.refuses:
            return status(403)
        if method == b"POST":
            name = document["metadata"]["name"]
            if name in self.kept:
                return status(409)
            return self._keep(name, document)
        if name not in self.kept:
            return status(404)
        if method == b"PATCH":
            return self._keep(name, {**self.kept[name], "status": document["status"]})
        if method == b"DELETE":
            del self.kept[name]
            return 200, [b"{}"], "end"
        return 200, [json.dumps(self.kept[name]).encode()], "end"

    def _keep(self, name, document):
        metadata = {**document["metadata"], "resourceVersion": str(next(self.versions))}
        self.kept[name] = {**document, "metadata": metadata}
        return 200, [json.dumps(self.kept[name]).encode()], "end"


def document_name(document):
    """The name of what is sent; empty for nothing."""
    return document.get("metadata", {}).get("name", "")
