"""Group commit: what arrives together is appended so that it finds room as sinks drain."""

import asyncio
import errno
from pathlib import Path

import orjson

from tests.patience import PATIENCE_SECONDS, turns_until
from webhook.decisions.sidecar.disk import AppendFile, OSDisk
from webhook.decisions.sidecar.intake import Intake
from webhook.decisions.sidecar.log import LogLimits, SegmentLog
from webhook.decisions.sidecar.streams import Streams
from webhook.decisions.wire.framing import Record, StreamID
from webhook.log import Log, open_log

STREAM = StreamID("pod", "process")
TIGHT = LogLimits(segment_bytes=1000, max_bytes=4000, min_free_bytes=0)


def line(number: int) -> bytes:
    """A hundred of these are more than twice what the log may hold."""
    fields = {"podUID": STREAM.pod_uid, "process": STREAM.process, "sequence": number}
    return orjson.dumps(fields | {"x": "y" * 80})


def test_more_than_the_log_holds_arrives_at_once_and_is_committed_as_a_sink_takes_it(
    tmp_path: Path,
) -> None:
    """As one batch it would be larger than a log from which everything was taken."""
    log = SegmentLog(OSDisk(), tmp_path / "queue", TIGHT)

    async def run() -> int:
        streams = Streams()
        intake = Intake(log, streams, open_log(str(tmp_path / "log")).logger("sidecar"))
        intake.accept([Record(line(number), STREAM, number) for number in range(1, 101)], "owner")
        committed = asyncio.Event()
        marks: list[int] = []

        def sink() -> None:
            marks.append(intake.streams.durable(STREAM))
            log.trim(log.end)
            if intake.committed == 100:
                committed.set()

        intake.listen("sink", sink)
        intake.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await committed.wait()
            await intake.close()
        assert marks == sorted(marks)
        return streams.durable(STREAM)

    assert asyncio.run(run()) == 100
    assert log.marks == {STREAM: 100}
    again = SegmentLog(OSDisk(), tmp_path / "queue", TIGHT)
    assert (again.marks, again.end) == ({STREAM: 100}, 100)


class FullDisk(OSDisk):
    """A disk that has no room for segments a few times."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def append(self, path: Path) -> AppendFile:
        if self.left:
            self.left -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().append(path)


def test_what_a_disk_does_not_take_is_tried_again_and_reported(tmp_path: Path) -> None:
    """No record is acknowledged until it is durable."""
    lines: list[bytes] = []

    async def run() -> Intake:
        log = SegmentLog(FullDisk(3), tmp_path / "queue", TIGHT)
        intake = Intake(log, Streams(), Log(lines.append).logger("sidecar"))
        intake.accept([Record(line(1), STREAM, 1)], "owner")
        assert intake.streams.durable(STREAM) == 0
        committed = asyncio.Event()
        intake.listen("sink", committed.set)
        intake.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await committed.wait()
            await intake.close()
        assert intake.streams.durable(STREAM) == 1
        return intake

    intake = asyncio.run(run())
    assert (intake.commits, intake.commit_failures, intake.blocked) == (1, 3, False)
    failures = [
        orjson.loads(item)["failures"]
        for item in lines
        if b"records cannot be written to the queue; trying again" in item
    ]
    assert failures == [1, 2]


def test_what_is_pending_when_a_process_gives_up_is_not_committed(tmp_path: Path) -> None:
    """It is not acknowledged: the sender sends it again."""

    async def run() -> None:
        log = SegmentLog(FullDisk(1_000_000), tmp_path / "queue", TIGHT)
        intake = Intake(log, Streams(), Log(list[bytes]().append).logger("sidecar"))
        intake.accept([Record(line(1), STREAM, 1)], "owner")
        intake.start()
        await turns_until(lambda: intake.commit_failures)
        intake.abandon()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await intake.close()
        assert (intake.committed, intake.streams.durable(STREAM)) == (0, 0)

    asyncio.run(run())
