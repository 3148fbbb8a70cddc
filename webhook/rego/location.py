"""Where in a source something stands."""

from __future__ import annotations

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a source file: row and column count from 1, offset in characters from 0."""

    file: str
    row: int
    col: int
    offset: int = 0
    text: str = ""

    def position(self) -> tuple[str, int, int]:
        """Returns the file, row and column."""
        return self.file, self.row, self.col

    def __str__(self) -> str:
        return f"{self.file}:{self.row}" if self.file else f"{self.row}:{self.col}"


NOWHERE = Location("", 0, 0)
