"""Priorities of the process's threads, for when several could run.

The interpreter has one lock. Whoever holds it keeps it until another has waited for
:data:`SWITCH_INTERVAL_SECONDS`, and then the two take turns of that length: a review beside a
thread that computes would take twice its time. So the threads that are not being waited for stand
behind the others in the system's scheduler. On one core such a thread hardly gets to ask for the
lock while a review runs; when nobody reviews it has the core to itself.

With more cores it asks all the same. What Linux has for each thread is how late its timers may be,
and the wait for the lock is a timer: the thread that answers admissions wakes at once, and so takes
the lock from whoever computes, while those that compute wake too late to take it from a review.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from typing import Final

SWITCH_INTERVAL_SECONDS: Final = 0.00005
"""How long a thread waits for the interpreter before it has the one that computes let go: what a
review may have to wait each time that it needs it anew, which is about eight times (TLS and sockets
are read and written without it). A switch takes some 5 µs, a tenth of it."""

PROMPT_NS: Final = 1
"""How late the timers of a thread may be that others wait for; the system's own default is 50 µs,
as long again as the interval."""

PATIENT_NS: Final = 1_000_000
"""The slice of a thread that computes for long, in nanoseconds: about the time of a usual review,
so that none is interrupted. With five times that, reviews were no faster, and a slow review's rests
would be as much longer."""

_TIMER_SLACK: Final = 29
"""PR_SET_TIMERSLACK of `linux/prctl.h`."""

BEHIND: Final = 10
"""How much nicer the threads behind are: a tenth of the time of one that is not, on a core that
both could use all the time. So policies are followed under any load, if more slowly."""

AFTER: Final = 5
"""How much nicer threads that compute for a request are: a third of the time. They rest between
pieces of work; at the same priority each piece came before the thread that answers, which hardly
rests beside a flood. A container's share of a node is the same whatever its threads are."""

NICEST: Final = 19
"""The system's own end of the scale."""


def give_way(_worked_seconds: float) -> None:
    """Let whoever waits for the interpreter have it now."""
    time.sleep(0)


def go_first() -> None:
    """Have this thread wait for the interpreter no longer than it must."""
    _let_timers_be_late(PROMPT_NS)


def give_precedence() -> None:
    """Have this thread leave the interpreter to whoever goes first, and have it whenever they rest.

    For threads that compute for long, and whose work somebody waits for.
    """
    _let_timers_be_late(PATIENT_NS)


def _let_timers_be_late(nanoseconds: int) -> None:
    if sys.platform == "linux":
        # Where it is not allowed nothing changes.
        ctypes.CDLL(None).prctl(_TIMER_SLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0)


def compute_beside() -> None:
    """Have this thread give precedence, and have less of a core than who answers."""
    give_precedence()
    _be_nicer(AFTER)


def stand_behind() -> None:
    """Have this thread, and processes that it starts, stand behind the others."""
    give_precedence()
    _be_nicer(BEHIND)


def _be_nicer(nicer: int) -> None:
    """Lower this thread's priority; where the system has none of threads, or does not let us, nothing changes."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        priority = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(priority + nicer, NICEST))
