"""Stage 5b: fields of a local that many bodies read, read once before all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

COMMON_FROM: Final = 5
"""The reading from which on a field is read before the bodies. It is read for every item then, where
only some items get as far as its readers: for 40 ns each. What code of each reading CPython need not
compile is 20 µs."""


class CommonReads:
    """A place before the bodies of a group, at which fields can be read while bodies are written."""

    def __init__(self, lines: list[tuple[int, str]], indent: int) -> None:
        """Keep the place at the end of these lines."""
        self._lines = lines
        self._at = len(lines)
        self._times: dict[str, int] = {}
        self._names: dict[str, str] = {}
        lines.append((indent, ""))

    def local(self, reading: str, new: Callable[[], str]) -> str | None:
        """The local with what is read; None while too few bodies have read it."""
        name = self._names.get(reading)
        if name is None:
            times = self._times[reading] = self._times.get(reading, 0) + 1
            if times < COMMON_FROM:
                return None
            name = self._names[reading] = new()
            texts = (f"{local} = {what}" for what, local in self._names.items())
            indent, _ = self._lines[self._at]
            self._lines[self._at] = indent, "; ".join(texts)
        return name

    def close(self) -> None:
        """The bodies have been written: the place is kept only where something is read at it."""
        if not self._names:
            del self._lines[self._at]
