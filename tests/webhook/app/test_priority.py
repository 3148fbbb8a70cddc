"""Threads that nobody waits for stand behind the others, and so do the processes they start."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from webhook.app.priority import (
    _ATTRIBUTES,
    _SET_ATTRIBUTES,
    AFTER,
    BEHIND,
    PATIENT_NS,
    PROMPT_NS,
    SHORT_SLICE_NS,
    compute_beside,
    give_precedence,
    go_first,
    stand_behind,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities here")


def niceness() -> int:
    """This thread's."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_thread_and_what_it_starts_stand_behind_the_others() -> None:
    own = niceness()
    found = []

    def run() -> None:
        stand_behind()
        found.append(niceness())
        command = [sys.executable, "-I", "-S", "-c", "import os; print(os.nice(0))"]
        found.append(int(subprocess.run(command, capture_output=True, check=True).stdout))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [min(own + BEHIND, 19)] * 2
    assert niceness() == own


def slice_ns() -> int:
    """Returns this thread's time slice, as Linux from 6.12 on says; 0 before."""
    found = ctypes.create_string_buffer(_ATTRIBUTES.size)
    number = {"x86_64": 315, "aarch64": 275}[os.uname().machine]  # sched_getattr
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, found, len(found), 0)
    return int(_ATTRIBUTES.unpack(found.raw)[5])


@pytest.mark.skipif(
    os.uname().machine not in _SET_ATTRIBUTES or not slice_ns(), reason="slices cannot be set here"
)
def test_the_answering_thread_has_a_shorter_slice_than_those_that_it_starts() -> None:
    """It waited for the end of theirs each time that it wanted the core."""
    found = []

    def compute() -> None:
        compute_beside()
        found.append(slice_ns())

    def answer() -> None:
        go_first()
        found.append(slice_ns())
        beside = threading.Thread(target=compute)
        beside.start()
        beside.join()

    thread = threading.Thread(target=answer)
    thread.start()
    thread.join()
    assert found == [SHORT_SLICE_NS, slice_ns()]
    assert found[0] < found[1]


def test_a_thread_that_computes_for_a_request_has_less_of_a_core_than_who_answers() -> None:
    own = niceness()
    found = []

    def run() -> None:
        compute_beside()
        found.append(niceness())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [min(own + AFTER, 19)]
    assert niceness() == own


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        (go_first, PROMPT_NS),
        (give_precedence, PATIENT_NS),
        (compute_beside, PATIENT_NS),
        (stand_behind, PATIENT_NS),
    ],
)
def test_who_answers_wakes_at_once_and_who_computes_for_long_leaves_it_the_interpreter(
    say: Callable[[], None], expected: int
) -> None:
    get_timer_slack = 30  # PR_GET_TIMERSLACK of linux/prctl.h
    found = []

    def run() -> None:
        say()
        found.append(ctypes.CDLL(None).prctl(get_timer_slack, 0, 0, 0, 0))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [expected]
