"""The file layer: all durable bytes pass through here.

A crash test can replace this layer by one that forgets all unsynced bytes at the kill. After
SIGKILL alone the page cache still holds them, and nothing would be tested.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Final, Protocol

LOCK: Final = "lock"
"""The lock file in a queue's directory, locked by the queue's owner."""


class AppendFile(Protocol):
    """A file that only grows, save for the repair of its tail."""

    def write(self, data: bytes) -> None:
        """Append all of ``data``; raises :class:`OSError`, after which a part may be there."""

    def sync(self) -> None:
        """Returns once all written bytes are on the disk."""

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes."""

    def close(self) -> None:
        """Closes the file, without a sync."""


class Lock(Protocol):
    """An exclusive lock on a queue's directory, released with the end of its process."""

    def release(self) -> None:
        """Releases the directory for others."""


class Disk(Protocol):
    """The sidecar's access to files; all methods may raise :class:`OSError`."""

    def append(self, path: Path) -> AppendFile:
        """Opens for appending; a new file's name is durable after :meth:`sync_directory`."""

    def read(self, path: Path, position: int, count: int) -> bytes:
        """Reads up to ``count`` bytes from ``position``; fewer only at the end."""

    def size(self, path: Path) -> int:
        """Bytes in a file."""

    def names(self, directory: Path) -> list[str]:
        """Returns the names in a directory, sorted."""

    def make_directory(self, path: Path) -> None:
        """Makes a directory and its parents, unless they exist."""

    def replace(self, path: Path, data: bytes) -> None:
        """Replaces a whole file at once; it is durable on return."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename; durable after :meth:`sync_directory`."""

    def remove(self, path: Path) -> None:
        """Removes a file, if it exists."""

    def sync_directory(self, directory: Path) -> None:
        """Makes created, changed and removed names in a directory durable."""

    def free_bytes(self, directory: Path) -> int:
        """Bytes that an unprivileged process can still write there."""

    def lock(self, directory: Path) -> Lock | None:
        """Returns the lock of a directory, or None while another process holds it.

        A directory removed between opening and locking is not locked at all.
        """

    def is_queue(self, path: Path) -> bool:
        """Whether this is a directory, not a link to one, with a lock file."""

    def remove_directory(self, path: Path) -> None:
        """Removes a delivered queue and all below it; raises :class:`OSError`."""


class _OSFile:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


class _OSLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


class OSDisk:
    """The operating system's files.

    Nothing is opened through a symbolic link and all is readable by the owner
    only: records may name users and their resources.
    """

    __slots__ = ()

    def append(self, path: Path) -> AppendFile:
        """Opens a file for appending; creates it if necessary."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return _OSFile(os.open(path, flags, 0o600))

    def read(self, path: Path, position: int, count: int) -> bytes:
        """Reads up to ``count`` bytes from ``position``."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, count, position)
        finally:
            os.close(descriptor)

    def size(self, path: Path) -> int:
        """Bytes in a file."""
        return path.stat().st_size

    def names(self, directory: Path) -> list[str]:
        """Returns the names in a directory, sorted."""
        return sorted(os.listdir(directory))  # noqa: PTH208  # names are needed, not paths

    def make_directory(self, path: Path) -> None:
        """Makes a directory and its parents."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def replace(self, path: Path, data: bytes) -> None:
        """Writes a new file, then renames it over the old one.

        Always with a sync: otherwise the file could be empty after a power failure.
        """
        beside = path.with_name(path.name + ".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        file = _OSFile(os.open(beside, flags, 0o600))
        try:
            file.write(data)
            file.sync()
        finally:
            file.close()
        self.rename(beside, path)
        self.sync_directory(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        """Renames a file over any existing one."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Removes a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    def sync_directory(self, directory: Path) -> None:
        """Sync a directory's names."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, directory: Path) -> int:
        """Bytes left to an unprivileged process."""
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize

    def lock(self, directory: Path) -> Lock | None:
        """Returns the lock of a directory, if it is free."""
        import fcntl  # noqa: PLC0415  # missing on Windows, where logs are only read

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(directory / LOCK, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            here = os.fstat(descriptor)
            there = (directory / LOCK).stat()
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            os.close(descriptor)
            return None
        return _OSLock(descriptor)

    def is_queue(self, path: Path) -> bool:
        """Whether this is a directory that was ever locked."""
        return path.is_dir() and not path.is_symlink() and (path / LOCK).exists()

    def remove_directory(self, path: Path) -> None:
        """Removes a delivered queue and all below it; raises :class:`OSError`."""
        shutil.rmtree(path)
