"""The load generator: what it measures, and that a wrong answer is a failure."""

import http.server
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program
from webhook.certs import self_signed

STALL_SECONDS = 0.5


class Webhook(http.server.BaseHTTPRequestHandler):
    """Allows everything; it stalls once, at the tenth request."""

    protocol_version = "HTTP/1.1"
    # The head and the body go out in two writes: without this each answer waits for an ACK.
    disable_nagle_algorithm = True
    seen = 0

    def do_POST(self) -> None:
        """One review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Webhook.seen += 1
        if Webhook.seen == 10:
            time.sleep(STALL_SECONDS)
        uid = review["request"]["uid"]
        answer = json.dumps({"response": {"uid": uid, "allowed": True}}, separators=(",", ":"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a webhook that stalls."""
    Webhook.seen = 0
    pair = self_signed(["localhost"], datetime.now(UTC))
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/v1/admit"
        server.shutdown()
        thread.join()


def load(url: str, folder: Path, *flags: str) -> tuple[int, dict[str, Any], str]:
    """The generator's exit code, its report and its complaint."""
    body = folder / "body.json"
    body.write_text(json.dumps({"request": {"uid": "u-1"}}))
    finished = subprocess.run(
        [program("loadgen"), f"-url={url}", f"-body={body}", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return finished.returncode, json.loads(finished.stdout), finished.stderr


def test_an_open_loop_charges_a_stall_to_all_that_it_kept_waiting(url: str, tmp_path: Path) -> None:
    """A closed loop sees one slow request, a schedule sees those that were due meanwhile."""
    code, closed, _ = load(url, tmp_path, "-n=100", "-d=30s", "-expect=allowed")
    assert (code, closed["requests"], closed["failed"]) == (0, 100, 0)
    assert closed["max_ms"] >= STALL_SECONDS * 1000
    Webhook.seen = 0
    code, scheduled, _ = load(url, tmp_path, "-n=100", "-d=30s", "-rate=100", "-expect=allowed")
    assert (code, scheduled["requests"], scheduled["failed"]) == (0, 100, 0)
    # Fifty of the hundred were due during the stall, so that the tenth slowest waited about 0.4 s.
    assert closed["p90_ms"] < STALL_SECONDS * 500 <= scheduled["p90_ms"]


def test_a_wrong_verdict_fails_the_run(url: str, tmp_path: Path) -> None:
    """Figures of wrong answers are worth nothing."""
    code, report, complaint = load(url, tmp_path, "-n=3", "-expect=denied")
    assert (code, report["wrong"], report["failed"]) == (2, 3, 0)
    assert '"allowed":false' in complaint


def test_no_answer_fails_the_run(url: str, tmp_path: Path) -> None:
    """A refused connection is counted apart from a wrong answer."""
    code, report, _ = load(url.replace("https://127.0.0.1", "https://127.0.0.2"), tmp_path, "-n=2")
    assert (code, report["wrong"], report["failed"]) == (2, 0, 2)


def test_each_request_is_told_when_it_was_due_sent_and_answered(url: str, tmp_path: Path) -> None:
    """In the order of the schedule; those that a stall kept waiting were sent late."""
    samples = tmp_path / "samples"
    code, report, _ = load(url, tmp_path, "-n=100", "-d=30s", "-rate=100", f"-samples={samples}")
    lines = [[int(field) for field in line.split()] for line in samples.read_text().splitlines()]
    assert (code, len(lines)) == (0, 100)
    assert [due for due, _, _ in lines] == [number * 10_000 for number in range(100)]
    assert all(0 <= late <= answered for _, late, answered in lines)
    assert max(late for _, late, _ in lines) >= STALL_SECONDS * 500_000
    slowest = max(answered for _, _, answered in lines) / 1000
    assert slowest == pytest.approx(report["max_ms"])
