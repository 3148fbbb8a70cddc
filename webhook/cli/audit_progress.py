"""A progress bar on a terminal: kinds done, objects reviewed, violations found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from types import TracebackType

    from webhook.api.gvk import GroupVersionKind
    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart


class Progress:
    """A sink that draws on standard error while it is entered."""

    def __init__(self, console: Console | None = None) -> None:
        """``console`` is another place to draw on."""
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("kinds  {task.fields[objects]} objects  {task.fields[found]} violations"),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("reading policies", total=None, objects=0, found=0)
        self._kind: GroupVersionKind | None = None
        self._objects = 0
        self._found = 0
        self._kinds = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    async def start(self, start: SweepStart) -> None:
        """How many kinds there are."""
        self._bar.update(self._task, total=len(start.kinds))

    async def audited(self, audited: Audited) -> None:
        """One object more."""
        self._objects += 1
        self._found += len(audited.responses.results)
        gvk = audited.identity.gvk
        if gvk != self._kind:
            self._kind = gvk
            self._bar.update(self._task, description=gvk.kind, completed=self._kinds)
            self._kinds += 1
        self._bar.update(self._task, objects=self._objects, found=self._found)

    async def gone(self, identity: Identity) -> None:
        """Nothing: a sweep does not tell of it."""

    async def end(self, end: SweepEnd) -> None:
        """All of them."""
        self._bar.update(self._task, completed=len(end.complete) + len(end.failed))
