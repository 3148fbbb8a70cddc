"""Rounds to medians, and medians to tables."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

FIGURES = (
    "requests_per_second",
    "server_cpu_ms_per_request",
    "p50_ms",
    "p99_ms",
    "server_rss_mib",
    "answer_bytes",
)


def median(rounds: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The median of each figure over the rounds, and the worst p99.9 where rounds have one."""
    rounds = list(rounds)
    found = {figure: statistics.median(one[figure] for one in rounds) for figure in FIGURES}
    rare = [one["p999_ms"] for one in rounds if "p999_ms" in one]
    return found | ({"p999_ms": statistics.median(rare)} if rare else {})


def verdict_lines(verdicts: Sequence[dict[str, Any]]) -> str:
    """The verdicts for a terminal."""
    width = max(len(one["goal"]) for one in verdicts)
    return "\n".join(
        f"{'met    ' if one['met'] else 'NOT MET'}  {one['goal']:{width}}  "
        f"{one['measured']:.3f}, {one['sense']} {one['bound']:g}"
        for one in verdicts
    )


def markdown(result: dict[str, Any], pictures: Sequence[str]) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    floors = result["floors"]
    drawn = "\n".join(f"![{name}]({name})" for name in pictures)
    return f"""# Serving, beside Gatekeeper

Written by `{result["command"]}` in {result["minutes"]:g} minutes, begun {result["began"]}. Both
servers on one core (Gatekeeper with `GOMAXPROCS=1`), the client on another; TLS 1.3 with keep-alive;
the same bodies and policies (`loadtest/bodies`, `loadtest/policies`); alternated rounds, medians.
Every answer's verdict and uid was checked. CPU is the server's user and system time. These bodies
are sent again and again: Waddle keeps no results of earlier reviews here (`--memo-bytes=0`), but for
the traces, memory and starts.

| machine | |
|---|---|
{machine}
## Goals

By `pod.json` and 8 connections. Ratios to Gatekeeper, where nothing else is named.

| goal | measured | bound | |
|---|---|---|---|
{_verdicts(result["verdicts"])}
{drawn}

## Requests

{_points(result["points"])}
`p1000` has 1,000 constraints of which 12 match: those of `p12`; of the others half are for other
kinds and half each for a namespace of its own. `deployment.json` matches few of the constraints.

## Beside the limit

A bare uvicorn application that decodes the same body and answers a constant
(`loadtest/bench/floor.py`), and Waddle with one constraint.

| body | connections | bare, CPU ms/request | waddle | ratio |
|---|---|---|---|---|
{_floors(result["points"])}
## Traces of real shape

No request is sent twice; Waddle runs as shipped and keeps results. `rollout`: 50 Deployments of ten
Pods, which differ in names and hashes. `updates`: annotations and statuses of Pods. `mix`: roll-outs,
and 30 % of Pods of shapes that nobody has seen. Both servers in turn, 8 connections; medians of rounds
and of their ratios (`loadtest/traces.py`).

| set | trace | bare, CPU ms/request | waddle | ratio | p99 ms waddle |
|---|---|---|---|---|---|
{_traces(result["traces"])}
## Latency at the same offered load

`pod.json` on a fixed schedule at half of what Gatekeeper can do with 8 connections; a latency counts
from the scheduled time. The bare application gets the schedule of `p1`: what it takes is the machine's,
which wakes an idle core for each request.

| set | requests/s | p50 ms waddle | gatekeeper | bare | p99 ms waddle | gatekeeper | bare | p99 ratio |
|---|---|---|---|---|---|---|---|---|
{_schedules(result["schedule"])}
## Memory

Resident MiB after the same requests (`pod_small.json`) to both, one after the other. Waddle runs as in
a Pod: by its service account, with the manifests' rights, at an API server with the same policies.
*All* counts the process that tries new policies, too. Of Waddle's,
{floors["interpreter_mib"]:.0f} are the interpreter and with it the imports
{floors["imports_mib"]:.0f}.

| set | requests | waddle | gatekeeper | ratio | before the requests: waddle | gatekeeper | all: waddle | gatekeeper |
|---|---|---|---|---|---|---|---|---|
{_memory(result["memory"])}
## Start

Seconds from the start of the process until `/readyz` answers 200, medians of five starts in turns,
one at a time; Waddle has no policies compiled before. Both read policies from an API server, Waddle as
in a Pod.
Of Waddle's, {floors["interpreter_seconds"]:.2f} s are the interpreter and with it the imports
{floors["imports_seconds"]:.2f} s.

| set | waddle | gatekeeper | ratio | CPU: waddle | gatekeeper | ratio |
|---|---|---|---|---|---|---|
{_starts(result["start"])}"""


def _verdicts(verdicts: Iterable[dict[str, Any]]) -> str:
    return "".join(
        f"| {one['goal']} | {one['measured']:.3f} | {one['sense']} {one['bound']:g} "
        f"| {'met' if one['met'] else '**not met**'} |\n"
        for one in verdicts
    )


def _starts(started: dict[str, dict[str, float]]) -> str:
    return "".join(
        f"| {name} | {one['waddle']:.2f} | {one['gatekeeper']:.2f} | "
        f"{one['waddle'] / one['gatekeeper']:.2f} | {one['waddle_cpu']:.2f} "
        f"| {one['gatekeeper_cpu']:.2f} | {one['waddle_cpu'] / one['gatekeeper_cpu']:.2f} |\n"
        for name, one in started.items()
    )


def _memory(memory: dict[str, dict[str, float]]) -> str:
    return "".join(
        f"| {name} | {one['requests']:.0f} | {one['waddle']:.0f} | {one['gatekeeper']:.0f} | "
        f"{one['waddle'] / one['gatekeeper']:.2f} | {one['waddle_idle']:.0f} "
        f"| {one['gatekeeper_idle']:.0f} | {one['waddle_all']:.0f} | {one['gatekeeper_all']:.0f} |\n"
        for name, one in memory.items()
    )


def _schedules(schedules: Iterable[dict[str, Any]]) -> str:
    return "".join(
        f"| {one['set']} | {one['rate']:.0f} "
        f"| {one['waddle']['p50_ms']:.2f} | {one['gatekeeper']['p50_ms']:.2f} "
        f"| {_of_floor(one, 'p50_ms')} "
        f"| {one['waddle']['p99_ms']:.2f} | {one['gatekeeper']['p99_ms']:.2f} "
        f"| {_of_floor(one, 'p99_ms')} "
        f"| {one['waddle']['p99_ms'] / one['gatekeeper']['p99_ms']:.2f} |\n"
        for one in schedules
    )


def _of_floor(schedule: dict[str, Any], figure: str) -> str:
    return f"{schedule['floor'][figure]:.2f}" if "floor" in schedule else ""


def _floors(points: Iterable[dict[str, Any]]) -> str:
    cpu = "server_cpu_ms_per_request"
    return "".join(
        f"| {one['body']} | {one['connections']} | {one['floor'][cpu]:.3f} "
        f"| {one['waddle'][cpu]:.3f} | {one['waddle'][cpu] / one['floor'][cpu]:.2f} |\n"
        for one in points
        if "floor" in one
    )


def _traces(traces: Iterable[dict[str, Any]]) -> str:
    return "".join(
        f"| {one['set']} | {one['trace']} | {one['floor']:.3f} | {one['waddle']:.3f} "
        f"| {one['ratio']:.2f} | {one['p99_ms']:.2f} |\n"
        for one in traces
    )


def _points(points: Iterable[dict[str, Any]]) -> str:
    lines = [
        "| set | body | connections | requests/s | | CPU ms/request | | **CPU ratio** | p50 ms | | p99 ms | | bytes | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        "| | | | waddle | gatekeeper | waddle | gatekeeper | | waddle | gatekeeper | waddle | gatekeeper | waddle | gatekeeper |",
    ]
    for point in points:
        ours, theirs = point["waddle"], point["gatekeeper"]
        cpu = "server_cpu_ms_per_request"
        lines.append(
            f"| {point['set']} | {point['body']} | {point['connections']} "
            f"| {ours['requests_per_second']:.0f} | {theirs['requests_per_second']:.0f} "
            f"| {ours[cpu]:.3f} | {theirs[cpu]:.3f} | **{ours[cpu] / theirs[cpu]:.3f}** "
            f"| {ours['p50_ms']:.2f} | {theirs['p50_ms']:.2f} "
            f"| {ours['p99_ms']:.2f} | {theirs['p99_ms']:.2f} "
            f"| {ours['answer_bytes']:.0f} | {theirs['answer_bytes']:.0f} |"
        )
    return "\n".join(lines) + "\n"
