"""Fits the figures of `waddle size` to the measured curves; two points are kept to check them."""

import json
from pathlib import Path
from typing import Any

from loadtest.curves.points import Store

FIGURES = Path(__file__).resolve().parents[2] / "webhook" / "cli" / "size_figures.json"

HELD_CONSTRAINTS = 30
HELD_LOAD = 0.6


CORES_MIN = 0.85
"""The least share of its core that a saturated server uses on a quiet machine. Below it, other
programs took the rest, and the latencies are theirs."""


def figures(store: Store) -> dict[str, Any] | None:
    """The figures, None while points are missing or tell of other work on the machine."""
    matching = [one for one in store.points("matching") if one["at"] != HELD_CONSTRAINTS]
    load = [one for one in store.points("load") if one["at"] != HELD_LOAD]
    if len(matching) < 3 or len(load) < 3:
        return None
    if any(one["peak"]["server_cores"] < CORES_MIN for one in load):
        return None
    service = load[0]["peak"]["server_cpu_ms_per_request"]
    alone, waiting = _line(
        [(one["at"] / (1 - one["at"]), one["waddle"]["p99_ms"] / service) for one in load]
    )
    return {
        "command": "make bench-curves",
        "processor": matching[0]["machine"]["processor"],
        "python": matching[0]["machine"]["python"],
        "cpu_ms": [
            [one["at"], round(one["waddle"]["server_cpu_ms_per_request"], 4)] for one in matching
        ],
        "memory_mib": [[one["at"], round(one["waddle"]["server_rss_mib"], 1)] for one in matching],
        "p99_alone": round(alone, 3),
        "p99_waiting": round(waiting, 3),
    }


def write(store: Store) -> None:
    """Put the figures where the command reads them."""
    found = figures(store)
    if found is not None:
        FIGURES.write_text(json.dumps(found, indent=1) + "\n")


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The line through points with the least sum of squares of relative errors.

    Latencies grow tenfold over the curve: by absolute errors the last point alone would count.
    """
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    product = sum(
        w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True)
    )
    slope = max(0.0, product / spread)
    return max(1.0, mean_y - slope * mean_x), slope
