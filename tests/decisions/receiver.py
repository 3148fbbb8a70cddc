"""An HTTP sink that fails on purpose, and remembers what it answered 200 for."""

import gzip
import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from tests.patience import PATIENCE_SECONDS

Mode = Literal["ok", "refusing", "resetting", "slow", "down"]


class Receiver:
    """Listens on loopback; ``mode`` says how the next request is treated.

    ``poison`` names ids of records for which a whole batch is answered 400.
    """

    def __init__(self, *, poison: frozenset[str] = frozenset()) -> None:
        self.mode: Mode = "ok"
        self.poison = poison
        self.records: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.retry_after = ""
        self.changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that is killed while it waits is no error of ours."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/decisions"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.set("ok")
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def set(self, mode: Mode) -> None:
        """Change the treatment; requests held up by ``slow`` go on."""
        with self.changed:
            self.mode = mode
            self.changed.notify_all()

    def wait_for(self, count: int, timeout: float = PATIENCE_SECONDS) -> list[dict[str, Any]]:
        """The records, once there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.records) >= count, timeout), len(
                self.records
            )
            return list(self.records)

    def wait_for_requests(
        self, count: int, timeout: float = PATIENCE_SECONDS
    ) -> list[dict[str, Any]]:
        """Waits for ``count`` requests and returns all of them, with failed ones."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, timeout)
            return list(self.requests)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.changed:
            mode = self.mode
            self.requests.append({"headers": dict(handler.headers), "body": body, "mode": mode})
            self.changed.notify_all()
            if mode == "slow":
                self.changed.wait_for(lambda: self.mode != "slow", 0.3)
        if mode in {"resetting", "down"}:
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.close_connection = True
            handler.connection.close()
            return
        if mode == "refusing":
            self._reply(handler, 503)
            return
        if handler.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if handler.headers["Content-Type"] == "application/x-ndjson":
            records = [json.loads(line) for line in body.splitlines()]
        else:
            document = json.loads(body)  # a chat's message is no list
            records = document if isinstance(document, list) else [document]
        if any(record.get("id") in self.poison for record in records):
            self._reply(handler, 400)
            return
        with self.changed:
            self.records += records
            self.changed.notify_all()
        self._reply(handler, 200)

    def _reply(self, handler: BaseHTTPRequestHandler, code: int) -> None:
        handler.send_response(code)
        if self.retry_after and code != 200:
            handler.send_header("Retry-After", self.retry_after)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


QUICK = {"backoffInitialSeconds": 0.01, "backoffMaxSeconds": 0.05}
"""The batches of a sink that tests keep waiting."""


def http_sink(receiver: Receiver, **settings: Any) -> dict[str, Any]:
    """A sink that sends to the receiver."""
    return {
        "name": "http",
        "type": "http",
        "settings": {"url": receiver.url, **settings},
        "batch": QUICK,
    }
