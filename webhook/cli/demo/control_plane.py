"""The control plane as a process: a real API server with etcd, which ends with this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final, Self

from webhook.cli.demo.build import NoControlPlane
from webhook.cli.demo.processes import end_process

START_SECONDS_MAX: Final = 150
"""The longest wait for the start, which ends itself after 120 seconds."""


class ControlPlane:
    """Runs while it is entered.

    The end of standard input, which closes with this process, ends it.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.kubeconfig = Path()
        self.server = ""

    async def __aenter__(self) -> Self:
        with (self._folder.parent / "control-plane.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(str(self._program), "-dir", str(self._folder), "-exit-with-stdin"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                line = await self._process.stdout.readline()
        except BaseException:
            await self._end()
            raise
        if not line:
            await self._end()
            raise NoControlPlane(f"the control plane did not start: {_tail(log.name)}")
        facts = json.loads(line)
        self.kubeconfig, self.server = Path(facts["kubeconfig"]), str(facts["server"])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def ended(self) -> int:
        """Waits for its end; returns its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def _end(self) -> None:
        assert self._process is not None
        await end_process(self._process)


def _tail(log: str) -> str:
    return " | ".join(Path(log).read_text(errors="replace").strip().splitlines()[-3:])
