"""The verdict of a soak."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

SETTLED_SECONDS = 300.0
"""From here on memory is compared: until then caches fill."""

WINDOW_SECONDS = 60.0
GROWTH_MAX = 0.05


@dataclass(slots=True)
class Tally:
    """The counts of clients."""

    answered: int = 0
    killed: int = 0
    """Requests under way on connections of a replica that was killed."""
    refused: int = 0
    """Connections that nobody accepted any more, before a request was sent."""
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add another client's."""
        self.answered += other.answered
        self.killed += other.killed
        self.refused += other.refused
        self.wrong += other.wrong
        self.failed += other.failed


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident MiB of one process over time, by seconds since the start."""

    samples: Sequence[tuple[float, float]]

    def growth(self) -> float | None:
        """Returns the growth from the minute after five to the last one; None if it was shorter."""
        if not self.samples or self.samples[-1][0] < SETTLED_SECONDS + 2 * WINDOW_SECONDS:
            return None
        end = self.samples[-1][0]
        first = [mib for at, mib in self.samples if 0 <= at - SETTLED_SECONDS < WINDOW_SECONDS]
        last = [mib for at, mib in self.samples if at > end - WINDOW_SECONDS]
        return statistics.median(last) / statistics.median(first) - 1


def broken(tally: Tally, memory: Memory) -> list[str]:
    """Returns the broken goals; empty if all hold."""
    found = []
    if not tally.answered:
        found.append("nothing was answered")
    if tally.wrong:
        found.append(f"{len(tally.wrong)} wrong verdicts: {tally.wrong[0]}")
    if tally.failed:
        found.append(f"{len(tally.failed)} failed requests: {tally.failed[0]}")
    growth = memory.growth()
    if growth is not None and abs(growth) > GROWTH_MAX:
        found.append(f"memory is not flat: {growth:+.1%} after five minutes")
    return found
