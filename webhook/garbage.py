"""When the interpreter looks for garbage: hardly while a process starts, then as usual."""

from __future__ import annotations

import gc
from typing import Final

STARTING: Final = (200_000, 10, 10)
"""Importing what a command needs makes so many objects, all of which stay: looking through them
after each 700 took a seventh of the CPU of a start."""

USUAL: Final = (700, 10, 10)
"""Python's own."""


def starting() -> None:
    """A process starts, to do one thing or to run on."""
    gc.set_threshold(*STARTING)


def running(thresholds: tuple[int, int, int] = USUAL) -> None:
    """It has started, and runs on: what it is made of stays, and is looked through no more."""
    gc.freeze()
    gc.set_threshold(*thresholds)
