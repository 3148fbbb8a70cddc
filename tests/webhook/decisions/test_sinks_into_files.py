"""Files and audit directories: what is delivered stays, however often it is sent."""

import errno
import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from webhook import log
from webhook.decisions.sinks import audit_directory, ledger
from webhook.decisions.sinks.audit_directory import AuditDirectory
from webhook.decisions.sinks.file import FileSettings, RotatingFile
from webhook.decisions.sinks.sink import Item, RecordsRefused, SinkUnavailable

QUIET = log.Log(lambda _: None).logger("test")


def item(sequence: int, *, process: str = "p", **fields: Any) -> Item:
    line = orjson.dumps(
        {
            "podUID": "u",
            "process": process,
            "sequence": sequence,
            "eventType": "decision",
            **fields,
        }
    )
    return Item(line, (line,))


def run_of(
    audit_id: str, count: int, *, first: int = 1, process: str = "p", ended: bool = True
) -> list[Item]:
    """A run's begin, so many records, and its end."""
    last = first + count + 1
    return [
        item(first, process=process, eventType="audit_started", auditID=audit_id),
        *(item(n, process=process, auditID=audit_id) for n in range(first + 1, last)),
        *([item(last, process=process, eventType="audit_finished", auditID=audit_id)] * ended),
    ]


def sequences(path: Path) -> list[int]:
    return [orjson.loads(line)["sequence"] for line in path.read_bytes().splitlines()]


def reports(directory: Path) -> dict[str, list[int]]:
    return {path.name: sequences(path) for path in directory.iterdir() if path.name[0] != "."}


def directory(path: Path, max_runs: int = 5, origin: str = "a@q") -> AuditDirectory:
    return AuditDirectory(path, max_runs, origin, QUIET)


def file(path: Path, origin: str = "f@q", **settings: Any) -> RotatingFile:
    return RotatingFile(FileSettings(path, **settings), origin, QUIET)


def parts(items: Iterable[Item], size: int) -> Iterable[list[Item]]:
    found = list(items)
    return (found[start : start + size] for start in range(0, len(found), size))


# --- audit directories ---------------------------------------------------------------------------


def test_a_report_whose_last_batch_is_sent_again_after_a_kill_stays_whole(tmp_path: Path) -> None:
    items = run_of("run-p", 598)
    batches = list(parts(items, 256))
    sink = directory(tmp_path)
    for batch in batches:
        sink.send(batch)
    for again in (sink, directory(tmp_path)):
        again.send(batches[-1])
        again.send([*batches[-2], *batches[-1]])
        assert reports(tmp_path) == {"run-p.log": list(range(1, 601))}


def test_runs_sent_again_do_not_come_back_once_they_were_removed(tmp_path: Path) -> None:
    batch = [*run_of("one-p", 3), *run_of("two-p", 3, first=6), *run_of("three-p", 3, first=11)]
    directory(tmp_path, 2).send(batch)
    directory(tmp_path, 2).send(batch)
    assert sorted(reports(tmp_path)) == ["three-p.log", "two-p.log"]


def test_a_file_that_cannot_be_removed_costs_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = directory(tmp_path, 1)
    sink.send(run_of("old-p", 3))
    unlink = Path.unlink

    def refuse(path: Path, **options: Any) -> None:
        if path.name == "old-p.log":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    sink.send(run_of("new-p", 609, first=6))
    assert len(reports(tmp_path)["new-p.log"]) == 611
    sink.send(run_of("next-p", 1, first=700))
    assert sorted(reports(tmp_path)) == ["next-p.log", "old-p.log"]


def test_a_directory_between_the_reports_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "kept.log").mkdir()
    directory(tmp_path, 1).send(run_of("run-p", 1))
    assert (tmp_path / "run-p.log").exists()


def test_two_audits_with_one_id_have_a_report_each(tmp_path: Path) -> None:
    one = run_of("same", 57, process="one")
    other = run_of("same", 0, process="other", ended=True)
    sink = directory(tmp_path)
    for batch in (one[:30], other[:1], one[30:], other[1:]):
        sink.send(batch)
    assert sorted(map(len, reports(tmp_path).values())) == [2, 59]


def test_a_run_that_its_process_left_is_set_aside_and_nothing_hidden_stays(tmp_path: Path) -> None:
    sink = directory(tmp_path)
    sink.send(run_of("cut-p", 4, ended=False))
    sink.send(run_of("run-p", 1, first=20))
    found = reports(tmp_path)
    assert found == {"cut-p.partial": [1, 2, 3, 4, 5], "run-p.log": [20, 21, 22]}
    assert not list(tmp_path.glob(".*.open"))


def test_a_run_of_a_process_that_is_gone_is_set_aside_after_a_while(tmp_path: Path) -> None:
    sink = directory(tmp_path)
    sink.send(run_of("cut-gone", 2, process="gone", ended=False))
    sink.send(run_of("run-p", 1))
    assert list(tmp_path.glob(".*.open")), "it may go on"
    (open_file,) = tmp_path.glob(".*.open")
    long_ago = time.time() - audit_directory.SILENT_SECONDS - 1
    os.utime(open_file, (long_ago, long_ago))
    sink.send(run_of("next-p", 1, first=10))
    assert reports(tmp_path)["cut-gone.partial"] == [1, 2, 3]
    assert not list(tmp_path.glob(".*.open"))


def test_a_run_set_aside_that_goes_on_after_all_becomes_a_whole_report(tmp_path: Path) -> None:
    sink = directory(tmp_path)
    late = run_of("late-slow", 8, process="slow")
    sink.send(late[:5])
    (open_file,) = tmp_path.glob(".*.open")
    os.utime(open_file, (1, 1))
    sink.send(run_of("run-p", 1))
    assert reports(tmp_path)["late-slow.partial"] == [1, 2, 3, 4, 5]
    directory(tmp_path).send(late[5:])
    assert reports(tmp_path)["late-slow.log"] == list(range(1, 11))
    assert "late-slow.partial" not in reports(tmp_path)


def test_changes_that_a_continuous_audit_saw_gather_in_no_file(tmp_path: Path) -> None:
    sink = directory(tmp_path)
    sink.send([item(1, auditID=""), item(2), item(3, auditID=7)])
    sink.send(run_of("run-p", 1, first=4))
    assert reports(tmp_path) == {"run-p.log": [4, 5, 6]}
    assert not list(tmp_path.glob(".*.open"))


def test_a_full_disk_in_the_middle_of_a_run_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it strikes: in a write, a sync or the ledger."""
    items = run_of("run-p", 30)
    sink = directory(tmp_path)
    real: dict[str, Any] = {
        "write": os.write,
        "fdatasync": os.fdatasync,
        "fsync": os.fsync,
        "rename": os.replace,
    }
    for number, batch in enumerate(parts(items, 4)):
        name = ("write", "fdatasync", "fsync")[number % 3]

        def full(*arguments: Any, name: str = name) -> Any:
            if name == "write":
                real["write"](arguments[0], bytes(arguments[1])[:5])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, name, full)
        with pytest.raises(SinkUnavailable):
            sink.send(batch)
        monkeypatch.setattr(os, name, real[name])
        sink.send(batch)
    assert reports(tmp_path) == {"run-p.log": list(range(1, 33))}


@pytest.mark.parametrize("step", range(1, 12))
def test_a_kill_at_any_step_of_a_delivery_neither_loses_nor_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A kill leaves whatever the steps before it did; the batch is sent again by a new process."""

    class Killed(BaseException):
        pass

    items = run_of("run-p", 20)
    directory(tmp_path).send(items[:10])
    left = step
    real = {
        name: getattr(os, name) for name in ("write", "fdatasync", "fsync", "open", "ftruncate")
    }

    def counting(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                if name == "write":
                    real[name](arguments[0], bytes(arguments[1])[:7])
                raise Killed
            return real[name](*arguments, **options)

        return call

    for name in real:
        monkeypatch.setattr(os, name, counting(name))
    try:
        directory(tmp_path).send(items[10:])
    except Killed:
        pass
    finally:
        for name, function in real.items():
            monkeypatch.setattr(os, name, function)
    directory(tmp_path).send(items[10:])
    assert reports(tmp_path) == {"run-p.log": list(range(1, 23))}


def test_what_is_no_record_is_refused_alone(tmp_path: Path) -> None:
    with pytest.raises(RecordsRefused):
        directory(tmp_path).send([Item(b"[]", (b"[]",))])


# --- files ---------------------------------------------------------------------------------------


def test_a_batch_sent_again_after_a_kill_is_in_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    file(path).send([item(number) for number in range(1, 11)])
    file(path).send([item(number) for number in range(6, 16)])
    assert sequences(path) == list(range(1, 16))


def test_events_of_gatekeeper_s_format_are_in_the_file_once(tmp_path: Path) -> None:
    """The events have no number of their own: their record has one."""
    path = tmp_path / "events.log"
    record = item(1).record
    for _ in range(2):
        file(path).send([Item(record, (b'{"n":1}', b'{"n":2}'))])
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_two_queues_that_write_to_one_file_lose_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decisions.ndjson"
    one, other = file(path, "f@one"), file(path, "f@other")
    one.send([item(1, process="one")])
    other.send([item(1, process="other")])
    sync = os.fdatasync

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(SinkUnavailable):
        one.send([item(2, process="one")])
    monkeypatch.setattr(os, "fdatasync", sync)
    other.send([item(2, process="other")])
    one.send([item(2, process="one")])
    found = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [(value["process"], value["sequence"]) for value in found] == [
        ("one", 1),
        ("other", 1),
        ("other", 2),
        ("one", 2),
    ]


def test_a_stream_in_two_queues_loses_nothing_whichever_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    file(path, "f@new").send([item(number) for number in range(11, 16)])
    file(path, "f@old").send([item(number) for number in range(1, 11)])
    assert sorted(sequences(path)) == list(range(1, 16))


def test_rotation_keeps_every_line_across_kills(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    for number in range(1, 40):
        again = [item(earlier) for earlier in (number - 1, number) if earlier]
        file(path, max_bytes=1024, max_files=20).send(again)
    found = sorted(number for each in tmp_path.glob("decisions*") for number in sequences(each))
    assert found == list(range(1, 40))
    assert len(list(tmp_path.glob("decisions*"))) == 3


def test_a_single_file_begins_anew_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    for number in range(1, 40):
        file(path, max_bytes=1024, max_files=1).send([item(number)])
    assert [each.name for each in tmp_path.iterdir() if each.name[0] != "."] == [path.name]
    assert path.stat().st_size <= 1024
    assert sequences(path)[-1] == 39


def test_a_file_from_before_is_continued_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    path.write_bytes(item(1).record + b"\n" + item(2).record[:10])
    file(path).send([item(2)])
    assert sequences(path) == [1, 2]


def test_a_file_that_somebody_emptied_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    sink = file(path)
    sink.send([item(1)])
    os.truncate(path, 0)
    sink.send([item(2)])
    assert sequences(path) == [2]


def test_a_damaged_ledger_repeats_at_worst(tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    file(path).send([item(1), item(2)])
    (tmp_path / ".decisions.ndjson.delivered").write_bytes(b'{"files":')
    file(path).send([item(2), item(3)])
    assert sequences(path) == [1, 2, 2, 3]


def test_a_writer_that_never_lets_go_is_waited_for_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "LOCK_SECONDS", 0.05)
    path = tmp_path / "decisions.ndjson"
    with (tmp_path / ".decisions.ndjson.delivered.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SinkUnavailable, match="another sidecar"):
            file(path).send([item(1)])
    file(path).send([item(1)])
    assert sequences(path) == [1]


def test_what_breaks_or_turns_lines_is_escaped_in_a_file(tmp_path: Path) -> None:
    """Some readers take U+2028 for the end of a line, and a terminal obeys U+202E."""
    message = "a\u2028b\u202ec\x7fd\u0085é"
    file(tmp_path / "log").send([item(1, message=message)])
    written = (tmp_path / "log").read_bytes()
    assert orjson.loads(written)["message"] == message
    assert b"a\\u2028b\\u202ec\\u007fd\\u0085\xc3\xa9" in written
