"""The process that tries policies: in forked processes, which end with them.

``python -m webhook.trials.worker NICENESS DOOR`` takes jobs from the socket that is its input,
several at a time. For these it forks. Effects of a policy on memory, or an endless loop, end with
the forked process. This process stays as it was after its imports, so that a trial begins in a
millisecond. Several jobs that come together share one fork, each with limits of its own.

A second socket, the door (its number is ``DOOR``), delivers sockets of further users. For each of
these it forks a process that serves the socket until it is closed. Their trials do not wait for
those of the first socket, and no interpreter has to start.
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

from webhook.rego import program as compiler  # noqa: F401  # here, before any trial needs it
from webhook.trials import frames
from webhook.trials.job import (
    ANY_CEL,
    LATE,
    NO_PROCESS,
    READS_CEL,
    WITHOUT_MEMORY,
    Job,
    JobAnswer,
    has_cel,
)
from webhook.trials.outcomes import OutcomePipe, write_outcomes
from webhook.trials.trial import Clients, carry_out, used_bytes, written

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable, Iterator, Sequence

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
    """Tries policies until the requesting process is gone."""
    serve(_carried_out(Clients()), _prepare)


def serve(answer: Callable[[Job], bytes], prepare: Callable[[Job], None]) -> None:
    """Carries out jobs until the requesting process is gone; arguments are a niceness and a door.

    ``answer`` is called in a forked process, which ends with the jobs of one request, and has the
    limits of each job. ``prepare`` is called before, in this process, to import code for all jobs.
    """
    with contextlib.suppress(OSError):
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(priority, int(sys.argv[1])))
    asking = socket.socket(fileno=os.dup(0))
    door = socket.socket(fileno=int(sys.argv[2]))
    # A trial must not inherit it: the requesting side must notice the end of this process.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    used_bytes()  # without it there are no limits, so there must be no trials
    # Modules and caches of the first use are then ready for every trial.
    carry_out({"text": json.dumps(["Rego", {"rego": _USUAL}]), "disabledBuiltins": []})
    gc.collect()
    gc.freeze()
    _Server(asking, door, answer, prepare).serve()


def _carried_out(clients: Clients) -> Callable[[Job], bytes]:
    """Returns a function that carries out a job; each forked process has clients of its own."""
    return lambda job: written(carry_out(job, clients))


def _prepare(job: Job) -> None:
    if has_cel(job):
        # Here, so that it is imported once and not by each trial.
        from webhook.constraint.drivers import cel_evaluation  # noqa: F401, PLC0415


class _Server:
    """Carries out the jobs of one socket, and serves the door meanwhile."""

    def __init__(
        self,
        asking: socket.socket,
        door: socket.socket | None,
        answer: Callable[[Job], bytes],
        prepare: Callable[[Job], None],
    ) -> None:
        self._asking = asking
        self._door = door
        self._answer = answer
        self._prepare = prepare
        self._begun: set[int] = set()
        """The process ids of forked processes that serve further sockets."""

    def serve(self) -> None:
        """Carries out jobs until the requesting process is gone."""
        try:
            frames.send(self._asking, str(os.getpid()).encode())
            while (text := self._next()) is not None:
                jobs: list[Job] = marshal.loads(text)  # noqa: S302  # from our own process
                for job in jobs:
                    self._prepare(job)
                answers = self._answers(jobs)
                for answer in [*answers] if jobs[0].get("together") else answers:
                    frames.send(self._asking, marshal.dumps(answer))
                frames.send(self._asking, b"")
        except OSError:
            return  # The requesting process is gone.

    def _next(self) -> bytes | None:
        self._waits_for(self._asking.fileno(), None)
        return frames.receive(self._asking)

    def _answers(self, jobs: Sequence[Job]) -> Iterator[JobAnswer]:
        """Carries out trials in a forked process, until it ends; yields the answers.

        The time is that of a trial. The memory includes this process's, and that of all trials
        before.
        """
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            yield NO_PROCESS, b"", (0.0, 0)
            return
        if child == 0:
            os.close(reading)
            self._leave()
            _try_and_end(jobs, writing, self._answer)
        os.close(writing)
        source, compiled, is_late, seconds = OutcomePipe(reading, self._waits_for), 0, False, 0.0
        while compiled < len(jobs):
            written, is_late = source.read(jobs[compiled]["patienceSeconds"])
            if is_late or written is None:
                break
            took, outcome = marshal.loads(written)  # noqa: S302  # from our own process
            seconds += took[0]
            compiled += 1
            yield 0, outcome, took
        os.close(reading)
        if is_late:
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        ended = LATE if is_late else _ending(os.waitstatus_to_exitcode(status), usage)
        # Unless it ended by its own time, it may have needed memory that earlier trials had taken.
        is_its_own = not compiled or ended in (LATE, -signal.SIGXCPU, -signal.SIGKILL)
        if compiled < len(jobs) and is_its_own:
            took = usage.ru_utime + usage.ru_stime - seconds, usage.ru_maxrss * 1024
            yield ended or 1, b"", took

    def _waits_for(self, source: int, seconds: float | None) -> bool:
        """Whether data arrives within so many seconds; serves the door meanwhile."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            seconds_left = None if until is None else max(0.0, until - time.monotonic())
            door = () if self._door is None else (self._door.fileno(),)
            ready = select.select([source, *door], [], [], seconds_left)[0]
            if source in ready or not ready:
                return bool(ready)
            self._let_in()

    def _let_in(self) -> None:
        """Forks the process for a socket from the door."""
        assert self._door is not None
        for pid in [*self._begun]:
            # Not as soon as it ends: until then its process id cannot be reused.
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                self._begun.remove(pid)
        message, ends, _, _ = socket.recv_fds(self._door, 1, 1)
        if not message:
            self._door.close()
            self._door = None
        for number in ends:
            if message == READS_CEL:
                self._prepare(ANY_CEL)
            with socket.socket(fileno=number) as end, contextlib.suppress(OSError):
                try:
                    child = os.fork()
                except OSError:
                    frames.send(end, b"")
                    continue
                if child == 0:
                    self._leave()
                    self._serve_and_end(end)
                self._begun.add(child)

    def _leave(self) -> None:
        """Closes the sockets of the parent process in a forked process."""
        self._asking.close()
        if self._door is not None:
            self._door.close()

    def _serve_and_end(self, end: socket.socket) -> None:
        """Runs a forked process that serves a further socket."""
        code = 1
        try:
            os.setsid()  # a process group of its own, to be killed together with its forks
            _Server(end, None, self._answer, self._prepare).serve()
            code = 0
        finally:
            os._exit(code)


def _ending(code: int, usage: resource.struct_rusage) -> int | str:
    """Returns how a trial ended: its exit code, or out of memory.

    If fewer than 32 bytes are left, CPython 3.11 cannot record the place of an exception, and tries
    again until the processor limit ends it. An evaluation spends user time; this loop spends system
    time, in refused allocations.
    """
    if code == -signal.SIGXCPU and usage.ru_stime > usage.ru_utime:
        return WITHOUT_MEMORY
    return code


def _try_and_end(jobs: Sequence[Job], writing: int, answer: Callable[[Job], bytes]) -> None:
    """The whole life of a process that tries policies."""
    code = 1
    try:
        # If the system must kill a process for lack of memory, it should be this one.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        with os.fdopen(writing, "wb") as file:
            write_outcomes(jobs, file, answer)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
