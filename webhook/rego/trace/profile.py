"""How long each line took, and how often it was evaluated, as OPA reports it (v1/profiler)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from webhook.rego.location import Location
from webhook.rego.trace.events import TraceEvent, is_literal
from webhook.values import dataclass

SORT_KEYS: Final = ("total_time_ns", "num_eval", "num_redo", "num_gen_expr", "file", "line")
DEFAULT_ORDER: Final = ("total_time_ns", "num_eval", "num_redo", "file", "line")
LINES_DEFAULT: Final = 10


@dataclass(slots=True)
class LineProfile:
    """The measurements of one line."""

    location: Location
    total_time_ns: int = 0
    num_eval: int = 0
    num_redo: int = 0
    num_gen_expr: int = 0

    @property
    def file(self) -> str:
        """As the module was named when it was parsed."""
        return self.location.file

    @property
    def line(self) -> int:
        """The line's number."""
        return self.location.row

    def document(self) -> dict[str, Any]:
        """Returns the line in JSON form."""
        place = {"file": self.location.file, "row": self.location.row, "col": self.location.col}
        counts = {name: getattr(self, name) for name in SORT_KEYS[:4]}
        return {**counts, "location": place}


class Profile:
    """A tracer that measures the time from each literal's step to the next step of a literal."""

    unifications = False
    values = False

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], LineProfile] = {}
        self._literals: dict[tuple[str, int], set[int]] = {}
        self._last: TraceEvent | None = None
        self._begun = 0

    def __call__(self, event: TraceEvent) -> None:
        """Takes a step."""
        if event.step in {"Eval", "Redo"} and is_literal(event.node):
            now = time.perf_counter_ns()
            self._end(now)
            self._last, self._begun = event, time.perf_counter_ns()

    def _end(self, now: int) -> None:
        last = self._last
        if last is None:
            return
        at = last.location.file, last.location.row
        line = self._lines.setdefault(at, LineProfile(last.location))
        line.total_time_ns += now - self._begun
        if last.step == "Eval":
            line.num_eval += 1
        else:
            line.num_redo += 1
        self._literals.setdefault(at, set()).add(last.index)
        line.num_gen_expr = len(self._literals[at])
        self._last = None

    def report(
        self, most: int = LINES_DEFAULT, order: Sequence[str] = DEFAULT_ORDER
    ) -> list[LineProfile]:
        """Returns the lines with the highest values in the given order; 0 for all."""
        self._end(time.perf_counter_ns())
        lines = list(self._lines.values())
        for name in reversed(order):
            lines.sort(key=attrgetter(name), reverse=True)
        return lines[:most] if most > 0 else lines
