"""Threads that nobody waits for stand behind the others, and so do the processes they start."""

import os
import subprocess
import sys
import threading

import pytest

from webhook.app.priority import BEHIND, stand_behind

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
