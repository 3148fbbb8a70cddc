"""A gate on the way to the API server that holds chosen requests back, and notes the answers.

What it lets through, and every answer but those of :meth:`Gate.refuse`, is the real API server's. Who comes
through it needs no credentials; it has an administrator's.
"""

import asyncio
import contextlib
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.cluster import Api, write_kubeconfig
from tests.patience import until
from tests.system.loop_thread import LoopThread

Selector = Callable[[str], bool]

_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length"})


class Gate(LoopThread):
    """A port of loopback in front of an API server."""

    def __init__(self, api: Api, folder: Path) -> None:
        self._api = api
        self.kubeconfig = folder / "kubeconfig-of-the-gate"
        self.waiting = 0
        self.answers: list[tuple[str, int]] = []
        """Path with query, and status, of each answer."""
        self._holds: Selector = lambda _: False
        self._withholds: Selector = lambda _: False
        self._refusal: dict[str, Any] | None = None
        self._before: tuple[Selector, Callable[[], None]] | None = None
        self._opened = asyncio.Event()
        super().__init__()

    def before(self, selects: Selector, act: Callable[[], None]) -> None:
        """From now on, do something just before a selected request is let through."""
        self._before = selects, act

    def hold(self, selects: Selector) -> None:
        """From now on, keep requests whose path with query is selected waiting."""
        self._holds = selects

    def withhold(self, selects: Selector) -> None:
        """From now on, keep back what follows in answers that have begun, as in watches."""
        self._withholds = selects

    def refuse(self, code: int, message: str) -> None:
        """From now on, answer every request like this, and end a watch at its next event."""
        self._refusal = {"kind": "Status", "apiVersion": "v1", "code": code, "message": message}

    def wait_for(self, number: int) -> None:
        """Wait until so many requests wait."""
        until(lambda: self.waiting >= number, f"{number} requests wait at the gate")

    @property
    def is_holding(self) -> bool:
        """Whether it was not opened yet."""
        return not self._opened.is_set()

    def open(self) -> None:
        """Let through what waits, and hold nothing back any more."""
        self._refusal = None
        self._holds = self._withholds = lambda _: False
        self.call(self._opened)

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Forward requests to the API server."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._api.context)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def forward(request: web.BaseRequest) -> web.StreamResponse:
                return await self._forward(session, request)

            runner = web.ServerRunner(web.Server(forward), shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            ((host, port),) = runner.addresses
            write_kubeconfig(self.kubeconfig, f"http://{host}:{port}")
            started.set()
            await stop.wait()
            await runner.cleanup()

    async def _forward(
        self, session: aiohttp.ClientSession, request: web.BaseRequest
    ) -> web.StreamResponse:
        path = request.path_qs
        if self._refusal is not None:
            return web.json_response(self._refusal, status=self._refusal["code"])
        if self._holds(path):
            self.waiting += 1
            await self._opened.wait()
        if self._before is not None and self._before[0](path):
            await asyncio.to_thread(self._before[1])
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _HOP_BY_HOP
        }
        async with session.request(
            request.method,
            self._api.server + path,
            headers=headers,
            # A policy may be larger than what is taken, or sent, as one value without a complaint.
            data=io.BytesIO(body) if (body := await request.content.read()) else None,
            allow_redirects=False,
        ) as upstream:
            self.answers.append((path, upstream.status))
            kept = {
                name: value
                for name, value in upstream.headers.items()
                if name.lower() not in _HOP_BY_HOP
            }
            answer = web.StreamResponse(status=upstream.status, headers=kept)
            with contextlib.suppress(ConnectionResetError):  # the client has left its watch
                await answer.prepare(request)
                async for data in upstream.content.iter_any():
                    if self._refusal is not None:
                        break
                    if self._withholds(path):
                        await self._opened.wait()
                    await answer.write(data)
                await answer.write_eof()
            return answer
