"""The worker as those who ask it see it: begun when it is needed, ended when it does not answer."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from webhook.trials import frames
from webhook.trials.job import NoWorkerError

if TYPE_CHECKING:
    from webhook.trials.job import Job

START_SECONDS: Final = 60.0
"""For an interpreter that reads the compiler, 0.2 s of a processor, on a busy machine."""

MARGIN_SECONDS: Final = 10.0
"""How much longer than a trial may take the worker is waited for."""


class Worker:
    """A process that tries policies. Used by one thread at a time."""

    def __init__(self, niceness: int, program: str = "webhook.trials.worker") -> None:
        """``niceness`` is the least that it has: it stands behind who does not wait for it.

        ``program`` is the module that is run; it serves jobs as the one for policies does.
        """
        self._niceness = str(niceness)
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Begin, if it has not; raises :class:`NoWorkerError`."""
        if self._process is not None:
            return
        try:
            ours, its = socket.socketpair()
        except OSError as error:
            raise NoWorkerError(str(error)) from None
        self._socket = ours
        try:
            with its:
                self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                    [sys.executable, "-I", "-m", self._program, self._niceness],
                    stdin=its.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    # A group of its own, to be ended with the process that it has begun.
                    start_new_session=True,
                )
            ours.settimeout(START_SECONDS)
            begun = frames.receive(ours)
        except OSError as error:
            self.stop()
            raise NoWorkerError(str(error)) from None
        except BaseException:
            self.stop()
            raise
        if begun is None:
            code = None if self._process is None else self._process.wait()
            self.stop()
            raise NoWorkerError(f"the process ended as it began, with {code}")

    def ask(self, job: Job) -> tuple[int | str, bytes, tuple[float, int]]:
        """How the process of a trial ended, what it wrote, and its seconds of a processor and bytes.

        Raises :class:`NoWorkerError`.
        """
        self.start()
        assert self._socket is not None
        try:
            self._socket.settimeout(job["patienceSeconds"] + MARGIN_SECONDS)
            frames.send(self._socket, marshal.dumps(job))
            answer = frames.receive(self._socket)
        except OSError as error:
            self.stop()
            raise NoWorkerError(str(error)) from None
        except BaseException:
            # What is left of the conversation would be taken for the next one's answer.
            self.stop()
            raise
        if answer is None:
            self.stop()
            raise NoWorkerError("the process that tries policies ended")
        ended, written, took = marshal.loads(answer)  # noqa: S302  # from our own process
        return ended, written, took

    def stop(self) -> None:
        """End it, and what it has begun."""
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
