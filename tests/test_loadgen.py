"""The load generator: what it measures, and that a wrong answer is a failure."""

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from tests.stalling import StallingWebhook, stalling_webhook

STALL_SECONDS = 0.5


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[StallingWebhook]:
    """A webhook that stalls."""
    with stalling_webhook(tmp_path, STALL_SECONDS) as running:
        yield running


@pytest.fixture
def url(webhook: StallingWebhook) -> str:
    """Returns the webhook's address."""
    return f"{webhook.address}/v1/admit"


Load = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def load(program: Programs, tmp_path: Path) -> Load:
    """Runs the generator on a URL with flags: its exit code, its report and its complaint."""
    return partial(run_generator, program("loadgen"), tmp_path)


def run_generator(
    generator: Path, folder: Path, url: str, *flags: str
) -> tuple[int, dict[str, Any], str]:
    body = folder / "body.json"
    body.write_text(json.dumps({"request": {"uid": "u-1"}}))
    finished = subprocess.run(
        [generator, f"-url={url}", f"-body={body}", *flags],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return finished.returncode, json.loads(finished.stdout), finished.stderr


def test_an_open_loop_charges_a_stall_to_all_that_it_kept_waiting(
    webhook: StallingWebhook, load: Load, url: str, tmp_path: Path
) -> None:
    """A closed loop sees one slow request, a schedule sees those that were due meanwhile."""
    code, closed, _ = load(url, "-n=100", "-d=30s", "-expect=allowed")
    assert (code, closed["requests"], closed["failed"]) == (0, 100, 0)
    assert closed["max_ms"] >= STALL_SECONDS * 1000
    webhook.seen = 0
    code, scheduled, _ = load(url, "-n=100", "-d=30s", "-rate=100", "-expect=allowed")
    assert (code, scheduled["requests"], scheduled["failed"]) == (0, 100, 0)
    # Fifty of the hundred were due during the stall, so that the tenth slowest waited about 0.4 s.
    assert closed["p90_ms"] < STALL_SECONDS * 500 <= scheduled["p90_ms"]


def test_a_wrong_verdict_fails_the_run(load: Load, url: str, tmp_path: Path) -> None:
    """Figures of wrong answers are worth nothing."""
    code, report, complaint = load(url, "-n=3", "-expect=denied")
    assert (code, report["wrong"], report["failed"]) == (2, 3, 0)
    assert '"allowed":false' in complaint


def test_no_answer_fails_the_run(load: Load, url: str, tmp_path: Path) -> None:
    """A refused connection is counted apart from a wrong answer."""
    code, report, _ = load(url.replace("https://127.0.0.1", "https://127.0.0.2"), "-n=2")
    assert (code, report["wrong"], report["failed"]) == (2, 0, 2)


def test_each_request_records_when_it_was_due_sent_and_answered(
    load: Load, url: str, tmp_path: Path
) -> None:
    """In the order of the schedule; those that a stall kept waiting were sent late."""
    samples = tmp_path / "samples"
    code, report, _ = load(url, "-n=100", "-d=30s", "-rate=100", f"-samples={samples}")
    lines = [[int(field) for field in line.split()] for line in samples.read_text().splitlines()]
    assert (code, len(lines)) == (0, 100)
    assert [due for due, _, _ in lines] == [number * 10_000 for number in range(100)]
    assert all(0 <= late <= answered for _, late, answered in lines)
    assert max(late for _, late, _ in lines) >= STALL_SECONDS * 500_000
    slowest = max(answered for _, _, answered in lines) / 1000
    assert slowest == pytest.approx(report["max_ms"])
