"""Memory as the system counts it: resident memory of the process, and freed memory that it retains.

The C library retains freed blocks: in an arena for each of several threads, and more if the blocks
were large. After a flood of large requests a replica would retain their memory, and the next flood
would add to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

ARENAS_MAX: Final = 2
"""Few threads allocate at the same time: only those without the interpreter's lock."""

MAPPED_BYTES: Final = 256 * 1024
"""Blocks from this size on return to the system when freed; glibc's own bound grows to 32 MiB with
the first block of that size. Usual requests have no such blocks."""

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""M_MMAP_THRESHOLD and M_ARENA_MAX of glibc's `malloc.h`."""

_OWN_REFERENCES: Final = 2
"""References of a value in a list during a call; a part of the value is also referenced by its
parent."""

_SLICE_SECONDS: Final = 0.0002
"""A slice that takes less is followed by a slice of twice the size."""

_PAIRS: Final = 4_096
"""Members of an object in a slice, some 0.3 ms."""

_LARGE: Final = 10_000
"""Members from which on a container is freed in slices: so many take some 0.2 ms."""

_CO_OPTIMIZED: Final = 1
"""A flag of a function's code, also in `inspect`, which takes 5 ms to import."""

_PAGE_BYTES: Final = mmap.PAGESIZE


@cache
def _library() -> ctypes.CDLL:
    """Opens the C library once: each opening makes garbage that only a full collection finds."""
    return ctypes.CDLL(None)


def bound(arenas_max: int = ARENAS_MAX, mapped_bytes: int = MAPPED_BYTES) -> None:
    """Limits the retained memory; must precede the start of threads. Does nothing without glibc."""
    with contextlib.suppress(AttributeError, OSError):
        library = _library()
        library.mallopt(_ARENA_MAX, arenas_max)
        library.mallopt(_MMAP_THRESHOLD, mapped_bytes)


def give_back() -> None:
    """Returns free memory to the system; takes some milliseconds, in which other threads run."""
    with contextlib.suppress(AttributeError, OSError):
        _library().malloc_trim(0)


def is_held(large: list[Any]) -> bool:
    """Returns whether other references to these nested arrays and objects exist."""
    around = 0
    for number in range(len(large)):
        if sys.getrefcount(large[number]) > _OWN_REFERENCES + around:
            return True
        around = 1
    return False


def free_in_slices(large: list[Any], rest: Callable[[], None] = lambda: None) -> None:
    """Frees arrays and objects without other references, the outermost first, and empties the list.

    Freeing a million parts at once would take 40 ms, during which all other threads wait. ``rest``
    is called after each slice that is not short.
    """
    large.reverse()
    while large:
        parts = large.pop()
        if type(parts) is dict:
            while parts:
                for _ in range(min(len(parts), _PAIRS)):
                    parts.popitem()
                if parts:
                    rest()
            continue
        count = 1
        while parts:
            began = time.monotonic()
            del parts[-count:]
            is_short = time.monotonic() - began < _SLICE_SECONDS
            count = count * 2 if is_short else max(count // 4, 1)
            if not is_short:
                rest()


def free_what_failed(error: BaseException) -> None:
    """Frees the values of calls that an error ended; large arrays and objects are freed in slices.

    Deleting the error alone frees everything at once: 51 to 91 ms for a policy's pairs.
    """
    large: list[Any] = []
    traceback, context = error.__traceback__, error.__context__
    if context is not None:
        error.__context__ = None
        free_what_failed(context)
    while traceback is not None:
        frame = traceback.tb_frame
        local_values = frame.f_locals
        large += [
            value
            for value in local_values.values()
            if type(value) in (list, dict) and len(value) > _LARGE
        ]
        if type(local_values) is dict and frame.f_code.co_flags & _CO_OPTIMIZED:
            local_values.clear()  # The copy that Python up to 3.12 keeps of a function's variables.
        with contextlib.suppress(RuntimeError):  # Still running: the frame belongs to the caller.
            frame.clear()
        traceback = traceback.tb_next
    error.__traceback__ = None
    while large:
        if sys.getrefcount(large[-1]) > _OWN_REFERENCES:
            large.pop()
        else:
            free_in_slices([large.pop()])


class ResidentMemory:
    """Reads the resident memory of the process: one read of a file that stays open."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def bytes_now(self) -> int:
        """Returns bytes; 0 if the system does not report them."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 128, 0).split()[1]) * _PAGE_BYTES
