"""A progress bar on one line of a terminal; nothing where the output is no terminal."""

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
"""The width of the bar, in characters."""

REST_SECONDS: Final = 0.1
"""The least time between two drawings, in seconds."""

QUIET_SECONDS: Final = 1.0
"""Shorter runs draw nothing, in seconds."""

_ERASED: Final = "\r\x1b[K"


def watched(
    items: Sequence[_Item],
    title: str,
    terminal: TextIO | None = None,
    quiet_seconds: float = QUIET_SECONDS,
) -> Iterable[_Item]:
    """Returns the items; draws their progress on standard error where that is a terminal."""
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


def draw(terminal: TextIO, text: str) -> None:
    """Replaces the terminal's last line by a text, cut to the terminal's width."""
    columns = shutil.get_terminal_size().columns
    try:
        terminal.write(_ERASED + text[: columns - 1])
        terminal.flush()
    except UnicodeEncodeError:  # a terminal of another alphabet
        terminal.write(_ERASED)


def bar(done: int, of: int) -> str:
    """Returns a bar that is filled as far as the work is done."""
    full = BAR * done // of if of else 0
    return f"{'█' * full}{'░' * (BAR - full)}"
