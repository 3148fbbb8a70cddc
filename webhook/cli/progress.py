"""How far a long run is, on one line of a terminal, and nothing anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    _Item = TypeVar("_Item")

BAR: Final = 20
"""Characters."""

REST_SECONDS: Final = 0.1
"""Between two drawings: soon for an eye, nothing for a terminal far away."""

QUIET_SECONDS: Final = 1.0
"""What ends before needs no line."""

_ERASED: Final = "\r\x1b[K"


def draw(terminal: TextIO, text: str) -> None:
    """Write a text in place of the line before, as much of it as there is room for."""
    columns = shutil.get_terminal_size().columns
    try:
        terminal.write(_ERASED + text[: columns - 1])
        terminal.flush()
    except UnicodeEncodeError:  # a terminal of another alphabet
        terminal.write(_ERASED)


def bar(done: int, of: int) -> str:
    """As much of a bar as is done."""
    full = BAR * done // of if of else 0
    return f"{'█' * full}{'░' * (BAR - full)}"


def watched(
    items: Sequence[_Item],
    title: str,
    terminal: TextIO | None = None,
    quiet_seconds: float = QUIET_SECONDS,
) -> Iterable[_Item]:
    """The items, with how many are done on standard error where that is a terminal."""
    terminal = terminal or sys.stderr
    return _drawn(items, title, terminal, quiet_seconds) if terminal.isatty() else items


def _drawn(
    items: Sequence[_Item], title: str, terminal: TextIO, quiet_seconds: float
) -> Iterator[_Item]:
    drawn_at, shown = time.monotonic() + quiet_seconds - REST_SECONDS, False
    try:
        for number, item in enumerate(items):
            now = time.monotonic()
            if now - drawn_at >= REST_SECONDS:
                drawn_at, shown = now, True
                draw(terminal, f"{bar(number, len(items))} {number}/{len(items)} {title}")
            yield item
    finally:
        if shown:
            draw(terminal, "")
