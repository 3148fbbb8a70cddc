"""A sidecar on a disk that forgets at the kill what was not synced.

``python -m tests.decisions.volatile CONFIG SEED FULL`` runs the real sidecar;
while the file FULL exists, writing finds the disk full. SIGKILL alone leaves
the page cache in place, so that a missing sync would go unnoticed: here bytes
reach the real file at a sync, or, by chance and in part, before it.
"""

import asyncio
import errno
import os
import random
import sys
import threading
from pathlib import Path

from webhook import log
from webhook.decisions.configuration import load
from webhook.decisions.sidecar.disk import OSDisk
from webhook.decisions.sidecar.process import run_sidecar
from webhook.decisions.sidecar.settings import read_settings

HIDDEN = ".volatile-"


class VolatileFile:
    """Holds what was appended in memory until a sync."""

    def __init__(self, disk: "VolatileDisk", path: Path) -> None:
        self._disk = disk
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._pending = b""

    def write(self, data: bytes) -> None:
        if self._disk.full.exists():
            self._pending += data[: self._disk.random.randrange(len(data))]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._pending += data
        if self._disk.random.random() < 0.3:  # the system writes back when it likes
            self._flush(self._disk.random.randrange(len(self._pending) + 1))

    def sync(self) -> None:
        if self._disk.full.exists() and self._disk.random.random() < 0.5:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._flush(len(self._pending))

    def truncate(self, size: int) -> None:
        real = os.fstat(self._descriptor).st_size
        if size >= real:
            self._pending = self._pending[: size - real]
        else:
            self._pending = b""
            os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)

    def _flush(self, count: int) -> None:
        os.write(self._descriptor, self._pending[:count])
        self._pending = self._pending[count:]


class VolatileDisk(OSDisk):
    """Names too are durable only after the directory's sync: new ones vanish, removed ones return."""

    def __init__(self, seed: int, full: Path) -> None:
        self.random = random.Random(seed)
        self.full = full
        self._new: set[Path] = set()
        self._removed: set[Path] = set()
        self._lock = threading.RLock()  # the committing and the draining threads come at once

    def append(self, path: Path) -> VolatileFile:
        with self._lock:
            if not path.exists() or path in self._removed:
                self._new.add(path)
            return VolatileFile(self, self._real(path))

    def read(self, path: Path, position: int, count: int) -> bytes:
        with self._lock:
            if path in self._removed:
                raise FileNotFoundError(path)
            return super().read(self._real(path), position, count)

    def size(self, path: Path) -> int:
        with self._lock:
            return super().size(self._real(path))

    def names(self, directory: Path) -> list[str]:
        with self._lock:
            found = {name for name in super().names(directory) if not name.startswith(HIDDEN)}
            found -= {path.name for path in self._removed if path.parent == directory}
            return sorted(found | {path.name for path in self._new if path.parent == directory})

    def replace(self, path: Path, data: bytes) -> None:
        with self._lock:
            super().replace(path, data)

    def remove(self, path: Path) -> None:
        with self._lock:
            if path in self._new:
                super().remove(self._real(path))
                self._new.discard(path)
            else:
                self._removed.add(path)

    def sync_directory(self, directory: Path) -> None:
        with self._lock:
            for path in [path for path in self._removed if path.parent == directory]:
                super().remove(path)
                self._removed.discard(path)
            for path in [path for path in self._new if path.parent == directory]:
                hidden = self._real(path)
                self._new.discard(path)
                if hidden.exists():
                    hidden.replace(path)
            super().sync_directory(directory)

    def _real(self, path: Path) -> Path:
        return path.with_name(HIDDEN + path.name) if path in self._new else path


def forget(directory: Path) -> None:
    """Deletes the files whose names were not synced before the kill."""
    for left in directory.glob(f"{HIDDEN}*"):
        left.unlink()


def main() -> None:
    config, seed, full = sys.argv[1:]
    settings = read_settings(load(Path(config)))
    forget(settings.directory)
    disk = VolatileDisk(int(seed), Path(full))
    asyncio.run(run_sidecar(settings, log.open_log().logger("sidecar"), disk))


if __name__ == "__main__":
    main()
