"""Thresholds of a run, judged from counts that Locust's master adds up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadtest.locust.answers import WRONG


@dataclass(frozen=True, slots=True)
class Totals:
    """Requests of a run, or of a part of it."""

    requests: int
    failures: int
    milliseconds: Mapping[int, int]
    """The numbers of requests by duration, in milliseconds."""

    def since(self, earlier: "Totals") -> "Totals":
        """Returns the counts since an earlier reading."""
        return Totals(
            self.requests - earlier.requests,
            self.failures - earlier.failures,
            {
                time: count - earlier.milliseconds.get(time, 0)
                for time, count in self.milliseconds.items()
            },
        )


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The worst that is accepted."""

    failure_ratio_max: float = 0.0
    p99_milliseconds_max: float = 0.0
    """0 for no limit."""

    def broken(self, totals: Totals) -> list[str]:
        """The thresholds that do not hold, in words."""
        if totals.requests == 0:
            return ["no request was answered"]
        found = []
        ratio = totals.failures / totals.requests
        if ratio > self.failure_ratio_max:
            found.append(
                f"{totals.failures} of {totals.requests} requests failed: "
                f"{ratio:.3%}, at most {self.failure_ratio_max:.3%}"
            )
        p99 = percentile(totals.milliseconds, 0.99)
        if 0 < self.p99_milliseconds_max < p99:
            found.append(f"p99 {p99} ms, at most {self.p99_milliseconds_max:g} ms")
        return found


def wrong_answers(errors: Iterable[tuple[str, int]]) -> list[str]:
    """The failures that are wrong answers, which no ratio excuses, with their number."""
    return [f"{count} x {text}" for text, count in errors if text.startswith(WRONG)]


def percentile(counts: Mapping[int, int], share: float) -> int:
    """The least time that at least this share of the requests took at most; 0 for none."""
    total = sum(counts.values())
    seen = 0
    for time in sorted(counts):
        seen += counts[time]
        if seen >= share * total and seen:
            return time
    return 0
