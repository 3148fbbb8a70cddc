"""Schedules the garbage collector: hardly any collections during the start, then as usual."""

from __future__ import annotations

import gc
from typing import Final

STARTING: Final = (200_000, 10, 10)
"""Thresholds during the start. Imports create many lasting objects: a collection after each 700
took a seventh of the CPU of a start."""

USUAL: Final = (700, 10, 10)
"""Python's own."""


def starting() -> None:
    """Sets the thresholds of a starting process."""
    gc.set_threshold(*STARTING)


def running(thresholds: tuple[int, int, int] = USUAL) -> None:
    """Restores the thresholds of a started process; exempts existing objects from collections."""
    gc.freeze()
    gc.set_threshold(*thresholds)
