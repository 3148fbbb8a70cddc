"""Group commit: what arrives together is appended so that it finds room as sinks drain."""

import asyncio
from pathlib import Path

import orjson

from tests.patience import PATIENCE_SECONDS
from webhook.decisions.sidecar.disk import OSDisk
from webhook.decisions.sidecar.intake import Intake
from webhook.decisions.sidecar.log import LogLimits, SegmentLog
from webhook.decisions.sidecar.streams import Streams
from webhook.decisions.wire.framing import Record, StreamID
from webhook.log import open_log

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
            marks.append(intake.durable(STREAM))
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
