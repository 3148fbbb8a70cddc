"""The plots of a run: CPU, latency and memory, side by side."""

from typing import Any

from loadtest.bench.goals import CPU, SETS
from loadtest.plots.svg import Axes, bars

BOTH = ("waddle", "gatekeeper")


def draw(result: dict[str, Any]) -> dict[str, str]:
    """Each plot's SVG by its name."""
    points = [
        point for point in result["points"] if (point["body"], point["connections"]) == ("pod", 8)
    ]
    schedules, memory = result["schedule"], result["memory"]
    return {
        "cpu": bars(
            Axes(
                "CPU for each request, one core, 8 connections",
                "policies that match, or of which 12 match",
                "ms, logarithmic",
                y_logarithmic=True,
            ),
            [SETS[point["set"]] for point in points],
            [(name, [point[name][CPU] for point in points]) for name in BOTH],
        ),
        "p99": bars(
            Axes(
                "p99 at half of Gatekeeper's saturation",
                "policies",
                "ms, logarithmic",
                y_logarithmic=True,
            ),
            [f"{SETS[one['set']]}, {one['rate']:.0f}/s" for one in schedules],
            [(name, [one[name]["p99_ms"] for one in schedules]) for name in BOTH],
        ),
        "memory": bars(
            Axes("Resident memory after the same requests", "policies", "MiB"),
            [SETS[name] for name in memory],
            [(name, [one[name] for one in memory.values()]) for name in BOTH],
        ),
    }
