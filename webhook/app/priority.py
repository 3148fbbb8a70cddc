"""Priorities of the process's threads, for times when several could run.

The interpreter has one lock. A thread keeps the lock until another has waited for
:data:`SWITCH_INTERVAL_SECONDS`; then the two take turns of that length. A review beside a computing
thread would take twice its time. So background threads have a lower priority in the system's
scheduler. On one core such a thread rarely gets to request the lock during a review; without
reviews it has the core to itself.

With more cores it requests the lock nevertheless. Linux lets each thread set how late its timers
may be, and the wait for the lock is a timer. The admission thread wakes at once and takes the lock
from a computing thread. Computing threads wake too late to take it from a review.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
import time
from typing import Final

SWITCH_INTERVAL_SECONDS: Final = 0.00005
"""How long a thread waits for the interpreter before the computing thread must release it. A review
may wait this long each time it needs the interpreter again, about eight times (TLS and sockets are
read and written without it). A switch takes some 5 µs, a tenth of it."""

PROMPT_NS: Final = 1
"""The timer slack of a preferred thread, in nanoseconds. The system's default is 50 µs, as long
again as the interval."""

PATIENT_NS: Final = 1_000_000
"""The time slice of a computing thread, in nanoseconds: about the time of a usual review, so that
none is interrupted. With five times that, reviews were no faster, and a slow review's rests would
be that much longer."""

SHORT_SLICE_NS: Final = 100_000
"""The time slice that the system gives a preferred thread, in nanoseconds: the least that there is.
A thread that wakes takes the core only from one with a longer slice, else it waits for the end of
that, 3 to 4 ms. So long the answering thread could not request the interpreter. Needs Linux 6.12;
older systems ignore it."""

USUAL_SLICE_NS: Final = 0
"""The system's own time slice."""

_SET_ATTRIBUTES: Final = {"x86_64": 314, "aarch64": 274}
"""The number of the call `sched_setattr` by machine; glibc has no function of it."""

_ATTRIBUTES: Final = struct.Struct("IIQiIQQQ")
"""`sched_attr` of `linux/sched/types.h`: size, policy, flags, nice, priority, runtime and two more."""

_TIMER_SLACK: Final = 29
"""PR_SET_TIMERSLACK of `linux/prctl.h`."""

BEHIND: Final = 12
"""The additional niceness of background threads: a fifteenth of the time of a normal thread, on a
core that both could use all the time. So policies are followed under any load, if more slowly."""

AFTER: Final = 10
"""The additional niceness of threads that compute for a request: a tenth of the time. Several of
them compute in a flood of slow objects. With a third of the time each, four had more than the
answering thread, which then waited up to 10 ms for the core, and they answered no more requests. A
container's share of a node does not depend on its threads."""

NICEST: Final = 19
"""The system's largest niceness."""


def give_way(_worked_seconds: float) -> None:
    """Releases the interpreter to any waiting thread."""
    time.sleep(0)


def go_first() -> None:
    """Makes this thread wait for the interpreter and for a core as short as possible."""
    _let_timers_be_late(PROMPT_NS)
    _set_slice(SHORT_SLICE_NS)


def give_precedence() -> None:
    """Makes this thread leave the interpreter to preferred threads, and use it while they rest.

    For threads with long computations whose results are awaited.
    """
    _let_timers_be_late(PATIENT_NS)
    _set_slice(USUAL_SLICE_NS)  # A new thread has that of the thread that started it.


def _let_timers_be_late(nanoseconds: int) -> None:
    if sys.platform == "linux":
        # Without the permission nothing changes.
        ctypes.CDLL(None).prctl(_TIMER_SLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0)


def _set_slice(nanoseconds: int) -> None:
    """Sets the time slice of this thread, if the system permits it."""
    number = _SET_ATTRIBUTES.get(os.uname().machine) if sys.platform == "linux" else None
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, nanoseconds, 0, 0)
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, attributes, 0)


def compute_beside() -> None:
    """Makes this thread yield to preferred threads, with a smaller share of a core than theirs."""
    give_precedence()
    _be_nicer(AFTER)


def stand_behind() -> None:
    """Makes this thread, and processes that it starts, yield to all others."""
    give_precedence()
    _be_nicer(BEHIND)


def _be_nicer(nicer: int) -> None:
    """Lowers this thread's priority, if the system permits it."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        priority = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(priority + nicer, NICEST))
