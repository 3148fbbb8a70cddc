"""Which of the process's threads goes first when several could run.

The interpreter has one lock. Whoever holds it keeps it until another has waited for
:data:`SWITCH_INTERVAL_SECONDS`, and then the two take turns of that length: a review beside a
thread that computes would take twice its time. So the threads that are not being waited for stand
behind the others in the system's scheduler. On one core such a thread hardly gets to ask for the
lock while a review runs; when nobody reviews it has the core to itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Final

SWITCH_INTERVAL_SECONDS: Final = 0.0002
"""How long a thread waits for the interpreter before it has the one that computes let go: what a
review may have to wait before it begins. A switch takes some 5 µs, a fortieth of it. On one core
beside a thread that always computes, a review of 1.2 ms took at the median (90th percentile, ms):
with Python's own 5 ms 6.4 (7.8), with 1 ms 3.3 (4.9), with 0.2 ms 2.0 (3.5), and with 0.2 ms and
:data:`BEHIND` 1.6 (1.9)."""

BEHIND: Final = 10
"""How much nicer the threads behind are: a tenth of the time of one that is not, on a core that
both could use all the time. So policies are followed under any load, if more slowly."""

NICEST: Final = 19
"""The system's own end of the scale."""


def give_way(_worked_seconds: float) -> None:
    """Let whoever waits for the interpreter have it now."""
    time.sleep(0)


def stand_behind() -> None:
    """Have this thread, and processes that it starts, stand behind the others.

    Where the system knows no priorities of threads, or does not let us, nothing changes.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        own = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(own + BEHIND, NICEST))
