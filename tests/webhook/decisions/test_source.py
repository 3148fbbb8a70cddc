"""Records read back: from files as they are written, from queues, and among lines that are none."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import yaml

from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from webhook.api import names
from webhook.decisions import source
from webhook.decisions.comparison import compare
from webhook.decisions.sidecar.disk import OSDisk
from webhook.decisions.sidecar.log import LogLimits, SegmentLog
from webhook.decisions.source import RecordSource

GOOD: dict[str, Any] = {
    "eventType": "decision",
    "podUID": "u",
    "process": "p",
    "sequence": 1,
    "verdict": "deny",
    "results": [{"constraint": {"kind": "A", "name": "a"}, "message": "no"}],
}

ODD: list[Any] = [
    [],
    5,
    {**GOOD, "results": [1]},
    {**GOOD, "results": None},
    {**GOOD, "results": [{"constraint": None}]},
    {**GOOD, "errors": 5},
    {**GOOD, "verdict": []},
    {**GOOD, "eventType": {}},
    {**GOOD, "enforcementPoint": []},
    {**GOOD, "podUID": []},
    {**GOOD, "sequence": "1"},
    {**GOOD, "timestamp": 5},
    {**GOOD, "specVersion": "2.0"},
    {**GOOD, "specVersion": "10.0"},
    {"level": "info", "logger": "sidecar", "msg": "sidecar ready", "records": 0},
]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file of records, among others of all shapes, and one that is cut off."""
    path = tmp_path / "records"
    text = b"\n".join([orjson.dumps(one) for one in (*ODD, GOOD)])
    path.write_bytes(text + b"\n\n" + orjson.dumps(GOOD)[:-5])
    return path


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_minor_version_adds_fields_alone(tmp_path: Path, version: str) -> None:
    record = {**GOOD, "specVersion": version, "new": []}
    (tmp_path / "records").write_bytes(orjson.dumps(record))
    assert list(RecordSource(tmp_path / "records")) == [record]


@pytest.mark.parametrize("follow", [False, True])
def test_a_compressed_file_is_read_to_its_end(lines: Path, follow: bool) -> None:
    lines.write_bytes(gzip.compress(lines.read_bytes()))
    read = RecordSource(lines, follow=follow)
    assert list(read) == [GOOD]
    assert read.unreadable == len(ODD) + 1


@pytest.mark.parametrize("compressed", [False, True])
def test_standard_input_may_be_compressed(lines: Path, compressed: bool) -> None:
    if compressed:
        lines.write_bytes(gzip.compress(lines.read_bytes()))
    with lines.open() as stdin:
        result = waddle("decisions", "tail", stdin=stdin)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [" DENY   AUDIT  (unnamed)", "    [A/a] : no"]
    assert f"{len(ODD) + 1} lines" in result.stderr


def test_a_damaged_compressed_standard_input_is_named(lines: Path) -> None:
    lines.write_bytes(gzip.compress(lines.read_bytes() * 100)[:-20])
    with lines.open() as stdin:
        result = waddle("decisions", "stats", stdin=stdin)
    assert result.returncode == 2
    assert "-: the compressed file is damaged" in result.stderr


@pytest.mark.parametrize("damage", ["cut", "changed", "followed", "begun"])
def test_a_damaged_compressed_file_is_named(lines: Path, damage: str) -> None:
    whole = gzip.compress(lines.read_bytes() * 100)
    lines.write_bytes(
        {
            "cut": whole[:-20],
            "changed": whole[:50] + b"\xff" * 50 + whole[100:],
            "followed": whole + b"{}",
            "begun": whole[:2],
        }[damage]
    )
    with pytest.raises(OSError, match="damaged or not complete"):
        list(RecordSource(lines))
    result = waddle("decisions", "stats", lines)
    assert result.returncode == 2
    assert f"{lines}: the compressed file is damaged" in result.stderr


def test_what_has_not_the_shape_of_a_record_is_counted_as_none(lines: Path) -> None:
    read = RecordSource(lines)
    assert list(read) == [GOOD]
    assert read.unreadable == len(ODD) + 1


@pytest.mark.parametrize("command", ["tail", "stats"])
def test_such_lines_end_no_command_and_are_reported(lines: Path, command: str) -> None:
    """Such lines ended the command with a traceback."""
    found = waddle("decisions", command, lines)
    assert found.returncode == 0
    assert "A/a" in found.stdout
    assert f"skipped, not records of version 1: {len(ODD) + 1} lines" in found.stderr


def test_the_actions_of_a_scoped_violation_are_shown(tmp_path: Path) -> None:
    """The word ``scoped`` does not tell what became of the request."""
    (result,) = GOOD["results"]
    scoped = result | {"enforcementAction": "scoped"}
    listed = scoped | {"enforcementActions": ["deny", "warn"]}
    path = tmp_path / "records"
    path.write_bytes(orjson.dumps({**GOOD, "results": [listed, scoped]}))
    shown = waddle("decisions", "tail", path).stdout
    assert "[A/a] deny, warn: no" in shown
    assert "[A/a] scoped: no" in shown


def ends_after(number: int, then: Callable[[], object]) -> Callable[[float], None]:
    """A sleep that does something the first time, and ends what follows for ever at last."""
    left = [number]

    def sleep(_seconds: float) -> None:
        if left[0] == number:
            then()
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    return sleep


def followed(records: Iterator[Any]) -> list[int]:
    """Returns the sequence numbers read until the interruption."""
    found: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(record["sequence"] for record in records)
    return found


def test_a_file_is_followed_also_where_a_line_is_written_in_two_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records"
    first, second = (orjson.dumps({**GOOD, "sequence": number}) for number in (1, 2))
    path.write_bytes(first + b"\n" + second[:10])

    def go_on() -> None:
        with path.open("ab") as file:
            file.write(second[10:] + b"\n")

    monkeypatch.setattr(source, "time", SimpleNamespace(sleep=ends_after(2, go_on)))
    assert followed(iter(RecordSource(path, follow=True))) == [1, 2]


@pytest.mark.parametrize("emptied", [False, True])
def test_a_file_is_followed_into_the_one_that_is_begun_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emptied: bool
) -> None:
    """The sink rotates it like this: the old file's last records are not left out."""
    path = tmp_path / "records"
    lines = [orjson.dumps({**GOOD, "sequence": number}) + b"\n" for number in range(1, 5)]
    path.write_bytes(lines[0] + lines[1])

    def go_on() -> None:
        if emptied:
            path.write_bytes(lines[3])
            return
        with path.open("ab") as file:
            file.write(lines[2])
        path.rename(tmp_path / "records.1")
        path.write_bytes(lines[3])

    monkeypatch.setattr(source, "time", SimpleNamespace(sleep=ends_after(3, go_on)))
    found = followed(iter(RecordSource(path, follow=True)))
    assert found == ([1, 2, 4] if emptied else [1, 2, 3, 4])


def test_a_queue_is_followed_into_segments_that_are_begun_and_past_those_that_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = LogLimits(segment_bytes=64 * 1024, min_free_bytes=0)
    log = SegmentLog(OSDisk(), tmp_path, limits)

    def append(number: int) -> None:
        record = {**GOOD, "sequence": number, "x": "y" * 40_000}
        log.append([orjson.dumps(record)], {})

    append(1)

    def go_on() -> None:
        append(2)
        append(3)
        (tmp_path / f"{9:020d}.segment").write_bytes(b"")  # just begun

    monkeypatch.setattr(source, "time", SimpleNamespace(sleep=ends_after(2, go_on)))
    assert followed(iter(RecordSource(tmp_path, follow=True))) == [1, 2, 3]
    log.close()


def test_records_without_a_number_are_compared_each() -> None:
    """All of another sender's but the first were taken for that one again."""
    record = {key: value for key, value in GOOD.items() if key != "sequence"}
    records = [{**record, "enforcementPoint": names.WEBHOOK}] * 3
    assert compare(records, []).ours.total() == 3
    numbered = [{**GOOD, "enforcementPoint": names.WEBHOOK}] * 3
    assert compare(numbered, []).ours.total() == 1
    assert json.dumps(compare(records, []).document())


def test_a_folder_that_is_no_queue_is_reported_with_the_queues_that_are_in_it(
    tmp_path: Path,
) -> None:
    """The folder was taken for a queue without records."""
    queue = tmp_path / "webhook" / "a-pod"
    log = SegmentLog(OSDisk(), queue, LogLimits(min_free_bytes=0))
    lock = OSDisk().lock(queue)
    for name in ("tail", "stats"):
        assert waddle("decisions", name, queue).returncode == 0, "a sidecar's, without records yet"
        found = waddle("decisions", name, queue.parent)
        assert (found.returncode, found.stdout) == (2, "")
        assert "no sidecar's queue; there are 1 in it: a-pod" in found.stderr
    assert lock is not None
    lock.release()
    log.close()


def test_a_check_reads_recorded_decisions_from_standard_input(tmp_path: Path) -> None:
    """The decisions were read as policies."""
    policy, records = tmp_path / "policy.yaml", tmp_path / "records"
    policy.write_text(yaml.safe_dump_all([template(), constraint()]))
    record = {**GOOD, "verdict": "allow", "constraintsEvaluated": 1, "operation": "CREATE"}
    record |= {"results": [], "object": pod()}
    lines = [orjson.dumps({**record, "sequence": number}) + b"\n" for number in (1, 2)]
    records.write_bytes(b"".join(lines))
    for more in ([], ["--vap", "template"]):
        arguments: list[str | Path] = [
            "check",
            "-f",
            policy,
            "--decisions",
            "-",
            "-o",
            "json",
            *more,
        ]
        with records.open() as stdin:
            found = waddle(*arguments, stdin=stdin)
        assert json.loads(found.stdout)["decisions"]["replayed"] == 2, found.stderr
    assert waddle("check", "-f", "-", "--decisions", "-").returncode == 64
