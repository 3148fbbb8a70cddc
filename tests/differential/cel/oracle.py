"""Kubernetes' CEL as a process (conformance/cel/oracle): JSON lines, answered in their order."""

import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS


class CelOracle:
    """One process of the program; ask from one thread at a time."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers, in the order of the questions."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.dumps(question).encode() + b"\n" for question in questions]
        writer = threading.Thread(target=self._write, args=(lines,), daemon=True)
        watchdog = threading.Timer(PATIENCE_SECONDS * 4, process.kill)
        watchdog.start()
        writer.start()
        try:
            answers = [process.stdout.readline() for _ in questions]
        finally:
            watchdog.cancel()
        writer.join()
        assert all(answers), f"the oracle ended ({process.poll()})"
        return [json.loads(answer) for answer in answers]

    def _write(self, lines: list[bytes]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.writelines(lines)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended, which the reader says

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
