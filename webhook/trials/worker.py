"""The process that tries policies: in processes of their own, which end with them.

``python -m webhook.trials.worker NICENESS DOOR`` takes jobs from the socket that is its input, some at a
time. For these it forks: what a policy's text does, to memory or for ever, ends with that process,
and this one stays as it was when it had read its own code, so that a trial begins in a millisecond.
Of many that come at once each has bounds of its own in the one process: a burst pays for one fork.

Through a second socket, the door (its number is ``DOOR``), come the ends of others. For each of
these it forks what serves that one until it is closed: trials which those of the first need not
wait for, without an interpreter that begins.
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
from webhook.trials.outcomes import OutcomePipe, tell
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
    """Try policies until nobody is there to ask."""
    serve(_carried_out(Clients()), _prepare)


def serve(answer: Callable[[Job], bytes], prepare: Callable[[Job], None]) -> None:
    """Carry out jobs until nobody is there to ask; the program's arguments: a niceness, a door.

    ``answer`` is called in a process that ends with those that were asked for together, and has
    each one's bounds; ``prepare`` before, in this one, to read code that is then there for every job.
    """
    with contextlib.suppress(OSError):
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(priority, int(sys.argv[1])))
    asking = socket.socket(fileno=os.dup(0))
    door = socket.socket(fileno=int(sys.argv[2]))
    # A trial must not have it: whoever asked is to see when this process is gone.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    used_bytes()  # where that cannot be told there are no bounds, and shall be no trials
    # What a first time reads and remembers is then there for every trial.
    carry_out({"text": json.dumps(["Rego", {"rego": _USUAL}]), "disabledBuiltins": []})
    gc.collect()
    gc.freeze()
    _Server(asking, door, answer, prepare).serve()


def _carried_out(clients: Clients) -> Callable[[Job], bytes]:
    """What answers; in each process that is forked the clients are its own."""
    return lambda job: written(carry_out(job, clients))


def _prepare(job: Job) -> None:
    if has_cel(job):
        # Here, so that it is read once and not by each trial.
        from webhook.constraint.drivers import cel_evaluation  # noqa: F401, PLC0415


class _Server:
    """Carries out the jobs of one who asks, and lets others in meanwhile."""

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
        """Processes that serve others."""

    def serve(self) -> None:
        """Carry out jobs until nobody is there to ask."""
        try:
            frames.send(self._asking, str(os.getpid()).encode())
            while (text := self._next()) is not None:
                jobs: list[Job] = marshal.loads(text)  # noqa: S302  # from our own process
                for job in jobs:
                    self._prepare(job)
                answers = self._answers(jobs)
                for one in [*answers] if jobs[0].get("together") else answers:
                    frames.send(self._asking, marshal.dumps(one))
                frames.send(self._asking, b"")
        except OSError:
            return  # Whoever asked is gone.

    def _next(self) -> bytes | None:
        self._waits_for(self._asking.fileno(), None)
        return frames.receive(self._asking)

    def _answers(self, jobs: Sequence[Job]) -> Iterator[JobAnswer]:
        """What comes of trials that a process of their own carries out, until it ends.

        What it took is that of a trial; of memory, this process's among it, all before it, too.
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
        # What ended otherwise than by its own time may have wanted memory that those before it had.
        is_its_own = not compiled or ended in (LATE, -signal.SIGXCPU, -signal.SIGKILL)
        if compiled < len(jobs) and is_its_own:
            took = usage.ru_utime + usage.ru_stime - seconds, usage.ru_maxrss * 1024
            yield ended or 1, b"", took

    def _waits_for(self, source: int, seconds: float | None) -> bool:
        """Whether it has something to read within so long; who comes to the door is let in."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            seconds_left = None if until is None else max(0.0, until - time.monotonic())
            door = () if self._door is None else (self._door.fileno(),)
            ready = select.select([source, *door], [], [], seconds_left)[0]
            if source in ready or not ready:
                return bool(ready)
            self._let_in()

    def _let_in(self) -> None:
        """Begin the process of the one whose end has come."""
        assert self._door is not None
        for one in [*self._begun]:
            # Not as soon as it ends: until then nothing else is known by its number.
            if os.waitpid(one, os.WNOHANG) != (0, 0):
                self._begun.remove(one)
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
        """In a process that has begun: what only the one before it is to have."""
        self._asking.close()
        if self._door is not None:
            self._door.close()

    def _serve_and_end(self, end: socket.socket) -> None:
        """The whole life of a process that serves another."""
        code = 1
        try:
            os.setsid()  # a group of its own, to be ended with the process that it begins
            _Server(end, None, self._answer, self._prepare).serve()
            code = 0
        finally:
            os._exit(code)


def _ending(code: int, usage: resource.struct_rusage) -> int | str:
    """How a trial ended: its exit code, or that it had no memory.

    Where no 32 bytes are left, CPython 3.11 cannot note where an exception was raised, and tries
    again until the processor's bound ends it. What evaluates spends its time itself; this spends it
    in the system, which refuses each time.
    """
    if code == -signal.SIGXCPU and usage.ru_stime > usage.ru_utime:
        return WITHOUT_MEMORY
    return code


def _try_and_end(jobs: Sequence[Job], writing: int, answer: Callable[[Job], bytes]) -> None:
    """The whole life of a process that tries policies."""
    code = 1
    try:
        # Where the system must end something for want of memory, let it be this.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        with os.fdopen(writing, "wb") as file:
            tell(jobs, file, answer)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
