"""The process that tries policies: each in a process of its own, which ends with it.

``python -m webhook.trials.worker NICENESS`` takes jobs from the socket that is its input, one after the
other. For each it forks: what a policy's text does, to memory or for ever, ends with that process,
and this one stays as it was when it had read its own code, so that a trial begins in a millisecond.
"""

from __future__ import annotations

import contextlib
import gc
import json
import marshal
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.constraint.template import CEL
from webhook.rego import program as compiler  # noqa: F401  # here, before any trial needs it
from webhook.trials import frames
from webhook.trials.job import LATE, NO_PROCESS, Job
from webhook.trials.trial import NO_MEMORY, bound, carry_out, used_bytes, written

if TYPE_CHECKING:
    from collections.abc import Callable

OUTCOME_BYTES_MAX: Final = 64 << 20
"""Code of the largest template that may be compiled takes some 10 MB."""

_USUAL: Final = """package usual
violation[{"msg": msg, "details": {"missing": missing}}] {
    provided := {label | input.review.object.metadata.labels[label]}
    required := {label | label := input.parameters.labels[_]}
    missing := required - provided
    count(missing) > 0
    not startswith(input.review.object.metadata.name, "kube-")
    msg := sprintf("missing: %v", [missing])
}
"""


def main() -> None:
    """Try policies until nobody is there to ask."""
    serve(_carried_out, _prepare)


def serve(answer: Callable[[Job], bytes], prepare: Callable[[Job], None]) -> None:
    """Carry out jobs until nobody is there to ask; the program's arguments are a niceness.

    ``answer`` is called in a process of its own, which ends with it and has the job's bounds;
    ``prepare`` before, in this one, to read code that is then there for every job.
    """
    with contextlib.suppress(OSError):
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(own, int(sys.argv[1])))
    asking = socket.socket(fileno=os.dup(0))
    # A trial must not have it: whoever asked is to see when this process is gone.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    used_bytes()  # where that cannot be told there are no bounds, and shall be no trials
    # What a first time reads and remembers is then there for every trial.
    carry_out({"text": json.dumps(["Rego", {"rego": _USUAL}]), "disabledBuiltins": []})
    gc.collect()
    gc.freeze()
    try:
        frames.send(asking, b"ready")
        while (text := frames.receive(asking)) is not None:
            job: Job = marshal.loads(text)  # noqa: S302  # from our own process
            prepare(job)
            frames.send(asking, marshal.dumps(_answered(job, asking, answer)))
    except OSError:
        return  # Whoever asked is gone.


def _carried_out(job: Job) -> bytes:
    return written(carry_out(job))


def _prepare(job: Job) -> None:
    if _has_cel(job):
        # Here, so that it is read once and not by each trial.
        from webhook.constraint.drivers import cel_evaluation  # noqa: F401, PLC0415


def _has_cel(job: Job) -> bool:
    if "documents" in job:
        return job["cel"] and CEL.encode() in job["documents"]
    return CEL in job["text"][: len(CEL) + 2]


def _answered(
    job: Job, asking: socket.socket, answer: Callable[[Job], bytes]
) -> tuple[int | str, bytes, tuple[float, int]]:
    """How the process of a trial ended (as ``waitstatus_to_exitcode`` has it), and what it wrote.

    Then what it took: seconds of a processor, and bytes of memory, this process's among them.
    """
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return NO_PROCESS, b"", (0.0, 0)
    if child == 0:
        os.close(reading)
        asking.close()
        _try_and_end(job, writing, answer)
    os.close(writing)
    found, is_late = _read(reading, job["patienceSeconds"])
    os.close(reading)
    if is_late:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    took = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    return (LATE if is_late else os.waitstatus_to_exitcode(status)), found, took


def _read(source: int, patience_seconds: float) -> tuple[bytes, bool]:
    """All that is written there; whether that took too long."""
    until = time.monotonic() + patience_seconds
    found = bytearray()
    while len(found) < OUTCOME_BYTES_MAX:
        left = until - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return b"", True
        part = os.read(source, 1 << 20)
        if not part:
            break
        found += part
    return bytes(found), False


def _try_and_end(job: Job, writing: int, answer: Callable[[Job], bytes]) -> None:
    """The whole life of a trial's process."""
    code = 1
    try:
        # Where the system must end something for want of memory, let it be this.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        bound(job["cpuSeconds"], job["memoryBytes"])
        try:
            outcome = answer(job)
        except MemoryError:
            outcome = written(NO_MEMORY)
        with os.fdopen(writing, "wb") as file:
            file.write(outcome)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
