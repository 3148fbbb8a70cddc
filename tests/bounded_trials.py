"""Processes that try policies, ended as the system ends them at their bound of processor time."""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path


def children(process: int) -> list[int]:
    """The processes that a process has begun."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def is_bounded(process: int) -> bool:
    """Whether the system ends it at a bound of processor time, as what tries policies."""
    try:
        limits = Path(f"/proc/{process}/limits").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    (line,) = (one for one in limits.splitlines() if one.startswith("Max cpu time"))
    return line.split()[3] != "unlimited"


def end_trials(servers: Iterable[int]) -> set[int]:
    """End what tries policies now as the system does at the bound of processor time.

    Of these servers, by their processes. A busy machine would be long in giving them as much. Gives
    the processes that were ended.
    """
    workers = [worker for server in servers for worker in children(server)]
    begun = {child for worker in workers for child in children(worker)}
    # Large policies are tried by a child of a process that the worker has forked.
    found = {one for process in begun for one in (process, *children(process)) if is_bounded(one)}
    for trial in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(trial, signal.SIGXCPU)
    return found
