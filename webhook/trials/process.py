"""The worker as those who ask it see it: begun when it is needed, ended when it does not answer.

Another that others shall not wait for is a branch of it: forked, and so begun in milliseconds.
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
from typing import TYPE_CHECKING, Final

from webhook.trials import frames
from webhook.trials.job import ATTEMPTS, READS_CEL, READS_REGO, NoWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.trials.job import Job, JobAnswer

START_SECONDS: Final = 60.0
"""For an interpreter that reads the compiler, 0.2 s of a processor, on a busy machine."""

MARGIN_SECONDS: Final = 10.0
"""How much longer than a trial may take the worker is waited for."""


class Worker:
    """A process that tries policies. Asked by one thread at a time, begun for any."""

    def __init__(self, niceness: int, program: str = "webhook.trials.worker") -> None:
        """``niceness`` is the least that it has: it stands behind who does not wait for it.

        ``program`` is the module that is run; it serves jobs as the one for policies does.
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
                    # A group of its own, to be ended with the process that it has begun.
                    start_new_session=True,
                )
            # Commands and the library forget who asks, and do not say that they are done.
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
        """Have it begin a process that serves this end, which is closed if it is gone.

        Raises :class:`NoWorker` where it cannot begin itself.
        """
        self.start()
        if (door := self._door) is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(door, [message], [end.fileno()])

    def ask(self, job: Job) -> JobAnswer:
        """What came of a trial; raises :class:`NoWorker`."""
        (answer,) = self.ask_all([job])
        return answer

    def ask_all(self, jobs: Sequence[Job]) -> Iterator[JobAnswer]:
        """What came of trials, each as soon as it is known; of the first of them at least.

        One process carries them out one after the other. It ends with the first that is ended, and
        when they have taken much: the others are to be asked for again, and first among them what
        has too little memory left by those before it. Whoever asks takes all
        answers. Raises :class:`NoWorker`.
        """
        self.start()
        connection = self._socket
        if connection is None:
            raise NoWorker("the process that tries policies ended")
        yield from _conversation(connection, jobs, lambda: self._stop_if_connected_by(connection))

    def _stop_if_connected_by(self, connection: socket.socket) -> None:
        # It may have been begun anew meanwhile.
        if self._socket is connection:
            self.stop()

    def stop(self) -> None:
        """End it, and what it has begun."""
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
    """End a process and what it has begun, and close the ends of its sockets."""
    for end in ends:
        end.close()
    if process.returncode is None:  # else its number may be another's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Branch:
    """A process that a worker has forked of itself: it is there in milliseconds, for a few jobs."""

    def __init__(self, worker: Worker, *, reads_cel: bool) -> None:
        """``reads_cel`` is whether it will need what tries expressions, too."""
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
            self._worker.stop()  # the system has ended it: it is begun anew
        raise NoWorker("no process can be started")

    def _begun(self) -> bytes | None:
        """The number of the process; empty where there can be none, None where the worker is gone."""
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
        """What came of trials, as a worker has it."""
        if self._socket is None:
            raise NoWorker("the process that tries policies ended")
        yield from _conversation(self._socket, jobs, self.stop)

    def stop(self) -> None:
        """End it, and what it has begun."""
        group, self._group = self._group, None
        if group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        # Not before: as long as it has somebody to serve, nothing else is known by its number.
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _conversation(
    connection: socket.socket, jobs: Sequence[Job], stop: Callable[[], None]
) -> Iterator[JobAnswer]:
    """Send jobs and take their answers; ``stop`` is called unless all were taken."""
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
        # What is left of the conversation would be taken for the next one's answers.
        if not is_whole:
            stop()
    raise NoWorker("the process that tries policies ended")
