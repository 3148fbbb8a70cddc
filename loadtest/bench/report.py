"""Rounds to medians, and medians to tables."""

import statistics
from collections.abc import Iterable
from typing import Any

FIGURES = (
    "requests_per_second",
    "server_cpu_ms_per_request",
    "p50_ms",
    "p99_ms",
    "server_rss_mib",
)


def median(rounds: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The median of each figure over the rounds."""
    rounds = list(rounds)
    return {figure: statistics.median(one[figure] for one in rounds) for figure in FIGURES}


def markdown(result: dict[str, Any]) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    start = result["start"]
    memory = "".join(
        f"| {name} | {one['requests']} | {one['waddle']:.0f} | {one['gatekeeper']:.0f} | "
        f"{one['waddle'] / one['gatekeeper']:.2f} |\n"
        for name, one in result["memory"].items()
    )
    return f"""# Serving, beside Gatekeeper

Written by `{result["command"]}`. Both servers on one core, the client on another; TLS 1.3 with
keep-alive; the same bodies and policies (`loadtest/bodies`, `loadtest/policies`); alternated
rounds, medians. Every answer's verdict and uid was checked. CPU is the server's user and system time.

| machine | |
|---|---|
{machine}
## Requests

{_points(result["points"])}
`deployment.json` matches few of the constraints: it is shown, not judged by.

## Latency at the same offered load

`pod.json` on a fixed schedule at half of what Gatekeeper can do with 8 connections; a latency counts
from the scheduled time.

| set | requests/s | p50 ms waddle | gatekeeper | p99 ms waddle | gatekeeper | p99 ratio |
|---|---|---|---|---|---|---|
{_schedules(result["schedule"])}
## Memory

Resident MiB after the same requests (`pod.json`) to both.

| set | requests | waddle | gatekeeper | ratio |
|---|---|---|---|---|
{memory}
## Start

Seconds from the start of the process until `/readyz` answers 200, with 12 constraints, median of
five: **{start["ready_seconds"]:.2f}** (of which the interpreter alone takes
{start["interpreter_seconds"]:.2f} and, with it, the imports {start["imports_seconds"]:.2f}).
Gatekeeper, whose policies come from an API server: {start["gatekeeper_seconds"]:.2f}.
"""


def _schedules(schedules: list[dict[str, Any]]) -> str:
    return "".join(
        f"| {one['set']} | {one['rate']:.0f} "
        f"| {one['waddle']['p50_ms']:.2f} | {one['gatekeeper']['p50_ms']:.2f} "
        f"| {one['waddle']['p99_ms']:.2f} | {one['gatekeeper']['p99_ms']:.2f} "
        f"| {one['waddle']['p99_ms'] / one['gatekeeper']['p99_ms']:.2f} |\n"
        for one in schedules
    )


def _points(points: list[dict[str, Any]]) -> str:
    lines = [
        "| set | body | connections | requests/s | | CPU ms/request | | **CPU ratio** | p50 ms | | p99 ms | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        "| | | | waddle | gatekeeper | waddle | gatekeeper | | waddle | gatekeeper | waddle | gatekeeper |",
    ]
    for point in points:
        ours, theirs = point["waddle"], point["gatekeeper"]
        cpu = "server_cpu_ms_per_request"
        lines.append(
            f"| {point['set']} | {point['body']} | {point['connections']} "
            f"| {ours['requests_per_second']:.0f} | {theirs['requests_per_second']:.0f} "
            f"| {ours[cpu]:.3f} | {theirs[cpu]:.3f} | **{ours[cpu] / theirs[cpu]:.3f}** "
            f"| {ours['p50_ms']:.2f} | {theirs['p50_ms']:.2f} "
            f"| {ours['p99_ms']:.2f} | {theirs['p99_ms']:.2f} |"
        )
    return "\n".join(lines) + "\n"
