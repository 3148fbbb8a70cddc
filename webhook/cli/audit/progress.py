"""Shows an audit's progress on one line of a terminal: kinds, objects, violations."""

from __future__ import annotations

import sys
import time
from typing import Self, TextIO

from webhook.api.gvk import GroupVersionKind
from webhook.audit.sink import Audited, AuditSink, SweepEnd, SweepStart
from webhook.cli.progress import REST_SECONDS, bar, draw
from webhook.printable import one_line


class Progress(AuditSink):
    """A sink that draws on standard error while it is entered, and erases its line at the end."""

    def __init__(self, terminal: TextIO | None = None) -> None:
        """``terminal`` replaces standard error."""
        self._terminal = terminal or sys.stderr
        self._doing = "reading policies"
        self._kind: GroupVersionKind | None = None
        self._kinds_of = 0
        self._kinds = 0
        self._objects = 0
        self._violations = 0
        self._drawn_at = 0.0

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        draw(self._terminal, "")

    async def start(self, start: SweepStart) -> None:
        """Takes the number of kinds."""
        self._kinds_of = len(start.kinds)
        self._draw()

    async def audited(self, audited: Audited) -> None:
        """Counts an object."""
        self._objects += 1
        self._violations += len(audited.responses.results)
        gvk = audited.identity.gvk
        if gvk != self._kind:
            self._kinds += self._kind is not None
            self._kind, self._doing = gvk, gvk.kind
            self._draw()
        elif time.monotonic() - self._drawn_at > REST_SECONDS:
            self._draw()

    async def end(self, end: SweepEnd) -> None:
        """All of them."""
        self._kinds = len(end.complete) + len(end.failed)
        self._draw()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        draw(
            self._terminal,
            f"{bar(self._kinds, self._kinds_of)} {self._kinds}/{self._kinds_of} kinds  "
            f"{self._objects} objects  {self._violations} violations  {one_line(self._doing)}",
        )
