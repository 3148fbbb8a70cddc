"""Compiling beside admission, on threads and in a process, so that no review waits for it."""

from __future__ import annotations

import marshal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from webhook.app.priority import stand_behind
from webhook.rego.write.generate import compile_parts
from webhook.server.submission_trial import tried_submission

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from types import CodeType

    from webhook.constraint.client import Client
    from webhook.log import Logger
    from webhook.server.submission import TriedSubmission
    from webhook.trials.trials import Trials

LARGE_CHARACTERS: Final = 1500
"""The length of a function's source from which it is compiled in another process. CPython's
compiler took 0.37 µs a character over the 34 templates of the public library, and 14,417
characters, 5.2 ms, at most. No other thread runs meanwhile, so a review would wait for all of it.
This is half a millisecond."""

DEADLINE_SECONDS: Final = 20.0
"""A thousand times the start of an interpreter with the largest template (17 ms)."""

_CHILD: Final = """
import marshal, sys
parts = marshal.load(sys.stdin.buffer)
marshal.dump(
    tuple(compile(part, "<rego>", "exec", dont_inherit=True, optimize=2) for part in parts),
    sys.stdout.buffer,
)
"""
"""The program of the other interpreter: source text in, code out, and nothing where CPython
refuses."""


class CodeProcess:
    """Compiles generated source; large functions in another process, so that no review waits.

    The process is started for one template and ends with it. So it keeps no memory, and cannot hang
    longer than its deadline.
    """

    def __init__(self, is_busy: Callable[[], bool], log: Logger) -> None:
        """``is_busy`` is whether reviews would have to wait."""
        self._is_busy = is_busy
        self._log = log

    def __call__(self, parts: Sequence[str]) -> tuple[CodeType, ...]:
        """Returns the code of each part; raises SyntaxError, RecursionError and MemoryError."""
        large = [part for part in parts if len(part) >= LARGE_CHARACTERS]
        if not large or not self._is_busy():
            return compile_parts(parts)
        try:
            compiled = iter(_compile_elsewhere(large))
        except (OSError, subprocess.SubprocessError, ValueError, EOFError, TypeError) as error:
            # A source that was refused there is refused here with CPython's message. A machine that
            # can start no process compiles here, if slower for reviews.
            self._log.debug(
                "this process compiles its code itself: no other process could start",
                error=str(error),
            )
            return compile_parts(parts)
        return tuple(
            next(compiled) if len(part) >= LARGE_CHARACTERS else compile_parts([part])[0]
            for part in parts
        )


def _compile_elsewhere(parts: Sequence[str]) -> tuple[CodeType, ...]:
    """The code of parts, compiled by an interpreter of this very version, alone and unshared."""
    done = subprocess.run(  # noqa: S603  # our own interpreter and program; the policy comes by the pipe
        [sys.executable, "-I", "-S", "-c", _CHILD],
        input=marshal.dumps(list(parts)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    codes: tuple[CodeType, ...] = marshal.loads(done.stdout)  # noqa: S302  # from our own process
    return codes


def _no_template(name: str) -> None:
    """Without an API server policies come from files."""
    del name


class CompileThread:
    """Compiles on one thread: policies are admitted seldom, and their number is limited."""

    def __init__(
        self,
        make_in_force: Callable[[], Client],
        trials: Trials,
        evaluation_seconds: float,
        template_now: Callable[[str], Mapping[str, Any] | None] = _no_template,
    ) -> None:
        """``make_in_force`` gives a client with the policies in force, for one call only.

        ``evaluation_seconds`` bounds one evaluation of one constraint. ``template_now`` reads the
        current template, and may block this thread for a moment.
        """
        self._make_in_force = make_in_force
        self._template_now = template_now
        self._trials = trials
        self._seconds = evaluation_seconds
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="compile", initializer=stand_behind
        )

    def compile(self, document: Mapping[str, Any]) -> Future[TriedSubmission]:
        """Tries a template or constraint with the policies in force, and returns its fault."""
        return self._executor.submit(
            tried_submission,
            self._make_in_force,
            document,
            self._seconds,
            self._trials,
            self._template_now,
        )

    def stop(self) -> None:
        """Takes no more work; does not wait for the current work."""
        self._executor.shutdown(wait=False, cancel_futures=True)
