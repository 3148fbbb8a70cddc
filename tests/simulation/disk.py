"""A disk that keeps what was synced, and of the rest whatever chance leaves.

At the end of a machine, a file keeps what was synced and some part of what was appended since;
names are as they were at their directory's last sync, with some of the changes since. After a
sync that failed, what it was to write may never reach the disk, whatever later syncs say.
"""

import errno
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation import files
from tests.simulation.doors import Killed
from tests.simulation.files import DESCRIPTOR_MIN, FILES
from tests.simulation.loop import Loop
from tests.simulation.process import Process
from webhook.decisions.sidecar.disk import LOCK, OSDisk

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

files.install()


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class _File:
    """The contents of a file."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.hole: tuple[int, int] | None = None
        """The range that a failed sync did not write."""

    def sync(self) -> None:
        whole = bytes(self.data)
        if self.hole is not None:
            start, stop = self.hole
            stop = min(stop, len(whole))
            whole = whole[:start] + b"\0" * max(stop - start, 0) + whole[stop:]
        self.durable = whole

    def lose(self, until: int, chance: "random.Random") -> None:
        """A sync failed: some of what it was to write never will be."""
        start = len(self.durable)
        if until > start:
            self.hole = (chance.randrange(start, until), until)

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
        """The probability that a write or a sync fails."""
        self.names: dict[Path, _File] = {}
        self.durable_names: dict[Path, _File] = {}
        self.changes: list[tuple[Path, Callable[[], None]]] = []
        """Of names, since their directory's sync: on the disk or not."""
        self.directories: set[Path] = set()
        self.locks: dict[Path, Process] = {}
        self.sync_seconds = 0.002
        self.failures: list[float] = []
        """When operations failed."""

    def mount(self, process: Process) -> "Mount":
        """The disk as one process has it, which has no other."""
        mount = Mount(self, process)
        process.context.run(FILES.set, mount)
        return mount

    def failed(self) -> None:
        """An operation failed, by chance or for want of room."""
        self.failures.append(self.loop.seconds)

    def may_fail(self) -> None:
        """Raise an OSError by chance."""
        if self.failing and self.loop.random.random() < self.failing:
            self.failed()
            raise _error(errno.EIO)

    @property
    def used(self) -> int:
        """Bytes of all files, and of others'."""
        return self.foreign + sum(len(file.data) for file in self.names.values())

    def has_queue(self, path: Path) -> bool:
        """Whether a queue's directory is there."""
        return path in self.directories and path / LOCK in self.names

    def lose_power(self) -> None:
        """Loses changes that were not synced, by chance."""
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


class Mount(OSDisk):
    """The product's own files of one process, on calls of the system that a disk answers.

    What is several calls is the product's; what is one and asks for a name is answered here.
    """

    def __init__(self, disk: Disk, process: Process) -> None:
        self._disk = disk
        self._process = process
        self._open: dict[int, _File | Path] = {}
        """The files of the open descriptors, and directories by their paths."""
        self._descriptors = itertools.count(DESCRIPTOR_MIN)

    def enter(self, share: float) -> Disk:
        """Takes simulated time; raises if the process has ended."""
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

    # --- calls of the system -------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        """Opens as POSIX does: a new file's name is durable with its directory."""
        disk = self.enter(0.0)
        found: _File | Path | None = disk.names.get(path)
        if flags & os.O_DIRECTORY:
            found = path if path in disk.directories else None
        elif found is None and flags & os.O_CREAT and path.parent in disk.directories:
            disk.may_fail()
            found = _File()
            disk.change(path, found)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if flags & os.O_TRUNC:
            self._file(path).truncate(0)
        descriptor = next(self._descriptors)
        self._open[descriptor] = found
        return descriptor

    def _opened(self, descriptor: int) -> _File:
        found = self._open[descriptor]
        assert isinstance(found, _File)
        return found

    def write(self, descriptor: int, data: Any) -> int:
        """All of it, or what there is room for, or what chance lets pass before it fails."""
        disk = self.enter(0.1)
        file = self._opened(descriptor)
        room = disk.capacity - disk.used
        if room <= 0:
            disk.failed()
            raise _error(errno.ENOSPC)
        chance = disk.loop.random
        if chance.random() < disk.failing:
            file.data += data[: min(chance.randrange(len(data) + 1), room)]
            disk.failed()
            raise _error(errno.EIO)
        file.data += data[:room]
        return min(len(data), room)

    def pread(self, descriptor: int, count: int, position: int) -> bytes:
        """Returns the bytes that the process sees, durable or not."""
        self.enter(0.0).may_fail()
        return bytes(self._opened(descriptor).data[position : position + count])

    def ftruncate(self, descriptor: int, size: int) -> None:
        """Not durable by itself."""
        self.enter(0.0).may_fail()
        self._opened(descriptor).truncate(size)

    def fsync(self, descriptor: int) -> None:
        """Makes earlier writes durable; after a failed sync some of them never are."""
        found = self._open[descriptor]
        until = 0 if isinstance(found, Path) else len(found.data)
        disk = self.enter(0.5 if isinstance(found, Path) else 1.0)
        fails = disk.loop.random.random() < disk.failing
        if fails:
            disk.failed()
        if isinstance(found, _File):
            found.lose(until, disk.loop.random) if fails else found.sync()
        elif not fails:
            disk.sync_names(found)
        if fails:
            raise _error(errno.EIO)

    def close(self, descriptor: int) -> None:
        """Forgets the descriptor; writes nothing."""
        del self._open[descriptor]

    # --- names ---------------------------------------------------------------------------------

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
        disk.directories.update((path, path.parent))

    def rename(self, source: Path, target: Path) -> None:
        disk = self.enter(0.0)
        disk.may_fail()
        file = self._file(source)
        disk.change(target, file)
        disk.change(source, None)

    def remove(self, path: Path) -> None:
        disk = self.enter(0.0)
        if path in disk.names:
            disk.may_fail()
            disk.change(path, None)

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
        return self.enter(0.0).has_queue(path)

    def remove_directory(self, path: Path) -> None:
        disk = self.enter(0.0)
        for name in [name for name in disk.names if name.parent == path]:
            disk.may_fail()
            disk.change(name, None)
        disk.directories.discard(path)
