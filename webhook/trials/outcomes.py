"""Outcomes of trials on a pipe: from the forked process to the process that forked it.

Each outcome is the seconds of a processor and the bytes of memory of a trial, and its result,
encoded by ``marshal``, with its length in front.
"""

from __future__ import annotations

import marshal
import os
import resource
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final

from webhook.trials import frames
from webhook.trials.job import NO_MEMORY, Job
from webhook.trials.trial import bound, used_bytes, written

OUTCOME_BYTES_MAX: Final = 64 << 20
"""Code of the largest template that may be compiled takes some 10 MB."""

TOGETHER_CPU_SECONDS: Final = 0.25
TOGETHER_BYTES: Final = 8 << 20
"""The most memory that earlier trials in one process may have taken when the next begins, in bytes.
Other trials wait for the process, and the next one shall find it nearly unused. A constraint takes
less than a millisecond."""

_NO_MEMORY: Final = written(NO_MEMORY)


def write_outcomes(jobs: Sequence[Job], file: BinaryIO, answer: Callable[[Job], bytes]) -> None:
    """Carries out jobs within their limits, and writes the outcome of each as soon as it is known.

    It stops early in two cases: the jobs so far have taken much memory; or a job needs more memory
    than those before it have left. That job is then tried again in a new process.
    """
    began = used_bytes()
    for number, job in enumerate(jobs):
        bound(job["cpuSeconds"], began + job["memoryBytes"])
        before = resource.getrusage(resource.RUSAGE_SELF)
        try:
            outcome = answer(job)
        except MemoryError:
            outcome = _NO_MEMORY
        if number and outcome == _NO_MEMORY:
            break
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = _cpu_seconds(after) - _cpu_seconds(before)
        data = marshal.dumps(((seconds, after.ru_maxrss * 1024), outcome))
        file.write(frames.LENGTH.pack(len(data)) + data)
        file.flush()
        is_much = _cpu_seconds(after) > TOGETHER_CPU_SECONDS
        if is_much or used_bytes() - began > TOGETHER_BYTES:
            break


def _cpu_seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


class OutcomePipe:
    """The outcomes that a process writes, one after the other."""

    def __init__(self, source: int, waits_for: Callable[[int, float], bool]) -> None:
        """``waits_for`` waits for data within so many seconds, and returns whether there is any."""
        self._source = source
        self._waits_for = waits_for
        self._found = bytearray()

    def read(self, patience_seconds: float) -> tuple[bytes | None, bool]:
        """Returns the next outcome, None at the end; and whether it took too long."""
        until = time.monotonic() + patience_seconds
        while True:
            if len(self._found) >= frames.LENGTH.size:
                (length,) = frames.LENGTH.unpack_from(self._found)
                whole = frames.LENGTH.size + length
                if length > OUTCOME_BYTES_MAX:
                    return None, False
                if len(self._found) >= whole:
                    taken = bytes(self._found[frames.LENGTH.size : whole])
                    del self._found[:whole]
                    return taken, False
            seconds_left = until - time.monotonic()
            if seconds_left <= 0 or not self._waits_for(self._source, seconds_left):
                return None, True
            part = os.read(self._source, 1 << 20)
            if not part:
                return None, False
            self._found += part
