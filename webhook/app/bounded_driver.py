"""Large templates are compiled by a process with bounds before this one touches them."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from webhook.app.trial import BEGUN
from webhook.constraint.errors import CompileError, InvalidTemplate, PassingFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.driver import Driver, Evaluator
    from webhook.constraint.template import Code, Template
    from webhook.log import Logger

LARGE_CHARACTERS: Final = 10_000
"""Source, as JSON, from which on a template is tried first. The largest of the public library has
8,600: templates as people write them are in force without a trial, which takes a fifth of a second.
What was found to take longest of sources below that takes half a second (a reference with a thousand
variables)."""

CPU_SECONDS: Final = 5
"""For the whole of a template. The public library's largest takes 0.02, 438 KB of literals 0.4; 1.3 MB
of rules, which an API server keeps, would take 9."""

MEMORY_BYTES: Final = 256 << 20
"""What compiling may take: 438 KB of literals take 58 MiB, 1.3 MB of rules would take 434."""

PATIENCE_SECONDS: Final = 60.0
"""How long a trial may take on a busy machine, where five seconds of a processor are long in coming."""

MAX_OUTCOMES: Final = 64
"""Outcomes remembered: that of an admission is asked for again by enforcement, and of a faulty
template whenever it is looked at."""


class Trials:
    """Compiles sources elsewhere, one at a time, and remembers what came of it. For any thread."""

    def __init__(
        self,
        disabled_builtins: Sequence[str],
        log: Logger,
        *,
        cpu_seconds: int = CPU_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._disabled = sorted(disabled_builtins)
        self._log = log
        self._lock = threading.Lock()
        self._outcomes: dict[bytes, dict[str, str]] = {}

    def __call__(self, source: object) -> None:
        """Raises InvalidTemplate for a source that does not compile, or not within the bounds.

        A PassingFault where the machine kept it from being tried: that is not remembered.
        """
        try:
            text = json.dumps(source)
        except (TypeError, ValueError, RecursionError):
            return  # no source at all, as the driver will say
        if len(text) < LARGE_CHARACTERS:
            return
        at = hashlib.sha256(text.encode()).digest()
        with self._lock:
            outcome = self._outcomes.get(at)
            if outcome is None:
                outcome = self._run(source)
                if outcome is None:
                    return
                if outcome.get("stage") == "environment":
                    raise PassingFault(outcome["error"])
                while len(self._outcomes) >= MAX_OUTCOMES:
                    del self._outcomes[next(iter(self._outcomes))]
                self._outcomes[at] = outcome
        if "stage" in outcome:
            raise CompileError(
                outcome["error"], "parse" if outcome["stage"] == "parse" else "compile"
            )
        if outcome:
            raise InvalidTemplate(outcome["error"], outcome["code"])

    def _run(self, source: object) -> dict[str, str] | None:
        """The outcome; None where no process could be had, which says nothing of the policy."""
        asked = {
            "cpuSeconds": self._cpu_seconds,
            "memoryBytes": self._memory_bytes,
            "disabledBuiltins": self._disabled,
            "source": source,
        }
        command = [sys.executable, "-I", "-m", "webhook.app.trial"]
        try:
            with subprocess.Popen(  # noqa: S603  # our own interpreter and program
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            ) as process:
                try:
                    written, _ = process.communicate(json.dumps(asked).encode(), PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    return _environment(f"it had not been tried after {PATIENCE_SECONDS:.0f} s")
        except OSError as error:
            self._log.warning("a template is compiled without a trial", error=str(error))
            return None
        begun, _, outcome = written.decode().partition("\n")
        if begun != BEGUN:
            self._log.warning("a template is compiled without a trial", code=process.returncode)
            return None
        if process.returncode == 0:
            found: dict[str, str] = json.loads(outcome)
            return found
        if process.returncode == -signal.SIGKILL:
            # At the bound of processor time the system sends SIGXCPU first.
            return _environment("the process that tried it was killed, as for want of memory")
        return {"error": self._ended(process.returncode), "stage": "compile"}

    def _ended(self, code: int) -> str:
        """Why a trial was ended."""
        if code == -signal.SIGXCPU:
            bound = f"{self._cpu_seconds} s of processor time"
        else:
            bound = f"{self._memory_bytes >> 20} MiB of memory"
        return f"policy is too large: it takes more than {bound} to compile"


def _environment(why: str) -> dict[str, str]:
    """What says nothing of the policy, and may be otherwise the next time."""
    return {"error": f"policy could not be compiled here: {why}", "stage": "environment"}


class BoundedDriver:
    """A driver that compiles what has been tried, where it is large."""

    def __init__(self, driver: Driver, trials: Trials) -> None:
        self._driver = driver
        self._trials = trials

    @property
    def name(self) -> str:
        """That of the driver."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
        self._trials(code.source)
        return self._driver.compile(template, code)
