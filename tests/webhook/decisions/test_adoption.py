"""Queues that others left behind, on a disk that fails now and then."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.patience import until
from webhook import log
from webhook.decisions.sidecar.adoption import Adopter
from webhook.decisions.sidecar.disk import OSDisk
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits, SegmentLog
from webhook.decisions.sidecar.settings import SidecarSettings, SinkSettings
from webhook.decisions.sinks.sink import Item, lines_of

QUIET = log.Log(lambda _: None).logger("test")


class Taken:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def send(self, items: Sequence[Item]) -> None:
        self.lines += lines_of(items)

    def close(self) -> None:
        """Nothing to let go of."""


class FailingOnce(OSDisk):
    """A disk that cannot remove a directory the first time."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed = False

    def remove_directory(self, path: Path) -> None:
        if not self.failed:
            self.failed = True
            raise OSError(errno.EIO, "Input/output error")
        super().remove_directory(path)


def drained(adopter: Adopter) -> Callable[[], bool]:
    """Whether what is adopted now has been delivered."""
    return lambda: adopter.queue is not None and adopter.queue.finished


def test_a_queue_that_could_not_be_removed_is_adopted_again(tmp_path: Path) -> None:
    """Its lock stayed taken by the sidecar itself: nobody could, until that one was restarted."""
    disk, taken, now = FailingOnce(), Taken(), 0.0
    left = SegmentLog(disk, tmp_path / "gone", LogLimits())
    left.append([b'{"a":1}'], {})
    left.close()
    lock = disk.lock(tmp_path / "gone")
    assert lock is not None
    lock.release()
    disk.make_directory(tmp_path / "own")
    settings = SidecarSettings(
        listeners=(),
        directory=tmp_path / "own",
        limits=LogLimits(),
        sinks=(SinkSettings(DrainSettings("sink"), lambda _origin, _logger: taken),),
        adopt_after_seconds=5.0,
    )
    adopter = Adopter(disk, settings, QUIET, clock=lambda: now)
    adopter.step()
    now = 6.0
    adopter.step()
    until(drained(adopter), "the queue is drained")
    with pytest.raises(OSError, match="Input/output"):
        adopter.step()
    adopter.step()
    assert adopter.queue is None, "tried again at once"
    now = 12.0
    adopter.step()
    until(drained(adopter), "the queue is drained again")
    adopter.step()
    assert adopter.adopted == 1
    assert not (tmp_path / "gone").exists()
    assert taken.lines == [b'{"a":1}']
