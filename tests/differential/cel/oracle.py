"""Kubernetes' CEL as a process (conformance/cel/oracle): JSON lines, answered in their order."""

import json
import threading
from collections.abc import Sequence
from typing import Any

from tests.differential.oracle import OracleProcess
from tests.patience import PATIENCE_SECONDS


class CelOracle(OracleProcess):
    """One process of the program; ask from one thread at a time."""

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
