"""Stage 10: fields of a local that many bodies read, read once before all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.write.statement import Line, Reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.write.expression import Expression

COMMON_FROM: Final = 5
"""The number of reads from which a field is read before the bodies. The field is then read for
every item, for 40 ns each, even if few items reach the bodies that use it. Each further read in the
source costs CPython 20 µs to compile.
"""


class CommonReads:
    """A place before the bodies of a group, at which fields can be read while bodies are written."""

    def __init__(self, lines: list[Line], indent: int) -> None:
        """Keep the place at the end of these lines."""
        self._lines = lines
        self._place = Reads(indent)
        self._times: dict[str, int] = {}
        self._found: dict[str, Expression] = {}
        lines.append(self._place)

    def local(self, reading: Expression, new: Callable[[], Expression]) -> Expression | None:
        """Returns the local with the field's value; None before the read COMMON_FROM."""
        source = reading.source
        local = self._found.get(source)
        if local is None:
            times = self._times[source] = self._times.get(source, 0) + 1
            if times < COMMON_FROM:
                return None
            local = self._found[source] = new()
            self._place.locals_[source] = local.source
        return local

    def close(self) -> None:
        """The bodies have been written: the place is kept only where something is read at it."""
        if not self._found:
            self._lines.remove(self._place)
