"""Queues that outlive their pods, and audit runs as whole files."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver, http_sink
from tests.decisions.sender import Sender
from tests.patience import PATIENCE_SECONDS

SEED_OF_FAILURES = "4"
"""With it the first three syncs of `tests.decisions.volatile` fail while the disk does."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(poison=frozenset({"poison"})) as running:
        yield running


def test_each_audit_run_appears_as_one_whole_file(tmp_path: Path) -> None:
    """Ten thousand violations with details, in one file that was never seen half."""
    runs = tmp_path / "runs"
    settings = {"directory": str(runs), "maxRuns": 2}
    sink = {"name": "a", "type": "auditDirectory", "format": "gatekeeper", "settings": settings}
    with Sidecar(tmp_path, [sink]) as sidecar:
        sender = Sender(sidecar.socket)
        number = 1
        for run in ("run-1-p", "run-2-p", "../run-3-p"):
            sender.records(range(number, number + 1), eventType="audit_started", auditID=run)
            sender.records(
                range(number + 1, number + 101),
                eventType="decision",
                auditID=run,
                results=[{"message": "m", "details": {"a": "b" * 50}}] * 100,
            )
            assert not (runs / f"{run}.log").exists()
            number += 102
            sender.records(range(number - 1, number), eventType="audit_finished", auditID=run)
        sender.await_ack(number - 1)
        sidecar.await_metric('sink_lag_records{sink="a"}', 0)
        sender.close()
    files = sorted(runs.glob("[!.]*"))
    assert len(files) == 2
    assert files[1].name == "run-2-p.log"
    assert re.fullmatch("[0-9a-f]{64}.log", files[0].name), "an id is never a path"
    for file in files:
        events = [json.loads(line) for line in file.read_text().splitlines()]
        assert events[0]["message"] == "audit is started"
        assert events[-1]["message"] == "audit is completed"
        assert len(events) == 10_002
        assert events[1]["details"] == {"a": "b" * 50}


def test_a_deleted_pod_s_records_arrive_through_another_sidecar(
    tmp_path: Path, receiver: Receiver
) -> None:
    """Its directory's lock is free, so that it is adopted, drained and removed."""
    receiver.set("refusing")
    queues = tmp_path / "queues"
    sink = http_sink(receiver)
    gone = Sidecar(tmp_path / "gone", [sink], queue={"directory": str(queues / "pod-1")})
    with gone:
        sender = Sender(gone.socket)
        sender.records(range(1, 301))
        sender.await_ack(300)
        gone.kill()
        sender.close()
    settings = {"directory": str(queues / "pod-2"), "adopt": True, "adoptAfterSeconds": 0}
    with Sidecar(tmp_path / "other", [sink], queue=settings) as other:
        receiver.set("ok")
        found = receiver.wait_for(300)
        assert [record["sequence"] for record in found] == list(range(1, 301))
        other.await_metric("adopted_queues_total", 1)
        assert [path.name for path in queues.iterdir()] == ["pod-2"]


def test_a_living_sidecar_s_queue_is_not_adopted(tmp_path: Path, receiver: Receiver) -> None:
    queues = tmp_path / "queues"
    settings = {"adopt": True, "adoptAfterSeconds": 0}
    one = Sidecar(
        tmp_path / "1", [http_sink(receiver)], queue={"directory": str(queues / "a"), **settings}
    )
    two = Sidecar(
        tmp_path / "2", [http_sink(receiver)], queue={"directory": str(queues / "b"), **settings}
    )
    with one, two:
        for sidecar, process in ((one, "p1"), (two, "p2")):
            sender = Sender(sidecar.socket, process=process)
            sender.records(range(1, 11))
            sender.await_ack(10)
            sender.close()
        receiver.wait_for(20)
        assert sorted(path.name for path in queues.iterdir()) == ["a", "b"]
        assert one.metric("adopted_queues_total") == two.metric("adopted_queues_total") == 0
        # The loss in a queue that is adopted later rises from a number that was scraped.
        for name in ("dropped", "corrupt", "dead_lettered"):
            assert one.metric(f'sink_{name}_total{{queue="adopted",sink="http"}}') == 0


def test_a_sidecar_whose_disk_fails_at_its_start_waits_for_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    """It keeps its records: a sidecar that ended would be restarted only minutes later."""
    receiver.set("refusing")
    full = tmp_path / "disk-fails"
    sidecar = Sidecar(
        tmp_path,
        [http_sink(receiver)],
        command=(sys.executable, "-m", "tests.decisions.volatile"),
        queue={"directory": str(tmp_path / "queue")},
    )
    try:
        sidecar.start("1", str(full)).ready()
        sender = Sender(sidecar.socket)
        sender.records(range(1, 11))
        sender.await_ack(10)
        sender.close()
        sidecar.kill()
        full.touch()
        sidecar.start(SEED_OF_FAILURES, str(full))
        until = time.monotonic() + PATIENCE_SECONDS
        while sidecar.log.read_text().count("the queue cannot be opened; trying again") < 2:
            assert time.monotonic() < until, sidecar.log.read_text()
            assert sidecar.process is not None
            assert sidecar.process.poll() is None, sidecar.log.read_text()
            time.sleep(0.01)
        full.unlink()
        sidecar.ready()
        receiver.set("ok")
        assert [record["sequence"] for record in receiver.wait_for(10)] == list(range(1, 11))
    finally:
        sidecar.stop()


def test_a_report_is_whole_after_a_kill_before_the_cursor_was_saved(tmp_path: Path) -> None:
    """Records after the cursor are delivered again, to a report that exists already."""
    runs = tmp_path / "runs"
    sink = {"name": "a", "type": "auditDirectory", "settings": {"directory": str(runs)}}
    sidecar = Sidecar(tmp_path, [sink])
    report = runs / "run-p.log"
    with sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 2), eventType="audit_started", auditID="run-p")
        sender.records(range(2, 600), eventType="decision", auditID="run-p")
        sender.records(range(600, 601), eventType="audit_finished", auditID="run-p")
        until = time.monotonic() + PATIENCE_SECONDS
        while not report.exists():
            assert time.monotonic() < until, sidecar.log.read_text()
            time.sleep(0.001)
        sidecar.kill()
        sender.close()
        for cursor in sidecar.queue.glob("*.cursor"):
            cursor.unlink()  # as a disk would have it that had not synced it
        sidecar.start().ready()
        sidecar.await_metric('sink_lag_records{sink="a"}', 0)
    found = [json.loads(line)["sequence"] for line in report.read_text().splitlines()]
    assert found == list(range(1, 601))
    assert [path.name for path in runs.glob("[!.]*")] == [report.name]
