"""Locust itself, for a few seconds: with our server, and with one that is wrong and stalls."""

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.stalling import StallingWebhook, stalling_webhook

ROOT = Path(__file__).parents[2]
LOCUST = ROOT / ".venv-load" / "bin" / "locust"
STALL_SECONDS = 1.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not LOCUST.exists(), reason="there is no .venv-load: `make .venv-load/.done` makes it"
    ),
]


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[StallingWebhook]:
    """A webhook that stalls."""
    with stalling_webhook(tmp_path, STALL_SECONDS) as running:
        yield running


@pytest.fixture
def url(webhook: StallingWebhook) -> str:
    """Returns the webhook's address."""
    return webhook.address


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
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("case", ["direct", pytest.param("indirect", marks=pytest.mark.programs)])
def test_a_short_run_with_our_own_server_holds_and_leaves_reports(
    case: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every kind of request is answered as Gatekeeper would, also through a real API server."""
    if case == "indirect":
        request.getfixturevalue("program")("testcluster")
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
        timeout=PATIENCE_SECONDS,
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


def test_an_open_loop_charges_a_stall_to_all_that_it_kept_waiting(
    webhook: StallingWebhook, url: str, tmp_path: Path
) -> None:
    """A closed loop sees one slow request, a schedule those that were due meanwhile."""
    load(url, tmp_path / "closed")
    webhook.seen = 0
    load(url, tmp_path / "open", "--rate=20")
    closed, scheduled = (
        float(rows(tmp_path / name)["Aggregated"]["90%"]) for name in ("closed", "open")
    )
    # Twenty of the eighty were due during the stall: the eighth slowest waited about 0.6 s.
    assert closed < STALL_SECONDS * 1000 / 3 <= scheduled
