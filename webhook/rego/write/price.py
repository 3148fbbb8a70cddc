"""Stage 5a: what a turn of a loop costs, told while the loop is being written."""

from __future__ import annotations


class Price:
    """The line that pays for a loop, before the calls in the loop are known."""

    def __init__(self, lines: list[tuple[int, str]], text: str) -> None:
        """The last of the lines, which begins with this text."""
        self._lines = lines
        self._at = len(lines) - 1
        self._text = text
        self._steps = 1

    def add(self, steps: int) -> None:
        """Let each turn cost more."""
        self._steps += steps
        indent, _ = self._lines[self._at]
        self._lines[self._at] = indent, f"{self._text} * {self._steps})"
