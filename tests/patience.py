"""The patience of a test with expected events."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

PATIENCE_SECONDS = float(os.environ.get("WADDLE_TEST_PATIENCE", "240"))
"""A wait ends as soon as what it waits for is there, so this costs time only where a test fails;
on a machine with ten times the work that it has cores for, what takes 20 seconds alone may come
late. Less than the end that pytest puts to each test (`timeout` in pyproject.toml)."""

PAUSE_SHARE, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 0.02, 0.1
"""The pause between two questions as a share of what was waited so far, and its bounds."""


class Speaking(Protocol):
    """A program whose log explains a failure."""

    def last_lines(self) -> str:
        """Returns its name, whether it runs, and the end of its log."""
        ...


running: WeakSet[Speaking] = WeakSet()
"""Programs that tests have started and still refer to: a failed wait shows the ends of their logs."""


def last_lines() -> str:
    """Returns the ends of all their logs."""
    return "\n".join(sorted(one.last_lines() for one in running))


def until(
    condition: Callable[..., object],
    description: str | Callable[[], str],
    seconds: float = PATIENCE_SECONDS,
) -> None:
    """Ask again until it is so; the API server has no event for most of what is asked here.

    What takes long is asked for less often: each question takes time of what is waited for.
    ``description`` is called only when it never came, to tell how things are then. The error ends
    with the last lines of each program in :data:`running`.
    """
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited >= seconds:
            text = description if isinstance(description, str) else description()
            raise AssertionError(f"never came: {text}\n{last_lines()}".rstrip())
        time.sleep(min(max(waited * PAUSE_SHARE, PAUSE_SECONDS_MIN), PAUSE_SECONDS_MAX))


async def turns_until(condition: Callable[[], object]) -> None:
    """Give the loop's other tasks their turns until it is so, where they set no event."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() >= end:
            raise AssertionError("it never became so")
        await asyncio.sleep(0)
