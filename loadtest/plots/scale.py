"""Scales: from values to places on a plot, and the values worth a tick."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

TICKS = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """Values between two bounds on a stretch of pixels, evenly or by their logarithm."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool

    @classmethod
    def of(
        cls, values: Iterable[float], begin: float, end: float, *, logarithmic: bool = False
    ) -> "Scale":
        """A scale that holds all the values; an even one begins at 0."""
        found = [value for value in values if value > 0 or not logarithmic]
        low, high = (min(found), max(found)) if found else (1.0, 1.0)
        if logarithmic:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            high = high if high > low else low * 10
        else:
            low, high = 0.0, _round_up(high)
        return cls(low, high, begin, end, logarithmic)

    def place(self, value: float) -> float:
        """Returns the position of a value."""
        if self.logarithmic:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Values to be named: powers of ten, or even steps."""
        if self.logarithmic:
            exponents = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            return [10.0**exponent for exponent in exponents]
        return [self.high * number / TICKS for number in range(TICKS + 1)]


def _round_up(value: float) -> float:
    """The next number of one digit that five steps divide well."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power
        for step in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0)
        if value <= step * power
    )


def shown(value: float) -> str:
    """A number in as few characters as say it: 50k, 1M, 0.25."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"
