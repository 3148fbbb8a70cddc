"""A demonstration that runs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS


class Demonstration:
    """The command as a process, as at a terminal: with a session, and a folder for its files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "webhook", "demo", "--port=0", *arguments],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self.lines.append("")
            self._changed.notify_all()

    def printed(self, pattern: str) -> str:
        """The first group of the first line that has the pattern, waiting for it."""

        def found() -> re.Match[str] | None:
            return next((hit for line in self.lines if (hit := re.search(pattern, line))), None)

        with self._changed:
            self._changed.wait_for(
                lambda: found() or self.lines[-1:] == [""], timeout=PATIENCE_SECONDS
            )
            hit = found()
        assert hit, f"never told {pattern!r}: {self.text}"
        return hit[1]

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def page(self, path: str) -> Any:
        """A page of its console, as JSON."""
        address = self.printed(r"console +(http://\S+)/")
        with urllib.request.urlopen(
            f"{address}{path}?format=json", timeout=PATIENCE_SECONDS
        ) as answer:
            return json.load(answer)

    def interrupt(self) -> int:
        """Control-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join()
        return code

    def left(self) -> list[str]:
        """Processes that speak of its folder, and what is in it."""
        found = [str(path) for path in self.folder.iterdir()]
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                try:
                    words = (process / "cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.folder).encode() in words:
                    found.append(words.decode(errors="replace").replace("\0", " "))
        return found


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Demonstration]:
    demonstration = Demonstration(folder, *arguments)
    try:
        yield demonstration
    finally:
        if demonstration.process.poll() is None:
            demonstration.interrupt()
        assert demonstration.process.stdout is not None
        demonstration.process.stdout.close()
