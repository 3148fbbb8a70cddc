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


@dataclass(slots=True)
class Punctuality:
    """How many scheduled requests Locust itself began late."""

    scheduled: int = 0
    late: int = 0

    def began(self, due: float, free: float, now: float) -> None:
        """A request due at a time, of a user free since a time, begins now."""
        self.scheduled += 1
        self.late += now - max(due, free) > LATE_SECONDS

    def add(self, scheduled: int, late: int) -> None:
        """The counts of a worker."""
        self.scheduled += scheduled
        self.late += late

    def complaint(self) -> str | None:
        """What to say of a schedule that was not kept."""
        if self.late <= self.scheduled * UNKEPT_RATIO_MAX:
            return None
        return (
            f"Locust did not keep the schedule: {self.late} of {self.scheduled} requests began "
            f"more than {LATE_SECONDS * 1000:.0f} ms late though their user was free. The latencies "
            "are Locust's own: add workers, or use the generator in loadtest/loadgen (-rate)."
        )


def schedule(number: int, users: int, rate: float, now: float) -> Schedule:
    """The schedule of a user, so that so many users send at a rate together, evenly spaced."""
    interval = users / rate
    return Schedule(now + (number % users) / users * interval, interval)
