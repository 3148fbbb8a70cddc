"""How many replicas a load needs: a small model of measured costs, one core for each replica.

A request takes the processor for a time that grows with the constraints that
match; between measured numbers of constraints it is interpolated on logarithms.
A replica decides one request at a time, so requests wait: the 99th percentile is
``s * (alone + waiting * u / (1 - u))`` for a request's time ``s`` and the used
part ``u`` of a core, as in a queue with one server. Both factors are fitted to a
measured curve (``loadtest/curves/fit.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.printable import quantity
from webhook.values import dataclass

UTILISATION_MAX: Final = 0.7
"""The largest used part of a core in a plan: beyond it, waiting grows faster than load, and a lost
replica adds its load to the others."""

REPLICAS_MAX: Final = 10_000
"""More replicas mean a mistaken input."""

Curve = tuple[tuple[float, float], ...]


class NoPlan(ValueError):
    """No number of replicas satisfies the load; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load to size for: requests a second of all replicas, matching constraints, the goal.

    ``speed`` is that of a core beside the one that was measured: 0.5 is half as fast.
    """

    rate: float
    constraints: int
    p99_ms: float
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class SizePlan:
    """The number of replicas, and the load of each."""

    replicas: int
    cpu_ms: float
    utilisation: float
    p99_ms: float
    memory_mib: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The measured curves by matching constraints, and how requests wait."""

    cpu_ms: Curve
    memory_mib: Curve
    p99_alone: float
    p99_waiting: float
    processor: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Figures:
        """Returns the figures as ``make bench-curves`` writes them."""
        return cls(
            cpu_ms=tuple((at, value) for at, value in document["cpu_ms"]),
            memory_mib=tuple((at, value) for at, value in document["memory_mib"]),
            p99_alone=document["p99_alone"],
            p99_waiting=document["p99_waiting"],
            processor=document["processor"],
        )

    def request_cpu_ms(self, constraints: int, speed: float = 1.0) -> float:
        """Returns the processor's time for a request."""
        return interpolated(self.cpu_ms, constraints) / speed

    def latency_ms(self, cpu_ms: float, utilisation: float) -> float:
        """Returns the 99th percentile at this used part of a core."""
        waits = self.p99_waiting * utilisation / (1 - utilisation)
        return cpu_ms * (self.p99_alone + waits)

    def plan(self, load: Load) -> SizePlan:
        """Returns the smallest sufficient number of replicas; raises :class:`NoPlan`."""
        cpu_ms = self.request_cpu_ms(load.constraints, load.speed)
        alone = self.latency_ms(cpu_ms, 0)
        if alone > load.p99_ms:
            raise NoPlan(
                f"no number of replicas answers within {load.p99_ms:g} ms. With "
                f"{quantity(load.constraints, 'matching constraint')} an idle replica has a p99 of "
                f"{alone:.2g} ms"
            )
        cores = load.rate * cpu_ms / 1000
        # From alone + waiting * u / (1 - u) = p99 / s.
        room = load.p99_ms / cpu_ms - self.p99_alone
        useful = room / (room + self.p99_waiting) if self.p99_waiting else 1.0
        bound = min(UTILISATION_MAX, useful)
        replicas = max(1, math.ceil(cores / bound - 1e-9)) if bound > 0 else REPLICAS_MAX + 1
        if replicas > REPLICAS_MAX:
            raise NoPlan(f"more than {REPLICAS_MAX} replicas would be needed")
        used = cores / replicas
        return SizePlan(
            replicas,
            cpu_ms,
            used,
            self.latency_ms(cpu_ms, used),
            interpolated(self.memory_mib, load.constraints),
        )


def interpolated(curve: Sequence[tuple[float, float]], at: float) -> float:
    """The value at a place, on straight lines between logarithms; beyond the ends they go on."""
    at = max(at, curve[0][0])
    following = next(
        (number for number in range(1, len(curve)) if curve[number][0] >= at), len(curve) - 1
    )
    (left, low), (right, high) = curve[following - 1], curve[following]
    part = math.log(at / left) / math.log(right / left)
    return math.exp(math.log(low) + part * math.log(high / low))
