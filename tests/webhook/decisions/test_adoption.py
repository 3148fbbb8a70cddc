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
from webhook.decisions.sinks.sink import Item, Sink, SinkUnavailable, lines_of

QUIET = log.Log(lambda _: None).logger("test")


class Taken:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def send(self, items: Sequence[Item]) -> None:
        self.lines += lines_of(items)

    def close(self) -> None:
        """Closes nothing."""


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


def left_behind(disk: OSDisk, folder: Path) -> None:
    """A queue of one record, whose owner is gone."""
    left = SegmentLog(disk, folder, LogLimits())
    left.append([b'{"a":1}'], {})
    left.close()
    lock = disk.lock(folder)
    assert lock is not None
    lock.release()


def adopting(disk: OSDisk, folder: Path, sink: Sink, clock: Callable[[], float]) -> Adopter:
    """Returns an adopter of the queues in a folder."""
    disk.make_directory(folder / "own")
    settings = SidecarSettings(
        listeners=(),
        directory=folder / "own",
        limits=LogLimits(),
        sinks=(SinkSettings(DrainSettings("sink"), lambda _origin, _logger: sink),),
        adopt_after_seconds=5.0,
    )
    return Adopter(disk, settings, QUIET, clock=clock)


class Unreadable(OSDisk):
    """A disk that cannot read a directory's segments for a while."""

    __slots__ = ("is_failing",)

    def __init__(self) -> None:
        self.is_failing = True

    def size(self, path: Path) -> int:
        if self.is_failing:
            raise OSError(errno.EIO, "Input/output error")
        return super().size(path)


def test_a_queue_that_cannot_be_opened_is_counted_and_adopted_later(tmp_path: Path) -> None:
    """The queue's lock is released, for a sidecar with a working disk."""
    left_behind(OSDisk(), tmp_path / "gone")
    disk, taken, now = Unreadable(), Taken(), 0.0
    adopter = adopting(disk, tmp_path, taken, lambda: now)
    adopter.step()
    now = 6.0
    adopter.step()
    assert (adopter.failures, adopter.queue) == (1, None)
    lock = disk.lock(tmp_path / "gone")
    assert lock is not None
    adopter.step()
    assert adopter.failures == 1  # Another has it now: nothing is tried.
    lock.release()
    disk.is_failing = False
    adopter.step()
    assert adopter.queue is None  # It has been free for a moment only.
    now = 12.0
    adopter.step()
    until(drained(adopter), "the queue is drained")
    adopter.step()
    assert (adopter.adopted, taken.lines) == (1, [b'{"a":1}'])
    adopter.stop()


class Away:
    """A sink that cannot be reached."""

    def send(self, items: Sequence[Item]) -> None:
        raise SinkUnavailable("away")

    def close(self) -> None:
        """Closes nothing."""


def test_a_queue_that_is_not_drained_when_the_sidecar_ends_is_left_whole(tmp_path: Path) -> None:
    left_behind(OSDisk(), tmp_path / "gone")
    now = 0.0
    adopter = adopting(OSDisk(), tmp_path, Away(), lambda: now)
    adopter.step()
    now = 6.0
    adopter.step()
    assert adopter.queue is not None
    adopter.step()  # It goes on being drained.
    adopter.stop()
    assert adopter.queue is None
    lock = OSDisk().lock(tmp_path / "gone")
    assert lock is not None
    lock.release()
    assert SegmentLog(OSDisk(), tmp_path / "gone", LogLimits()).end == 1


def test_a_queue_that_could_not_be_removed_is_adopted_again(tmp_path: Path) -> None:
    """The sidecar kept the queue's lock: no other could adopt it before a restart."""
    disk, taken, now = FailingOnce(), Taken(), 0.0
    left_behind(disk, tmp_path / "gone")
    adopter = adopting(disk, tmp_path, taken, lambda: now)
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
