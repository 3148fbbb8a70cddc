"""A running program of tests/oracles that answers questions: one JSON line each way."""

import json
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS


class OracleProcess:
    """A process of a program that answers lines with lines, ended with the context."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE_SECONDS)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Oracle(OracleProcess):
    """A process of the program; ask from one thread at a time."""

    def ask(self, **question: Any) -> dict[str, Any]:
        """The answer; numbers are kept as their text by :func:`exact`."""
        return exact(self.line(question))

    def line(self, question: dict[str, Any]) -> bytes:
        """The answer as it came."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
            watchdog.join()  # the caller may fork next, and would copy a thread's locks
        assert line, f"the oracle ended ({process.poll()}) on {question}"
        return line


class NumberText(str):
    """A number as it was written."""

    __slots__ = ()


def exact(line: bytes) -> dict[str, Any]:
    """Decode JSON with every number as its text."""
    found: dict[str, Any] = json.loads(line, parse_int=NumberText, parse_float=NumberText)
    return found
