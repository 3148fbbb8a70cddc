"""Simulates N replicas without a leader: availability, and the time until all enforce a change.

Each replica follows the API server by itself, so nothing but chance ties one to
another. If a replica is unavailable with probability P, then all N are with P^N.
If it enforces a change within t with probability P(t), then all N do with P(t)^N.
Both hold for independent replicas; a fault that they share (the API server, a
node, a bad release) is not in these numbers, and replicas that share a machine
are late together, which makes P(t)^N the careful side.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, Protocol

from webhook.values import dataclass

_P95: Final = NormalDist().inv_cdf(0.95)

YEAR_SECONDS: Final = 365.25 * 86_400

QUANTILES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)


class Distribution(Protocol):
    """The time of one replica until it enforces a change, in milliseconds."""

    def within(self, milliseconds: float) -> float:
        """Returns P(t): the probability of at most this time."""

    def quantile(self, probability: float) -> float:
        """Returns the time that is not exceeded with this probability."""


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal distribution: with a median, a tail, and no negative values."""

    median: float
    p95: float

    def __post_init__(self) -> None:
        """Raises ``ValueError`` if no such distribution exists."""
        if not 0 < self.median <= self.p95 < math.inf:
            raise ValueError(
                "expected a median above 0, and a 95th percentile that is not below it"
            )

    @property
    def _sigma(self) -> float:
        return math.log(self.p95 / self.median) / _P95

    def within(self, milliseconds: float) -> float:
        """Returns P(t)."""
        if milliseconds <= 0:
            return 0.0
        if self._sigma == 0:
            return float(milliseconds >= self.median)
        return NormalDist().cdf(math.log(milliseconds / self.median) / self._sigma)

    def quantile(self, probability: float) -> float:
        """Returns the inverse of :meth:`within`."""
        if self._sigma == 0:
            return self.median
        return self.median * math.exp(self._sigma * NormalDist().inv_cdf(probability))


class Measured:
    """The measured times, each with equal probability."""

    def __init__(self, times: Sequence[float]) -> None:
        """``times`` are in milliseconds; raises ``ValueError`` if empty."""
        if not times:
            raise ValueError("there are no measured times")
        self._times = sorted(times)

    def within(self, milliseconds: float) -> float:
        """Returns the share of times that were not longer."""
        return bisect_right(self._times, milliseconds) / len(self._times)

    def quantile(self, probability: float) -> float:
        """Returns the least time within which at least this share ended."""
        return self._times[max(0, math.ceil(probability * len(self._times)) - 1)]

    @property
    def times(self) -> Sequence[float]:
        """Returns all times, sorted."""
        return self._times


def all_within(distribution: Distribution, replicas: int, milliseconds: float) -> float:
    """Returns P(t)^N: the probability that all replicas enforce the change by then."""
    return distribution.within(milliseconds) ** replicas


def all_quantile(distribution: Distribution, replicas: int, probability: float) -> float:
    """Returns the time of all replicas for a probability: one replica's for its N-th root."""
    return distribution.quantile(probability ** (1 / replicas))


@dataclass(frozen=True, slots=True)
class Availability:
    """The availability of ``replicas`` replicas: at least one of them answers."""

    replicas: int
    unavailable: float
    """P^N."""

    @property
    def seconds_a_year(self) -> float:
        """Returns the average time a year without any available replica, in seconds."""
        return self.unavailable * YEAR_SECONDS


def availability(p_fail: float, replicas: int) -> list[Availability]:
    """Returns the availability for each number of replicas up to this one."""
    return [Availability(count, p_fail**count) for count in range(1, replicas + 1)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The formula and the measurement: the time of the last of N replicas for each change."""

    single: Measured
    """Times of single replicas, over all replicas."""
    all: Measured
    """Times of the last replica."""
    replicas: int

    @property
    def error(self) -> float:
        """The largest distance between P(t)^N and the measured share, over all t (0 to 1)."""
        steps = sorted({*self.single.times, *self.all.times})
        return max(
            abs(all_within(self.single, self.replicas, t) - self.all.within(t)) for t in steps
        )

    @property
    def late_error(self) -> float:
        """Returns the relative error of the formula's 95th percentile; positive if it is later."""
        measured = self.all.quantile(0.95)
        return all_quantile(self.single, self.replicas, 0.95) / measured - 1


def compare(rounds: Sequence[Sequence[float]]) -> Comparison:
    """Compares; each round has one time in milliseconds for each replica.

    Raises ``ValueError`` without rounds, or for rounds of different numbers of replicas.
    """
    counts = {len(times) for times in rounds}
    if len(counts) != 1 or counts == {0}:
        raise ValueError("expected rounds with one time for each replica, of the same replicas")
    return Comparison(
        Measured([time for times in rounds for time in times]),
        Measured([max(times) for times in rounds]),
        counts.pop(),
    )
