"""A receiver of changes that remembers them, for the reflector's tests."""

import asyncio
from contextlib import asynccontextmanager

from tests.patience import PATIENCE_SECONDS


class Recorder:
    """The changes that a reflector reported: ``("set" | "delete", name)``, ``("synced", "")``."""

    def __init__(self):
        self.changes = []
        self.objects = {}
        self._changed = asyncio.Event()

    def change(self, changes):
        """Take changes in."""
        for change in changes:
            self.changes.append((change.kind, change.key.name))
            if change.kind == "set":
                self.objects[change.key.name] = change.object
            else:
                self.objects.pop(change.key.name)
        self._changed.set()

    def synced(self):
        """Take in that a list is whole."""
        self.changes.append(("synced", ""))
        self._changed.set()

    async def until(self, predicate):
        """Wait until what was told meets the predicate."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not predicate(self):
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def running(reflector):
    """The reflector runs within this block."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reflector.run())
        yield
        task.cancel()
