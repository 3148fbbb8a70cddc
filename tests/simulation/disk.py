"""A disk that keeps what was synced, and of the rest whatever chance leaves.

At the end of a machine, a file keeps what was synced and some part of what was appended since;
names are as they were at their directory's last sync, with some of the changes since. After a
sync that failed, what it was to write may never reach the disk, whatever later syncs say.
"""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.simulation.doors import Killed
from tests.simulation.loop import Loop
from tests.simulation.process import Process
from webhook.decisions.sidecar.disk import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = errno.ENOSPC


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class _File:
    """What a name stands for."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.hole: tuple[int, int] | None = None
        """What a failed sync did not write."""

    def sync(self) -> None:
        whole = bytes(self.data)
        if self.hole is not None:
            start, stop = self.hole
            stop = min(stop, len(whole))
            whole = whole[:start] + b"\0" * max(stop - start, 0) + whole[stop:]
        self.durable = whole

    def truncate(self, size: int) -> None:
        del self.data[size:]
        if self.hole is not None and self.hole[0] >= size:
            self.hole = None


class Disk:
    """The platters: outlives the processes that use it by :meth:`mount`."""

    def __init__(self, loop: Loop, capacity: int) -> None:
        self.loop = loop
        self.capacity = capacity
        self.foreign = 0
        """Bytes that others have written."""
        self.failing = 0.0
        """How likely a write or a sync fails."""
        self.names: dict[Path, _File] = {}
        self.durable_names: dict[Path, _File] = {}
        self.changes: list[tuple[Path, Callable[[], None]]] = []
        """Of names, since their directory's sync: on the disk or not."""
        self.directories: set[Path] = set()
        self.locks: dict[Path, Process] = {}
        self.sync_seconds = 0.002
        self.failures = 0
        """Operations that failed by chance."""

    def mount(self, process: Process) -> "Mount":
        """The disk as one process has it."""
        return Mount(self, process)

    @property
    def used(self) -> int:
        """Bytes of all files, and of others'."""
        return self.foreign + sum(len(file.data) for file in self.names.values())

    def lose_power(self) -> None:
        """What was not synced may be lost."""
        chance = self.loop.random
        for _, change in self.changes:
            if chance.random() < 0.5:
                change()
        self.changes.clear()
        self.names = dict(self.durable_names)
        for file in dict.fromkeys(self.names.values()):
            durable = file.durable
            if len(file.data) > len(durable) and file.data[: len(durable)] == durable:
                more = chance.randrange(len(file.data) - len(durable) + 1)
                durable = bytes(file.data[: len(durable) + more])
                if file.hole is not None:
                    durable = durable[: file.hole[0]]
                elif more and chance.random() < 0.2:  # a page that was never written
                    durable = durable[: len(file.durable)] + b"\0" * more
            file.data = bytearray(durable)
            file.durable = durable
            file.hole = None

    def change(self, path: Path, file: _File | None) -> None:
        """A name stands for something else from now on; durable later."""

        def apply() -> None:
            if file is None:
                self.durable_names.pop(path, None)
            else:
                self.durable_names[path] = file

        if file is None:
            self.names.pop(path, None)
        else:
            self.names[path] = file
        self.changes.append((path, apply))

    def sync_names(self, directory: Path) -> None:
        """Changes of names there are durable."""
        rest = []
        for path, apply in self.changes:
            if path.parent == directory:
                apply()
            else:
                rest.append((path, apply))
        self.changes = rest


class _Lock:
    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._directory = directory

    def release(self) -> None:
        self._disk.locks.pop(self._directory, None)


class _Append:
    """An open file."""

    def __init__(self, mount: "Mount", file: _File) -> None:
        self._mount = mount
        self._file = file

    def write(self, data: bytes) -> None:
        disk = self._mount.enter(0.1)
        room = disk.capacity - disk.used
        if len(data) > room:
            self._file.data += data[: max(room, 0)]
            disk.failures += 1
            raise _error(FULL)
        if disk.loop.random.random() < disk.failing:
            self._file.data += data[: disk.loop.random.randrange(len(data) + 1)]
            disk.failures += 1
            raise _error(errno.EIO)
        self._file.data += data

    def sync(self) -> None:
        file = self._file
        until = len(file.data)
        disk = self._mount.enter(1.0)
        if disk.loop.random.random() < disk.failing:
            start = len(file.durable)
            if until > start:
                start = disk.loop.random.randrange(start, until)
                file.hole = (start, until)
            disk.failures += 1
            raise _error(errno.EIO)
        file.sync()

    def truncate(self, size: int) -> None:
        self._mount.enter(0.0)
        self._file.truncate(size)

    def close(self) -> None:
        """Nothing is written by it."""


class Mount:
    """The product's seam to files, of one process."""

    def __init__(self, disk: Disk, process: Process) -> None:
        self._disk = disk
        self._process = process

    def enter(self, share: float) -> Disk:
        """Everything takes its time, and a process that has ended does nothing more."""
        if self._process.dead:
            raise Killed
        disk = self._disk
        if share:
            loop = disk.loop
            loop.sleep(disk.sync_seconds * share * loop.random.random())
        return disk

    def _file(self, path: Path) -> _File:
        found = self._disk.names.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return found

    def append(self, path: Path) -> _Append:
        disk = self.enter(0.0)
        found = disk.names.get(path)
        if found is None:
            found = _File()
            disk.change(path, found)
        return _Append(self, found)

    def read(self, path: Path, position: int, count: int) -> bytes:
        self.enter(0.0)
        return bytes(self._file(path).data[position : position + count])

    def size(self, path: Path) -> int:
        self.enter(0.0)
        return len(self._file(path).data)

    def names(self, directory: Path) -> list[str]:
        disk = self.enter(0.0)
        found = {path.name for path in disk.names if path.parent == directory}
        found |= {path.name for path in disk.directories if path.parent == directory}
        return sorted(found)

    def make_directory(self, path: Path) -> None:
        disk = self.enter(0.0)
        disk.directories.add(path)

    def replace(self, path: Path, data: bytes) -> None:
        beside = path.with_name(path.name + ".new")
        file = self.append(beside)
        file.truncate(0)
        file.write(data)
        file.sync()
        self.rename(beside, path)
        self.sync_directory(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        disk = self.enter(0.0)
        file = self._file(source)
        disk.change(target, file)
        disk.change(source, None)

    def remove(self, path: Path) -> None:
        disk = self.enter(0.0)
        if path in disk.names:
            disk.change(path, None)

    def sync_directory(self, directory: Path) -> None:
        disk = self.enter(0.5)
        if disk.loop.random.random() < disk.failing:
            disk.failures += 1
            raise _error(errno.EIO)
        disk.sync_names(directory)

    def free_bytes(self, directory: Path) -> int:
        disk = self.enter(0.0)
        return max(disk.capacity - disk.used, 0)

    def lock(self, directory: Path) -> _Lock | None:
        disk = self.enter(0.0)
        owner = disk.locks.get(directory)
        if directory not in disk.directories or (owner is not None and not owner.dead):
            return None
        disk.locks[directory] = self._process
        if directory / LOCK not in disk.names:
            disk.change(directory / LOCK, _File())
        return _Lock(disk, directory)

    def is_queue(self, path: Path) -> bool:
        disk = self.enter(0.0)
        return path in disk.directories and path / LOCK in disk.names

    def remove_directory(self, path: Path) -> None:
        disk = self.enter(0.0)
        for name in [name for name in disk.names if name.parent == path]:
            disk.change(name, None)
        disk.directories.discard(path)
