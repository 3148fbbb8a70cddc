"""Processes of the demonstration: starts them, waits until they serve, and ends them in order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

START_SECONDS_MAX: Final = 300
"""The longest wait for a process to serve, in seconds: a busy laptop starts all at once."""

END_SECONDS_MAX: Final = 20
"""From SIGTERM to SIGKILL, in seconds: a replica has answered all requests and delivered its log
long before."""

_SERVES: Final = ("serving", "the console is ready")
"""The messages in the logs of a replica, and of the console, that say it is ready."""

_PORTS: Final = ("admission", "health", "metrics", "address")

_LINE_BYTES_MAX: Final = 1 << 20

_PROGRAM: Final = f"from {__name__} import run_child; run_child()"


class NotStarted(Exception):
    """A process ended, or stayed silent, before it served; the message has its last output."""


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Sends SIGTERM, and SIGKILL after a while; returns after the process's end."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS_MAX):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def run_child() -> None:
    """Runs ``waddle`` with this process's arguments until it ends, or standard input does.

    The demonstration holds the other end of standard input. The kernel closes it even if SIGKILL
    ends the demonstration.
    """
    from webhook.cli.main import main  # noqa: PLC0415  # it imports this module

    threading.Thread(target=_end_with_input, daemon=True).start()
    main()


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


class Child:
    """A process whose standard error is written to a file, and read for its messages.

    It has its own session, so that Control-C at the terminal reaches the demonstration only, which
    ends all in order. It ends with the demonstration however that ends.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self.ending = False
        self._process = process
        self._ports: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(
        cls,
        tasks: asyncio.TaskGroup,
        name: str,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Starts ``waddle`` with these arguments; ``tasks`` has the reader of its log."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROGRAM, *arguments),
            # A killed process leaves temporary files of credentials, which go with the folder.
            env={**os.environ, "TMPDIR": str(folder), **(environment or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
            start_new_session=True,
        )
        child = cls(name, process, folder / f"{name}.log")
        tasks.create_task(child._read())
        return child

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def ports(self) -> dict[str, int]:
        """Returns its ports by name, once it logs them. Raises NotStarted."""
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                return await asyncio.shield(self._ports)
        except TimeoutError:
            raise NotStarted(f"{self.name} does not serve; its log: {self.log}") from None

    async def ended(self) -> int:
        """Waits for its end; returns its exit code."""
        return await self._process.wait()

    async def end(self) -> None:
        """Sends SIGTERM, and SIGKILL after a while; returns after the process's end."""
        self.ending = True
        await end_process(self._process)

    async def _read(self) -> None:
        assert self._process.stderr is not None
        last = b""
        with self.log.open("wb") as kept:
            while line := await _line(self._process.stderr):
                last = line
                kept.write(line)
                kept.flush()
                if not self._ports.done() and (ports := _served(line)):
                    self._ports.set_result(ports)
        if not self._ports.done():
            output = last.decode(errors="replace").strip()
            self._ports.set_exception(NotStarted(f"{self.name} did not start: {output}"))
            self._ports.exception()  # no warning if the result is unused


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Returns the next line; of a line that is too long, the rest."""
    while True:
        try:
            return await stream.readline()
        except ValueError:
            continue


def _served(line: bytes) -> dict[str, int]:
    """Returns the ports in a log line that reports serving; none for other lines."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(event, dict) or event.get("msg") not in _SERVES:
        return {}
    ports = {}
    for name in _PORTS:
        port = str(event.get(name, "")).rstrip("/").rpartition(":")[2]
        if port.isdecimal():
            ports[name] = int(port)
    return ports
