"""One auditing process under measurement: its sweeps by its own log, its cost by the kernel."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS_MAX = 60


@dataclass(slots=True)
class Mark:
    """A moment of a process."""

    at: float
    cpu_seconds: float


@dataclass(slots=True)
class Auditor:
    """A process that logs `audit_started` and `audit_finished`, as Gatekeeper and Waddle do."""

    name: str
    process: subprocess.Popen[bytes]
    started: list[Mark] = field(default_factory=list)
    finished: list[Mark] = field(default_factory=list)
    violations: int = 0
    tail: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def mark(self) -> Mark:
        """Now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return Mark(time.monotonic(), (int(fields[11]) + int(fields[12])) / TICKS)

    def peak_mib(self) -> float:
        """The most memory that was resident so far."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"{self.name} is gone")

    def read(self) -> None:
        """Follow the log to its end."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._take(line)
        with self._changed:
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        if b"violation_audited" in line:
            self.violations += 1
            return
        self.tail = [*self.tail[-30:], line.decode("utf-8", "replace").rstrip()]
        for word, marks in ((b"audit_started", self.started), (b"audit_finished", self.finished)):
            if word in line and json.loads(line).get("event_type") == word.decode():
                with self._changed:
                    marks.append(self.mark())
                    self._changed.notify_all()

    def wait_started(self, number: int, seconds: float) -> None:
        """Until so many sweeps have begun: every one before the last of them has ended."""
        self._wait(self.started, number, seconds)

    def wait_finished(self, number: int, seconds: float) -> None:
        """Until so many sweeps have ended."""
        self._wait(self.finished, number, seconds)

    def _wait(self, marks: list[Mark], number: int, seconds: float) -> None:
        with self._changed:
            done = self._changed.wait_for(
                lambda: len(marks) >= number or self.process.poll() is not None, seconds
            )
        if not done or self.process.poll() is not None:
            raise RuntimeError(f"{self.name} began {len(self.started)} sweeps:\n" + self.log())

    def log(self) -> str:
        """The end of its log."""
        return "\n".join(self.tail)

    def sweeps(self) -> list[dict[str, float]]:
        """Each sweep that another follows: until its end by its log, and its cost until the next.

        The statuses are written at a sweep's end or after it, and belong to it.
        """
        return [
            {
                "seconds": ended.at - begun.at,
                "cpu_seconds": following.cpu_seconds - begun.cpu_seconds,
            }
            for begun, ended, following in zip(
                self.started, self.finished, self.started[1:], strict=False
            )
        ]


@contextlib.contextmanager
def auditing(
    name: str, command: Sequence[str | Path], environment: Mapping[str, str], core: int
) -> Iterator[Auditor]:
    """Run an auditor on one core, and end it."""
    process = subprocess.Popen(
        ["taskset", "--cpu-list", str(core), *command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    auditor = Auditor(name, process)
    reader = threading.Thread(target=auditor.read, daemon=True)
    reader.start()
    try:
        yield auditor
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()


def results(items: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """Returns the total and the shown violations of each constraint's status, by kind and name."""
    return {
        f"{item['kind']}/{item['metadata']['name']}": (
            item["status"]["totalViolations"],
            item["status"].get("violations", []),
        )
        for item in items
    }
