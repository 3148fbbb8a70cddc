"""The worker process, as seen by its users: started on demand, killed if it does not answer.

A separate process for large policies is a branch of it: forked, and so started in milliseconds.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from webhook.trials import frames
from webhook.trials.job import ATTEMPTS, READS_CEL, READS_REGO, Job, JobAnswer, NoWorker

START_SECONDS: Final = 60.0
"""The time limit for the start of an interpreter with the compiler, 0.2 s of a processor, on a busy
machine."""

MARGIN_SECONDS: Final = 10.0
"""How much longer than the time of a trial the worker is waited for."""


class Worker:
    """A process that tries policies. Used by one thread at a time, started by any."""

    def __init__(self, niceness: int, program: str = "webhook.trials.worker") -> None:
        """``niceness`` is its least: it yields to processes that do not wait for it.

        ``program`` is the module to run, which serves jobs in the same way as the one for policies.
        """
        self._niceness = str(niceness)
        self._program = program
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._socket: socket.socket | None = None
        self._ending: weakref.finalize[..., Worker] | None = None

    def start(self) -> None:
        """Begin, if it has not; raises :class:`NoWorker`."""
        with self._starting:
            if self._process is None:
                self._start()

    def _start(self) -> None:
        try:
            self._socket, its = socket.socketpair()
            self._door, inner = socket.socketpair()
        except OSError as error:
            self.stop()
            raise NoWorker(str(error)) from None
        connection = self._socket
        try:
            with its, inner:
                self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                    [
                        *(sys.executable, "-I", "-m", self._program),
                        *(self._niceness, str(inner.fileno())),
                    ],
                    stdin=its.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    pass_fds=[inner.fileno()],
                    # A process group of its own, to be killed together with its forks.
                    start_new_session=True,
                )
            # Some users (commands, the library) drop this object without calling :meth:`stop`.
            self._ending = weakref.finalize(self, _end, self._process, self._socket, self._door)
            connection.settimeout(START_SECONDS)
            begun = frames.receive(connection)
        except OSError as error:
            self.stop()
            raise NoWorker(str(error)) from None
        except BaseException:
            self.stop()
            raise
        if begun is None:
            code = None if self._process is None else self._process.wait()
            self.stop()
            raise NoWorker(f"the process ended at its start, with {code}")

    def let_in(self, end: socket.socket, message: bytes) -> None:
        """Makes the worker fork a process that serves this socket; closed if the worker is gone.

        Raises :class:`NoWorker` if the worker cannot be started.
        """
        self.start()
        if (door := self._door) is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(door, [message], [end.fileno()])

    def ask(self, job: Job) -> JobAnswer:
        """Has a job carried out; raises :class:`NoWorker`."""
        (answer,) = self.ask_all([job])
        return answer

    def ask_all(self, jobs: Sequence[Job]) -> Iterator[JobAnswer]:
        """Has jobs carried out; yields each answer as it comes, at least the first.

        One process carries them out one after the other. It ends with the first job that is killed,
        or when the jobs have taken much memory. The caller must request the remaining jobs again.
        The first of these may be a job that had too little memory after those before it. The caller
        takes all answers. Raises :class:`NoWorker`.
        """
        self.start()
        connection = self._socket
        if connection is None:
            raise NoWorker("the process that tries policies ended")
        yield from _conversation(connection, jobs, lambda: self._stop_if_connected_by(connection))

    def _stop_if_connected_by(self, connection: socket.socket) -> None:
        # It may have been restarted meanwhile.
        if self._socket is connection:
            self.stop()

    def stop(self) -> None:
        """Kills the process, and all processes that it has forked."""
        process, self._process = self._process, None
        for end in (self._socket, self._door):
            if end is not None:
                end.close()
        self._socket = self._door = None
        if process is not None:
            _end(process)
        if self._ending is not None:
            self._ending.detach()


def _end(process: subprocess.Popen[bytes], *ends: socket.socket) -> None:
    """Kills a process and its forks, and closes the sockets."""
    for end in ends:
        end.close()
    if process.returncode is None:  # otherwise its number may be another process's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Branch:
    """A process that a worker has forked: started in milliseconds, for a few jobs."""

    def __init__(self, worker: Worker, *, reads_cel: bool) -> None:
        """``reads_cel`` is whether it needs the modules for CEL."""
        self._worker = worker
        self._mode = READS_CEL if reads_cel else READS_REGO
        self._group: int | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Begin, and its worker if that has not; raises :class:`NoWorker`."""
        for _ in range(ATTEMPTS):
            if begun := self._begun():
                self._group = int(begun)
                return
            self.stop()
            if begun is not None:
                break
            self._worker.stop()  # the system has killed it: it is started again
        raise NoWorker("no process can be started")

    def _begun(self) -> bytes | None:
        """Returns the process's number; empty if it cannot be forked, None if the worker is gone."""
        try:
            self._socket, its = socket.socketpair()
        except OSError as error:
            raise NoWorker(str(error)) from None
        self._socket.settimeout(START_SECONDS)
        with its:
            self._worker.let_in(its, self._mode)
        try:
            return frames.receive(self._socket)
        except OSError:
            return None

    def ask_all(self, jobs: Sequence[Job]) -> Iterator[JobAnswer]:
        """Has a worker carry out jobs."""
        if self._socket is None:
            raise NoWorker("the process that tries policies ended")
        yield from _conversation(self._socket, jobs, self.stop)

    def stop(self) -> None:
        """Kills the process, and all processes that it has forked."""
        group, self._group = self._group, None
        if group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        # Not before: while its socket is open, its process id cannot be reused.
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _conversation(
    connection: socket.socket, jobs: Sequence[Job], stop: Callable[[], None]
) -> Iterator[JobAnswer]:
    """Sends jobs and takes their answers; ``stop`` is called unless all were taken."""
    is_whole = False
    try:
        connection.settimeout(jobs[0]["patienceSeconds"] + MARGIN_SECONDS)
        frames.send(connection, marshal.dumps([*jobs]))
        source = frames.Buffered(connection)
        while (answer := frames.receive(source)) is not None:
            if not answer:
                is_whole = True
                return
            loaded: JobAnswer = marshal.loads(answer)  # noqa: S302  # from our own process
            yield loaded
    except OSError as error:
        raise NoWorker(str(error)) from None
    finally:
        # The remaining answers would be taken for those of the next request.
        if not is_whole:
            stop()
    raise NoWorker("the process that tries policies ended")
