"""A sink's worker: what a record of an odd shape costs, and what the disk does to cursors."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from webhook.decisions.rules import RecordSelection
from webhook.decisions.sidecar.dead_letter import DeadLetters
from webhook.decisions.sidecar.disk import AppendFile, OSDisk
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sidecar.queue import Queue
from webhook.decisions.sidecar.reader import Cursor
from webhook.decisions.sidecar.settings import SinkSettings
from webhook.decisions.sinks.otlp import encode_request
from webhook.decisions.sinks.sink import Item, RecordsRefused
from webhook.log import Log

GOOD = {"eventType": "decision", "verdict": "deny", "results": [{"message": "no"}]}


class Taken:
    """A sink that takes everything."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def send(self, items: Sequence[Item]) -> None:
        self.records += [orjson.loads(item.record) for item in items]

    def close(self) -> None:
        """Closes nothing."""


def drained(folder: Path, records: Sequence[Any], **settings: Any) -> tuple[Taken, list[Any]]:
    """Returns the records that a sink with these settings took, and its dead letters."""
    taken = Taken()
    sink = SinkSettings(DrainSettings("a"), lambda _origin, _logger: taken, **settings)
    logger = Log(list[bytes]().append).logger("test")
    queue = Queue(OSDisk(), folder, LogLimits(min_free_bytes=0), [sink], logger)
    queue.log.append([orjson.dumps(record) for record in records], {})
    queue.finish()
    queue.drains[0]._drain()
    queue.log.close()
    letters = folder / "a.dead-letters"
    lines = letters.read_bytes().splitlines() if letters.exists() else []
    return taken, [orjson.loads(line) for line in lines]


ODD: list[dict[str, Any]] = [
    {"eventType": "decision", "results": [1]},
    {"eventType": "decision", "results": None},
    {"eventType": "decision", "results": [{"constraint": None}]},
]


@pytest.mark.parametrize("odd", ODD)
def test_a_record_that_cannot_be_formatted_is_buried_and_the_others_go_on(
    tmp_path: Path, odd: dict[str, Any]
) -> None:
    """A sender could end the sidecar with it, again and again: it was in the queue."""
    taken, letters = drained(tmp_path, [GOOD, GOOD, odd, GOOD], format="gatekeeper")
    assert taken.records == [GOOD] * 3
    (letter,) = letters
    assert letter["record"] == odd
    assert letter["reason"].startswith("no record that this sink can be given: ")


@pytest.mark.parametrize(
    ("selection", "odd"),
    [
        (RecordSelection(namespaces=("a*",)), {"resourceNamespace": 5}),
        (RecordSelection(kinds=("*a",)), {"resourceKind": None}),
        (RecordSelection(verdicts=frozenset({"deny"})), {"verdict": []}),
        (RecordSelection(actions=frozenset({"deny"})), {"results": [1]}),
    ],
)
def test_a_record_that_cannot_be_selected_is_buried_and_the_others_go_on(
    tmp_path: Path, selection: RecordSelection, odd: dict[str, Any]
) -> None:
    good = {
        **GOOD,
        "resourceNamespace": "a",
        "resourceKind": "a",
        "results": [{"enforcementAction": "deny"}],
    }
    bad = {**good, **odd}
    taken, letters = drained(tmp_path, [good, bad, good], selection=selection)
    assert taken.records == [good] * 2
    assert [letter["record"] for letter in letters] == [bad]


@pytest.mark.parametrize(
    "odd", [{"verdict": []}, {"timestamp": 5}, {"eventType": {}}, {"sequence": "x"}, {"podUID": 1}]
)
def test_whatever_a_record_says_it_is_sent_to_a_collector(odd: dict[str, Any]) -> None:
    lines = [orjson.dumps({**GOOD, **odd}), orjson.dumps(GOOD)]
    request = encode_request([Item(line, (line,)) for line in lines])
    bodies = [
        record.body.string_value
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert bodies == [line.decode() for line in lines]


class Refusing:
    """A sink that refuses records that say so."""

    def send(self, items: Sequence[Item]) -> None:
        if any(b"refused" in item.record for item in items):
            raise RecordsRefused("not this one")

    def close(self) -> None:
        """Closes nothing."""


class FaultyDisk(OSDisk):
    """Fails so often, where names of files have a part."""

    def __init__(self, part: str, times: int) -> None:
        self.part, self.times = part, times

    def _fail(self, path: Path) -> None:
        if self.part in path.name and self.times:
            self.times -= 1
            raise OSError(errno.ENOSPC, "No space left on device")

    def append(self, path: Path) -> AppendFile:
        self._fail(path)
        return super().append(path)

    def read(self, path: Path, position: int, count: int) -> bytes:
        if "segment" in path.name:
            self._fail(path)
        return super().read(path, position, count)

    def replace(self, path: Path, data: bytes) -> None:
        self._fail(path)
        super().replace(path, data)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("dead-letters", "a sink accepts no records; it is tried again"),
        (".cursor", "a sink's position was not saved: after a crash it gets records twice"),
    ],
)
def test_a_disk_that_is_full_for_a_while_costs_no_record(
    tmp_path: Path, part: str, message: str
) -> None:
    """A refused record is tried again until it can be buried, and a cursor is saved later."""
    lines: list[bytes] = []
    settings = DrainSettings("a", backoff_initial_seconds=0.001, backoff_max_seconds=0.01)
    sink = SinkSettings(settings, lambda _origin, _logger: Refusing())
    logger = Log(lines.append).logger("test")
    disk = FaultyDisk(part, 2)
    queue = Queue(disk, tmp_path, LogLimits(min_free_bytes=0), [sink], logger)
    records = [{"a": 1}, {"a": "refused"}, {"a": 2}]
    queue.log.append([orjson.dumps(record) for record in records], {})
    queue.finish()
    drain = queue.drains[0]
    drain._drain()
    assert (drain.counters.delivered, drain.counters.dead_lettered, drain.lag) == (2, 1, 0)
    assert disk.times == 0
    assert any(message.encode() in line for line in lines)
    (letter,) = (tmp_path / "a.dead-letters").read_bytes().splitlines()
    assert orjson.loads(letter)["record"] == {"a": "refused"}
    queue.log.close()


def test_a_queue_that_cannot_be_read_for_a_moment_is_read_again_where_it_was(
    tmp_path: Path,
) -> None:
    """The fault ended the process and its receiver; no record is delivered twice for it."""
    taken = Taken()
    settings = DrainSettings("a", backoff_initial_seconds=0.001, backoff_max_seconds=0.01)
    sink = SinkSettings(settings, lambda _origin, _logger: taken)
    lines: list[bytes] = []
    disk = FaultyDisk("segment", 0)
    limits = LogLimits(segment_bytes=64 * 1024, min_free_bytes=0)
    queue = Queue(disk, tmp_path, limits, [sink], Log(lines.append).logger("test"))
    records = [{"n": number, "x": "y" * 40_000} for number in range(4)]
    for record in records:
        queue.log.append([orjson.dumps(record)], {})
    drain = queue.drains[0]
    drain.reader.cursor = Cursor(2)  # its place in the segment is to be looked for
    disk.times = 3
    queue.finish()
    drain._drain()
    assert disk.times == 0
    assert taken.records == records[2:]
    assert drain.reader.dropped == 0
    assert any(b"queue: No space left on device" in line for line in lines)
    queue.log.close()


def test_of_dead_letters_the_newest_are_kept(tmp_path: Path) -> None:
    letters = DeadLetters(OSDisk(), tmp_path, "a", 100)
    for number in range(3):
        letters.write(orjson.dumps({"n": number}), "x" * 40)
    letters.close()
    kept = [
        orjson.loads((tmp_path / name).read_bytes())["record"]["n"]
        for name in ("a.dead-letters", "a.dead-letters.1")
    ]
    assert kept == [2, 1]


class TornOnce(OSDisk):
    """A disk that fails once, after it took a part of what was written or none of the names."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.cuts = True

    def append(self, path: Path) -> AppendFile:
        return TornFile(self, super().append(path))

    def sync_directory(self, directory: Path) -> None:
        self.fail("names")
        super().sync_directory(directory)

    def fail(self, part: str) -> None:
        if self.failing == part:
            self.failing = ""
            raise OSError(errno.EIO, "Input/output error")


class TornFile:
    """A file of the disk."""

    def __init__(self, disk: TornOnce, file: AppendFile) -> None:
        self.disk, self.file = disk, file
        self.close = file.close

    def truncate(self, size: int) -> None:
        if not self.disk.cuts:
            raise OSError(errno.EIO, "Input/output error")
        self.file.truncate(size)

    def write(self, data: bytes) -> None:
        self.file.write(data[: len(data) // 2])
        self.disk.fail("write")
        self.file.write(data[len(data) // 2 :])

    def sync(self) -> None:
        self.disk.fail("sync")
        self.file.sync()


def letters_in(folder: Path) -> list[Any]:
    lines = (folder / "a.dead-letters").read_bytes().splitlines()
    return [orjson.loads(line)["record"] for line in lines]


@pytest.mark.parametrize("failing", ["write", "sync"])
def test_a_dead_letter_does_not_stand_on_the_line_of_one_that_failed(
    tmp_path: Path, failing: str
) -> None:
    """The line was unreadable: a record that was reported as kept was lost."""
    disk = TornOnce("")
    letters = DeadLetters(disk, tmp_path, "a", 1 << 20)
    letters.write(b'{"n":1}', "no")
    disk.failing = failing
    with pytest.raises(OSError, match="Input/output"):
        letters.write(b'{"n":2}', "no")
    letters.write(b'{"n":2}', "no")
    letters.close()
    assert letters_in(tmp_path) == [{"n": 1}, {"n": 2}]


def test_a_dead_letter_has_its_own_line_where_one_that_failed_cannot_be_cut_off(
    tmp_path: Path,
) -> None:
    disk = TornOnce("")
    disk.cuts = False
    path = tmp_path / "a.dead-letters"
    letters = DeadLetters(disk, tmp_path, "a", 1 << 20)
    letters.write(b'{"n":1}', "no")
    begin = path.stat().st_size
    disk.failing = "sync"
    with pytest.raises(OSError, match="Input/output"):
        letters.write(b'{"n":2}', "no")
    end = path.stat().st_size
    letters.write(b'{"n":2}', "no")
    letters.close()
    content = path.read_bytes()  # and as the disk has it: what was not synced was never written
    path.write_bytes(content[:begin] + bytes(end - begin) + content[end:])
    assert [line.strip(b"\0") for line in path.read_bytes().splitlines()][1] == b""
    assert b'"n":2' in path.read_bytes().splitlines()[2]


def test_what_a_crash_left_of_a_dead_letter_is_cut_off(tmp_path: Path) -> None:
    whole = b'{"sink":"a","reason":"no","record":{"n":1}}\n'
    for left in (b"", b'{"sink', b"x" * 200_000):
        (tmp_path / "a.dead-letters").write_bytes(whole + left)
        letters = DeadLetters(OSDisk(), tmp_path, "a", 1 << 20)
        letters.write(b'{"n":2}', "no")
        letters.close()
        assert letters_in(tmp_path) == [{"n": 1}, {"n": 2}]


def test_the_name_of_a_dead_letter_file_is_durable_before_a_record_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed sync of its name, the next record was taken without one."""
    disk = TornOnce("names")
    synced: list[Path] = []
    letters = DeadLetters(disk, tmp_path, "a", 1 << 20)
    with pytest.raises(OSError, match="Input/output"):
        letters.write(b'{"n":1}', "no")
    monkeypatch.setattr(disk, "sync_directory", synced.append)
    letters.write(b'{"n":1}', "no")
    letters.close()
    assert synced == [tmp_path]


class Keeping(OSDisk):
    """A disk that removes nothing."""

    def remove(self, path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")


def test_what_was_delivered_leaves_room_where_it_could_not_be_removed_before(
    tmp_path: Path,
) -> None:
    """The fault ended the process; the next one took nothing, with a queue full of sent records."""
    lines: list[bytes] = []
    taken = Taken()
    sink = SinkSettings(DrainSettings("a", max_records=1), lambda _origin, _logger: taken)
    limits = LogLimits(segment_bytes=400, max_bytes=2000, min_free_bytes=0)
    logger = Log(lines.append).logger("test")
    queue = Queue(Keeping(), tmp_path, limits, [sink], logger)
    records = [{"n": number, "x": "y" * 300} for number in range(4)]
    for record in records:
        queue.log.append([orjson.dumps(record)], {})
    queue.finish()
    queue.drains[0]._drain()
    queue.log.close()
    assert taken.records == records
    assert any(b"a delivered segment of the queue was not removed" in line for line in lines)
    assert len(list(tmp_path.glob("*.segment"))) == 4

    queue = Queue(OSDisk(), tmp_path, limits, [sink], logger)
    assert len(list(tmp_path.glob("*.segment"))) == 1
    queue.log.append([orjson.dumps({"n": 4, "x": "y" * 1700})], {})
    queue.finish()
    queue.drains[0]._drain()
    queue.log.close()
    assert [record["n"] for record in taken.records] == [0, 1, 2, 3, 4]


def test_a_cursor_that_cannot_be_read_now_sends_nothing_twice(tmp_path: Path) -> None:
    """The queue is opened later: it was drained from its oldest record on."""

    class Failing(OSDisk):
        def read(self, path: Path, position: int, count: int) -> bytes:
            if path.suffix == ".cursor":
                raise OSError(errno.EIO, "Input/output error")
            return super().read(path, position, count)

    drained(tmp_path, [{"n": 1}])
    sink = SinkSettings(DrainSettings("a"), lambda _origin, _logger: Taken())
    logger = Log(list[bytes]().append).logger("test")
    with pytest.raises(OSError, match="Input/output"):
        Queue(Failing(), tmp_path, LogLimits(min_free_bytes=0), [sink], logger)
    taken, _ = drained(tmp_path, [{"n": 2}])
    assert taken.records == [{"n": 2}]
