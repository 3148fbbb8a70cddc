"""Locust itself, for a few seconds: with our server, and with one that is wrong and stalls."""

import csv
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program
from webhook.certs import self_signed

ROOT = Path(__file__).parents[2]
LOCUST = ROOT / ".venv-load" / "bin" / "locust"
STALL_SECONDS = 1.0
LIMIT_SECONDS = 100

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not LOCUST.exists(), reason="there is no .venv-load: `make .venv-load/.done` makes it"
    ),
]


class Stalling(http.server.BaseHTTPRequestHandler):
    """Allows everything, what must be denied as well; stalls at the tenth request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen = 0

    def do_POST(self) -> None:
        """One review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Stalling.seen += 1
        if Stalling.seen == 10:
            time.sleep(STALL_SECONDS)
        answer = json.dumps({"response": {"uid": review["request"]["uid"], "allowed": True}})
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a webhook that stalls."""
    Stalling.seen = 0
    pair = self_signed(["localhost"], datetime.now(UTC))
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def rows(prefix: Path) -> dict[str, dict[str, str]]:
    """The rows of Locust's report, by name."""
    with Path(f"{prefix}_stats.csv").open() as report:
        return {row["Name"]: row for row in csv.DictReader(report)}


def load(url: str, prefix: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A run of one user against a server that is there."""
    environment = {name: value for name, value in os.environ.items() if "WADDLE" not in name}
    return subprocess.run(
        [
            LOCUST,
            f"--locustfile={ROOT / 'loadtest' / 'locust' / 'direct.py'}",
            "--headless",
            f"--targets={url}",
            f"--csv={prefix}",
            "--users=1",
            "--run-time=4s",
            *flags,
        ],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("case", ["direct", "indirect"])
def test_a_short_run_with_our_own_server_holds_and_leaves_reports(
    case: str, tmp_path: Path
) -> None:
    """Every kind of request is answered as Gatekeeper would, also through a real API server."""
    if case == "indirect":
        program("testcluster")
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "loadtest.locust", f"--case={case}", f"--output={tmp_path}"),
            # The machine may be busy: answers are judged here, not their time.
            *("--users=2", "--run-time=4s", "--p99-ms-max=0"),
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "thresholds held" in finished.stderr
    found = rows(tmp_path / f"locust-{case}")
    assert {"pod", "deployment update"} <= set(found)
    assert found["Aggregated"]["Failure Count"] == "0"
    assert "<html" in (tmp_path / f"locust-{case}.html").read_text()[:1000]


def test_wrong_verdicts_fail_a_run_whatever_ratio_is_tolerated(url: str, tmp_path: Path) -> None:
    finished = load(url, tmp_path / "run", "--failure-ratio-max=1", "--p99-ms-max=0")
    assert finished.returncode == 1
    assert "wrong verdict: allowed, not denied" in finished.stderr
    found = rows(tmp_path / "run")
    assert found["pod bad"]["Failure Count"] == found["pod bad"]["Request Count"] != "0"
    assert found["pod"]["Failure Count"] == "0"


def test_an_open_loop_charges_a_stall_to_all_that_it_kept_waiting(url: str, tmp_path: Path) -> None:
    """A closed loop sees one slow request, a schedule those that were due meanwhile."""
    load(url, tmp_path / "closed")
    Stalling.seen = 0
    load(url, tmp_path / "open", "--rate=20")
    closed, scheduled = (
        float(rows(tmp_path / name)["Aggregated"]["90%"]) for name in ("closed", "open")
    )
    # Twenty of the eighty were due during the stall: the eighth slowest waited about 0.6 s.
    assert closed < STALL_SECONDS * 1000 / 3 <= scheduled
