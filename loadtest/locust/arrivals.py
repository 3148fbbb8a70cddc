"""The open loop: requests are due at fixed times, whether or not the server keeps up.

Each user has at most one request under way, so a server that stalls makes its users late; their
latencies count from when the requests were due, and so show the stall to all that it kept waiting.
A user that was free and still began late was held up by Locust itself: that is counted, because
then the schedule was not the one that was asked for.
"""

from dataclasses import dataclass

LATE_SECONDS = 0.010
"""A free user that begins this late was not woken in time; gevent's timers are good for 1 ms."""
UNKEPT_RATIO_MAX = 0.01
"""More late starts than this reach into the p99, which then tells of Locust."""


@dataclass(slots=True)
class Schedule:
    """When one user's requests are due, in seconds of a monotonic clock."""

    due: float
    interval_seconds: float

    def advance(self) -> None:
        """The next request: one interval after the last was due, not after it was sent."""
        self.due += self.interval_seconds

    def missed(self, now: float) -> int:
        """Returns the number of requests that are due and have not begun."""
        return max(0, int((now - self.due) / self.interval_seconds) + 1) if now >= self.due else 0


@dataclass(slots=True)
class Punctuality:
    """The numbers of scheduled requests that began, began late by Locust, and never began."""

    scheduled: int = 0
    late: int = 0
    missed: int = 0

    def began(self, due: float, free: float, now: float) -> None:
        """A request due at a time, of a user free since a time, begins now."""
        self.scheduled += 1
        self.late += now - max(due, free) > LATE_SECONDS

    def add(self, scheduled: int, late: int, missed: int) -> None:
        """The counts of a worker."""
        self.scheduled += scheduled
        self.late += late
        self.missed += missed

    def take(self) -> tuple[int, int, int]:
        """The counts since the last time."""
        taken = self.scheduled, self.late, self.missed
        self.scheduled = self.late = self.missed = 0
        return taken

    def complaints(self) -> list[str]:
        """Returns the complaints about a schedule that was not kept."""
        found = []
        if self.late > self.scheduled * UNKEPT_RATIO_MAX:
            found.append(
                f"Locust did not keep the schedule: {self.late} of {self.scheduled} requests began "
                f"more than {LATE_SECONDS * 1000:.0f} ms late though their user was free. Latencies "
                "are Locust's own: add workers, or use the generator in loadtest/loadgen (-rate)."
            )
        if self.missed > (self.scheduled + self.missed) * UNKEPT_RATIO_MAX:
            found.append(
                f"{self.missed} requests were due at the end and never began, beside {self.scheduled} "
                "that did: their users still waited for answers. Either more was offered than is "
                "served, or users are too few for the rate (loadtest/loadgen tells which)."
            )
        return found


def schedule(number: int, users: int, rate: float, now: float) -> Schedule:
    """The schedule of a user, so that so many users send at a rate together, evenly spaced."""
    interval = users / rate
    return Schedule(now + (number % users) / users * interval, interval)
