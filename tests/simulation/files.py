"""The operating system's calls about files, answered by the disk of the process that calls.

What the product does with several of them (write beside, sync, rename) runs as it is. A process
without a disk in its world, and a descriptor of the real system, get the real calls.
"""

import contextvars
import os
from pathlib import Path
from typing import Any, Final, Protocol

DESCRIPTOR_MIN: Final = 1 << 20
"""From here on descriptors are a world's."""


class Files(Protocol):
    """A disk as one process has it."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor; raises OSError, as all of these do."""

    def write(self, descriptor: int, data: Any) -> int:
        """Returns the number of written bytes."""

    def pread(self, descriptor: int, count: int, position: int) -> bytes:
        """Bytes from there on."""

    def ftruncate(self, descriptor: int, size: int) -> None:
        """Cut it."""

    def fsync(self, descriptor: int) -> None:
        """Put a file's contents, or a directory's names, on the disk."""

    def close(self, descriptor: int) -> None:
        """Let go of it."""


FILES: "contextvars.ContextVar[Files]" = contextvars.ContextVar("files")
"""The files of the current process."""


def install() -> None:
    """Put these in place of :mod:`os`'s."""
    opens = os.open

    def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        files = FILES.get(None)
        if files is None:
            return opens(path, flags, *arguments, **options)
        return files.open(path, flags)

    os.open = opened
    for name in ("write", "pread", "ftruncate", "fsync", "close"):
        setattr(os, name, _by_descriptor(name, getattr(os, name)))
    os.fdatasync = os.fsync


def _by_descriptor(name: str, real: Any) -> Any:
    def call(descriptor: int, *arguments: Any) -> Any:
        if descriptor < DESCRIPTOR_MIN:
            return real(descriptor, *arguments)
        return getattr(FILES.get(), name)(descriptor, *arguments)

    return call
