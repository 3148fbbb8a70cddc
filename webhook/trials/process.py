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
    from collections.abc import Iterator, Sequence

    from webhook.trials.job import Answer, Job

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

    def ask(self, job: Job) -> Answer:
        """What came of a trial; raises :class:`NoWorkerError`."""
        (answer,) = self.ask_all([job])
        return answer

    def ask_all(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        """What came of trials, each as soon as it is known; of the first of them at least.

        One process carries them out one after the other. It ends with the first that is ended, and
        when they have taken much: the others are to be asked for again, and first among them what
        has too little memory left by those before it. Whoever asks takes all
        answers. Raises :class:`NoWorkerError`.
        """
        self.start()
        asked = self._socket
        assert asked is not None
        is_whole = False
        try:
            asked.settimeout(jobs[0]["patienceSeconds"] + MARGIN_SECONDS)
            frames.send(asked, marshal.dumps([*jobs]))
            while (answer := frames.receive(asked)) is not None:
                if not answer:
                    is_whole = True
                    return
                loaded: Answer = marshal.loads(answer)  # noqa: S302  # from our own process
                yield loaded
        except OSError as error:
            raise NoWorkerError(str(error)) from None
        finally:
            # What is left of the conversation would be taken for the next one's answers.
            if not is_whole:
                self.stop()
        raise NoWorkerError("the process that tries policies ended")

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
