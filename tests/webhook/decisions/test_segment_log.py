"""The segment log: what is read back, after crashes, on full and on damaged disks."""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decisions.volatile import VolatileDisk, forget
from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.disk import AppendFile, OSDisk
from webhook.decisions.sidecar.log import LogFull, LogLimits, SegmentLog
from webhook.decisions.sidecar.reader import (
    Cursor,
    Reader,
    cursor_path,
    load_cursor,
    save_cursor,
)
from webhook.decisions.wire.framing import StreamID

STREAM = StreamID("pod", "process")
SMALL = LogLimits(segment_bytes=400, max_bytes=20_000, min_free_bytes=0)
TIGHT = LogLimits(segment_bytes=400, max_bytes=2000, min_free_bytes=0)


def record(number: int, padding: int = 0) -> bytes:
    return orjson.dumps(
        {"podUID": "pod", "process": "process", "sequence": number, "x": "y" * padding}
    )


def fill(log: SegmentLog, numbers: range, batch: int = 2) -> None:
    for start in range(numbers.start, numbers.stop, batch):
        part = range(start, min(start + batch, numbers.stop))
        log.append([record(number) for number in part], {STREAM: part[-1]})


def drain(reader: Reader, at_a_time: int = 3) -> list[int]:
    found: list[int] = []
    while lines := reader.peek(at_a_time, 10_000):
        found += [orjson.loads(line)["sequence"] for line in lines]
        reader.advance(len(lines))
    return found


def test_what_was_appended_is_read_in_order_across_segments(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 20))
    assert len(list(tmp_path.glob("*.segment"))) > 2
    assert drain(Reader(log, None)) == list(range(1, 20))


def test_a_new_process_finds_everything_and_how_far_each_stream_has_come(tmp_path: Path) -> None:
    fill(SegmentLog(OSDisk(), tmp_path, SMALL), range(1, 20))
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    assert log.marks == {STREAM: 19}
    assert drain(Reader(log, None)) == list(range(1, 20))
    fill(log, range(20, 30))
    assert drain(Reader(log, None)) == list(range(1, 30))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_append_returned_for_is_there_after_a_crash(tmp_path: Path, seed: int) -> None:
    """On a disk that forgets bytes and names that were not synced, at every point."""
    for count in range(1, 25):
        folder = tmp_path / str(count)
        fill(SegmentLog(VolatileDisk(seed, tmp_path / "full"), folder, SMALL), range(1, count + 1))
        forget(folder)
        assert drain(Reader(SegmentLog(OSDisk(), folder, SMALL), None)) == list(range(1, count + 1))


def test_marks_outlive_the_records_they_came_from(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 20))
    log.append([b"{}"] * 40, {})
    log.append([b"{}"] * 40, {})
    log.trim(log.end)
    assert SegmentLog(OSDisk(), tmp_path, SMALL).marks == {STREAM: 19}


@given(cut=st.integers(1, 150))
@settings(max_examples=40, deadline=None)
def test_a_torn_tail_costs_only_what_was_never_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """Records before a torn append are complete."""
    folder = tmp_path_factory.mktemp("log")
    log = SegmentLog(OSDisk(), folder, LogLimits(min_free_bytes=0))
    fill(log, range(1, 9))
    path = next(folder.glob("*.segment"))
    whole = path.stat().st_size
    log.append([record(9), record(10)], {STREAM: 10})
    os.truncate(path, whole + min(cut, path.stat().st_size - whole - 1))
    log = SegmentLog(OSDisk(), folder, LogLimits(min_free_bytes=0))
    found = drain(Reader(log, None))
    assert found in (list(range(1, 9)), list(range(1, 10)))
    assert log.marks == {STREAM: found[-1]}
    fill(log, range(found[-1] + 1, 15))
    assert drain(Reader(SegmentLog(OSDisk(), folder, SMALL), None)) == list(range(1, 15))


def test_a_segment_whose_header_was_torn_is_begun_again(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 5))
    (tmp_path / segment.file_name(log.end)).write_bytes(segment.MAGIC[:5])
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    assert log.torn_bytes == 5
    fill(log, range(5, 20))
    assert drain(Reader(log, None)) == list(range(1, 20))


def test_damage_costs_the_records_it_hits_and_is_counted(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 30), batch=1)
    first = min(tmp_path.glob("*.segment"))
    content = bytearray(first.read_bytes())
    at = content.index(b'"sequence":2')
    content[at] ^= 0xFF
    first.write_bytes(content)
    reader = Reader(log, None)
    assert drain(reader) == [1, *range(3, 30)]
    assert reader.corrupt == 1


def test_a_damaged_length_costs_its_record_and_is_counted(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 30), batch=1)
    first = min(tmp_path.glob("*.segment"))
    content = bytearray(first.read_bytes())
    at = content.index(record(2)) - segment.FRAME.size
    content[at : at + 4] = b"\xff\xff\xff\xff"
    first.write_bytes(content)
    reader = Reader(log, None)
    assert drain(reader) == [1, *range(3, 30)]
    assert reader.corrupt == 1


@pytest.mark.parametrize("index", [0, 1, -1])
def test_a_byte_flipped_anywhere_costs_at_most_the_record_that_it_is_in(
    tmp_path: Path, index: int
) -> None:
    """In a header too, under a sidecar that runs."""
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 12), batch=1)
    path = sorted(tmp_path.glob("*.segment"))[index]
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(flipped(whole, at))
        reader = Reader(log, None)
        missing = set(range(1, 12)) - set(drain(reader))
        assert len(missing) == reader.corrupt <= 1, (at, missing)


@pytest.mark.parametrize("index", [0, 1, -1])
def test_a_byte_flipped_before_a_start_costs_at_most_the_record_that_it_is_in(
    tmp_path: Path, index: int
) -> None:
    """In a header too; and what comes after the start is read in its place."""
    log = SegmentLog(OSDisk(), tmp_path / "whole", SMALL)
    fill(log, range(1, 12), batch=1)
    log.close()
    name = sorted((tmp_path / "whole").glob("*.segment"))[index].name
    whole = (tmp_path / "whole" / name).read_bytes()
    for at in range(len(whole)):
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "whole", folder)
        (folder / name).write_bytes(flipped(whole, at))
        again = SegmentLog(OSDisk(), folder, SMALL)
        reader = Reader(again, None)
        found = drain(reader)
        missing = set(range(1, 12)) - set(found)
        assert len(missing) <= 1, (at, missing)
        if 11 not in missing:  # the last of all may be a torn tail
            assert reader.corrupt == len(missing)
        again.append([record(12), record(13)], {STREAM: 13})
        assert drain(reader) == [12, 13]
        again.close()


def flipped(content: bytes, at: int) -> bytes:
    """The content with one bit another."""
    damaged = bytearray(content)
    damaged[at] ^= 0x20
    return bytes(damaged)


def test_several_records_damaged_in_a_row_are_each_counted_and_no_more_is_lost(
    tmp_path: Path,
) -> None:
    log = SegmentLog(OSDisk(), tmp_path, LogLimits(min_free_bytes=0))
    fill(log, range(1, 30), batch=1)
    path = next(tmp_path.glob("*.segment"))
    content = bytearray(path.read_bytes())
    start, stop = content.index(record(5)), content.index(record(9)) - segment.FRAME.size
    content[start - 3 : stop] = bytes(stop - start + 3)
    path.write_bytes(content)
    reader = Reader(log, None)
    assert drain(reader) == [*range(1, 5), *range(9, 30)]
    assert reader.corrupt == 4
    assert reader.cursor.offset == log.end
    again = SegmentLog(OSDisk(), tmp_path, LogLimits(min_free_bytes=0))
    assert again.marks == {STREAM: 29}
    left_behind = Reader(again, reader.cursor)
    fill(again, range(30, 33))
    assert drain(left_behind) == [30, 31, 32]


def test_a_power_failure_never_leaves_an_empty_cursor_where_a_good_one_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are on the disk before it has its name, and its name before it counts as saved."""
    happened: list[tuple[str, str, int]] = []

    class Watched(OSDisk):
        def rename(self, source: Path, target: Path) -> None:
            super().rename(source, target)
            happened.append(("renamed", target.name, target.stat().st_size))

    def spied(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            sync(descriptor)
            name = Path(f"/proc/self/fd/{descriptor}").readlink().name
            size = 0 if name == tmp_path.name else os.fstat(descriptor).st_size
            happened.append(("synced", name, size))

        return synced

    monkeypatch.setattr(os, "fdatasync", spied(os.fdatasync))
    monkeypatch.setattr(os, "fsync", spied(os.fsync))
    path = tmp_path / "sink.cursor"
    for offset in (1, 1000):
        happened.clear()
        save_cursor(Watched(), path, Cursor(offset))
        size = path.stat().st_size
        assert happened == [
            ("synced", "sink.cursor.new", size),
            ("renamed", "sink.cursor", size),
            ("synced", tmp_path.name, 0),
        ]


def test_a_cursor_with_a_flipped_byte_is_none(tmp_path: Path) -> None:
    """It would skip records that nobody had."""
    path = tmp_path / "sink.cursor"
    cursor = Cursor(1234, 1000, 5678)
    save_cursor(OSDisk(), path, cursor)
    whole = path.read_bytes()
    assert load_cursor(OSDisk(), path) == cursor
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x08
        path.write_bytes(damaged)
        assert load_cursor(OSDisk(), path) in (None, cursor)


def test_a_thousand_streams_with_the_longest_names_survive_a_restart(tmp_path: Path) -> None:
    """Their marks make a header longer than what is read at a time."""
    limits = LogLimits(segment_bytes=400, min_free_bytes=0)
    log = SegmentLog(OSDisk(), tmp_path, limits)
    marks = {
        StreamID(f"{number:\u00e9>63}", f"{number:\u00e9>63}"): number for number in range(1, 1001)
    }
    log.append([b"{}"] * 1000, marks)
    fill(log, range(1, 11))
    log.close()
    again = SegmentLog(OSDisk(), tmp_path, limits)
    assert again.marks == {**marks, STREAM: 10}
    assert again.end == 1010
    assert (again.torn_bytes, again.damaged) == (0, 0)


def test_a_small_queue_that_was_drained_takes_records_again(tmp_path: Path) -> None:
    """The segment in use is never trimmed: full, it would be full for ever."""
    log = SegmentLog(OSDisk(), tmp_path, TIGHT)
    reader = Reader(log, None)
    for start in range(1, 200, 20):
        log.append([record(number) for number in range(start, start + 20)], {STREAM: start + 19})
        assert drain(reader) == list(range(start, start + 20))
        log.trim(reader.cursor.offset)


def test_a_full_log_takes_nothing_until_it_is_trimmed(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, TIGHT)
    taken = 0

    def fill_up() -> None:
        nonlocal taken
        while True:
            fill(log, range(taken + 1, taken + 2))
            taken += 1

    with pytest.raises(LogFull, match="the limit is 2000"):
        fill_up()
    assert log.size_bytes <= 2000 + 200  # a header more
    reader = Reader(log, None)
    assert drain(reader) == list(range(1, taken + 1))
    log.trim(reader.cursor.offset)
    fill(log, range(taken + 1, taken + 2))
    assert drain(reader) == [taken + 1]


def test_dropping_the_oldest_is_counted_by_each_reader(tmp_path: Path) -> None:
    limits = LogLimits(segment_bytes=400, max_bytes=2000, min_free_bytes=0, drop_oldest=True)
    log = SegmentLog(OSDisk(), tmp_path, limits)
    slow, quick = Reader(log, None), Reader(log, None)
    seen: list[int] = []
    for number in range(1, 101):
        fill(log, range(number, number + 1))
        seen += drain(quick)
    found = drain(slow)
    assert seen == list(range(1, 101))
    assert found == list(range(100 - len(found) + 1, 101))
    assert (slow.dropped, quick.dropped) == (100 - len(found), 0)
    assert log.size_bytes <= 2000 + 200  # a header more


class FailingFile:
    """Fails in one call, after a part of the data."""

    def __init__(self, file: AppendFile, disk: "FailingDisk") -> None:
        self._file = file
        self._disk = disk

    def write(self, data: bytes) -> None:
        if self._disk.fails("write"):
            self._file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "full")
        self._file.write(data)

    def sync(self) -> None:
        if self._disk.fails("sync"):
            raise OSError(errno.EIO, "broken")
        self._file.sync()

    def truncate(self, size: int) -> None:
        if self._disk.fails("truncate"):
            raise OSError(errno.EIO, "broken")
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()


class FailingDisk(OSDisk):
    """Fails when told to, a number of times for each operation."""

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}

    def fails(self, operation: str) -> bool:
        left = self.failing.get(operation, 0)
        self.failing[operation] = left - 1
        return left > 0

    def append(self, path: Path) -> AppendFile:
        return FailingFile(super().append(path), self)


@pytest.mark.parametrize(
    "failing",
    [
        {"write": 1},
        {"sync": 1},
        {"write": 2},
        {"write": 1, "truncate": 1},
        {"sync": 1, "truncate": 1},
        {"sync": 3},
    ],
)
def test_a_failed_append_leaves_nothing_and_may_be_tried_again(
    tmp_path: Path, failing: dict[str, int]
) -> None:
    """Neither half a batch nor the batch twice, now or after a restart."""
    disk = FailingDisk()
    log = SegmentLog(disk, tmp_path, SMALL)
    fill(log, range(1, 4))
    disk.failing = dict(failing)
    for number in range(4, 8):
        while True:
            try:
                fill(log, range(number, number + 1))
            except OSError:
                continue
            break
    assert drain(Reader(log, None)) == list(range(1, 8))
    assert drain(Reader(SegmentLog(OSDisk(), tmp_path, SMALL), None)) == list(range(1, 8))


def test_a_cursor_is_found_again_where_it_was_left(tmp_path: Path) -> None:
    disk = OSDisk()
    log = SegmentLog(disk, tmp_path, SMALL)
    fill(log, range(1, 20))
    reader = Reader(log, None)
    done = len(reader.peek(5, 10_000))
    reader.advance(done)
    path = cursor_path(tmp_path, "sink")
    save_cursor(disk, path, reader.cursor)
    assert drain(Reader(log, load_cursor(disk, path))) == list(range(done + 1, 20))


def test_a_cursor_without_its_place_finds_it_by_offset(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 30))
    for offset in range(29):
        assert drain(Reader(log, Cursor(offset))) == list(range(offset + 1, 30))


def test_an_unreadable_cursor_begins_with_the_oldest_record(tmp_path: Path) -> None:
    path = tmp_path / "sink.cursor"
    path.write_bytes(b"{")
    assert load_cursor(OSDisk(), path) is None
    assert load_cursor(OSDisk(), tmp_path / "none") is None


def test_a_record_longer_than_a_chunk_is_read_whole(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, LogLimits(min_free_bytes=0))
    log.append([record(1, 900_000), record(2)], {STREAM: 2})
    assert drain(Reader(log, None), at_a_time=1) == [1, 2]
    assert SegmentLog(OSDisk(), tmp_path, LogLimits(min_free_bytes=0)).marks == {STREAM: 2}


def test_a_reader_keeps_up_while_another_thread_appends(tmp_path: Path) -> None:
    limits = LogLimits(segment_bytes=2000, max_bytes=10_000_000, min_free_bytes=0)
    log = SegmentLog(OSDisk(), tmp_path, limits)
    writer = threading.Thread(target=fill, args=(log, range(1, 1001), 10))
    writer.start()
    reader = Reader(log, None)
    found: list[int] = []
    while len(found) < 1000:
        log.wait_for_more(reader.cursor.offset, 10, lambda: False)
        found += drain(reader)
        log.trim(reader.cursor.offset)
    writer.join()
    assert found == list(range(1, 1001))
    assert len(list(tmp_path.glob("*.segment"))) == 1


def test_a_segment_that_somebody_deleted_is_counted_and_passed(tmp_path: Path) -> None:
    log = SegmentLog(OSDisk(), tmp_path, SMALL)
    fill(log, range(1, 30), batch=1)
    first, second, *_ = sorted(tmp_path.glob("*.segment"))
    first.unlink()
    reader = Reader(log, None)
    begins = segment.first_offset(second.name)
    assert begins is not None
    assert drain(reader) == list(range(begins + 1, 30))
    assert reader.corrupt == begins
