"""Memory as the system sees it: how much the process has, and what of it is free but kept.

The C library keeps what is freed for its next use: in an arena for each of several threads, and
the more, the larger the blocks that were freed. After a flood of large requests a replica would
hold what it took for good, and the next one would come on top.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import time
from functools import cache
from typing import Any, Final

ARENAS_MAX: Final = 2
"""Threads that allocate at a time are those that hold no interpreter's lock: hardly any."""

MAPPED_BYTES: Final = 256 * 1024
"""From here on a block is the system's again as soon as it is freed; glibc's own bound grows to
32 MiB with the first block of that size. Usual requests have no such blocks."""

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""M_MMAP_THRESHOLD and M_ARENA_MAX of glibc's `malloc.h`."""

_OWN_REFERENCES: Final = 2
"""Of what a list holds and a call is given; a part of it is also held by what is around it."""

_SLICE_SECONDS: Final = 0.0002
"""A slice that takes less is followed by one of twice as many."""

_LARGE: Final = 10_000
"""Members from which on something is freed in slices: as many take some 0.2 ms."""

_CO_OPTIMIZED: Final = 1
"""Of the code of a function: `inspect` has it, too, and takes 5 ms to import."""

_PAGE_BYTES: Final = mmap.PAGESIZE


@cache
def _library() -> ctypes.CDLL:
    """Open the C library once: each opening is garbage that only a full collection finds."""
    return ctypes.CDLL(None)


def bound(arenas_max: int = ARENAS_MAX, mapped_bytes: int = MAPPED_BYTES) -> None:
    """Keep little of what is freed; called before there are threads. Elsewhere than on glibc nothing."""
    with contextlib.suppress(AttributeError, OSError):
        library = _library()
        library.mallopt(_ARENA_MAX, arenas_max)
        library.mallopt(_MMAP_THRESHOLD, mapped_bytes)


def give_back() -> None:
    """Give to the system what is free; takes some milliseconds, for which others can run."""
    with contextlib.suppress(AttributeError, OSError):
        _library().malloc_trim(0)


def is_held(large: list[Any]) -> bool:
    """Whether anybody else holds one of these arrays and objects, each within the one before it."""
    around = 0
    for number in range(len(large)):
        if sys.getrefcount(large[number]) > _OWN_REFERENCES + around:
            return True
        around = 1
    return False


def free_in_slices(large: list[Any]) -> None:
    """Free arrays and objects that nobody else holds, the outermost first, and empty the list.

    At once, a million parts would take 40 ms, for which all other threads wait.
    """
    large.reverse()
    while large:
        parts = large.pop()
        if type(parts) is dict:
            while parts:
                parts.popitem()
            continue
        count = 1
        while parts:
            began = time.monotonic()
            del parts[-count:]
            is_short = time.monotonic() - began < _SLICE_SECONDS
            count = count * 2 if is_short else max(count // 4, 1)


def free_what_failed(error: BaseException) -> None:
    """Free what the calls held that an error ended, its large arrays and objects in slices.

    Whoever lets go of the error alone frees all of it at once: 51 to 91 ms for a policy's pairs.
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
            one for one in local_values.values() if type(one) in (list, dict) and len(one) > _LARGE
        ]
        if type(local_values) is dict and frame.f_code.co_flags & _CO_OPTIMIZED:
            local_values.clear()  # The copy that Python up to 3.12 keeps of a function's variables.
        with contextlib.suppress(RuntimeError):  # It has not ended: it is the caller's.
            frame.clear()
        traceback = traceback.tb_next
    error.__traceback__ = None
    while large:
        if sys.getrefcount(large[-1]) > _OWN_REFERENCES:
            large.pop()
        else:
            free_in_slices([large.pop()])


class ResidentMemory:
    """Reads the memory of the process: one read of a file that stays open."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def bytes_now(self) -> int:
        """Bytes; 0 where the system does not tell."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 128, 0).split()[1]) * _PAGE_BYTES
