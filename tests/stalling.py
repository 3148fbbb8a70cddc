"""A webhook over TLS that allows everything, what must be denied as well, and stalls once."""

import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from webhook.certificates.pairs import self_signed

STALLS_AT = 10
"""The request that waits."""


@dataclass
class StallingWebhook:
    """The address, and the count of requests: set to 0, it stalls once more."""

    address: str = ""
    seen: int = 0


@contextmanager
def stalling_webhook(folder: Path, stall_seconds: float) -> Iterator[StallingWebhook]:
    """Yields a webhook that runs while this block does; its key is kept in the folder."""
    webhook = StallingWebhook()

    class Webhook(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # The head and the body go out in two writes: without this each answer waits for an ACK.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Answers a review."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            webhook.seen += 1
            if webhook.seen == STALLS_AT:
                time.sleep(stall_seconds)
            response = {"uid": review["request"]["uid"], "allowed": True}
            answer = json.dumps({"response": response}, separators=(",", ":")).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    pair = self_signed(["localhost"], datetime.now(UTC))
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        webhook.address = f"https://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield webhook
        finally:
            server.shutdown()
            thread.join()
