"""Goals of a run, and verdicts."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

CPU = "server_cpu_ms_per_request"
CPU_GOALS = {"p1": 0.08, "p12": 0.03, "p100": 0.018}
TRACE_GOALS = {
    ("p12", "rollout"): 1.5,
    ("p100", "rollout"): 1.8,
    ("p12", "mix"): 2.2,
    ("p100", "mix"): 4.0,
}
"""Of the CPU of a bare uvicorn application."""
MEMORY_GOALS = {"p12": 0.4, "p100": 0.4, "p1000": 0.4}
IDLE_CONSTRAINTS_GOAL = 1.3
LATENCY_GOAL = 0.1
THROUGHPUT_GOAL = 10.0
FLOOR_GOAL = 1.2
START_GOAL = 0.5

SETS = {
    "p1": "1 constraint",
    "p12": "12 constraints",
    "p100": "100 constraints",
    "p1000": "1,000 constraints",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal, what was measured, and whether it holds."""

    goal: str
    measured: float
    bound: float
    sense: Literal["at most", "at least"]

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of its bound."""
        if self.sense == "at most":
            return self.measured <= self.bound
        return self.measured >= self.bound

    def as_json(self) -> dict[str, Any]:
        """For the results."""
        return {**asdict(self), "met": self.met}


def verdicts(result: dict[str, Any]) -> list[Verdict]:
    """Every goal that the run has figures for, by `pod.json` and 8 connections."""
    points = {
        point["set"]: point
        for point in result["points"]
        if (point["body"], point["connections"]) == ("pod", 8)
    }
    return [
        *_cpu(points),
        *_traces(result["traces"]),
        *_throughput(points),
        *_latency(result["schedule"]),
        *_memory(result["memory"]),
        *_start(result["start"]),
    ]


def _cpu(points: dict[str, Any]) -> Iterator[Verdict]:
    for name, bound in CPU_GOALS.items():
        if name in points:
            point = points[name]
            ratio = point["waddle"][CPU] / point["gatekeeper"][CPU]
            yield Verdict(f"CPU for each request, {SETS[name]}", ratio, bound, "at most")
    if "waddle-p12" in points.get("p1000", {}):
        point = points["p1000"]
        ratio = point["waddle"][CPU] / point["waddle-p12"][CPU]
        yield Verdict(
            "CPU with 1,000 constraints of which 12 match, beside our own with 12",
            ratio,
            IDLE_CONSTRAINTS_GOAL,
            "at most",
        )
    if "floor" in points.get("p1", {}):
        point = points["p1"]
        ratio = point["waddle"][CPU] / point["floor"][CPU]
        yield Verdict(
            "CPU with 1 constraint, beside a bare uvicorn application", ratio, FLOOR_GOAL, "at most"
        )


def _traces(traces: list[dict[str, Any]]) -> Iterator[Verdict]:
    for one in traces:
        if bound := TRACE_GOALS.get((one["set"], one["trace"])):
            goal = f"CPU on the trace {one['trace']!r}, {SETS[one['set']]}, beside the bare application"
            yield Verdict(goal, one["ratio"], bound, "at most")


def _throughput(points: dict[str, Any]) -> Iterator[Verdict]:
    if "p12" in points:
        rates = [points["p12"][name]["requests_per_second"] for name in ("waddle", "gatekeeper")]
        ratio = rates[0] / rates[1]
        yield Verdict("saturation of one core, 12 constraints", ratio, THROUGHPUT_GOAL, "at least")


def _latency(schedules: list[dict[str, Any]]) -> Iterator[Verdict]:
    for one in schedules:
        ratio = one["waddle"]["p99_ms"] / one["gatekeeper"]["p99_ms"]
        yield Verdict(
            f"p99 at half of Gatekeeper's saturation, {SETS[one['set']]}",
            ratio,
            LATENCY_GOAL,
            "at most",
        )


def _memory(memory: dict[str, Any]) -> Iterator[Verdict]:
    for name, bound in MEMORY_GOALS.items():
        if name in memory:
            one = memory[name]
            ratio = one["waddle"] / one["gatekeeper"]
            yield Verdict(
                f"memory after {one['requests']:,} requests, {SETS[name]}", ratio, bound, "at most"
            )


def _start(started: dict[str, Any]) -> Iterator[Verdict]:
    for name, one in started.items():
        ratio = one["waddle"] / one["gatekeeper"]
        yield Verdict(f"start to ready, {SETS[name]}", ratio, START_GOAL, "at most")
