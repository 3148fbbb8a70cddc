"""Figures of windows to a verdict and a page."""

import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any

from loadtest.changes.measurement import CHANGES_PER_MINUTE, PROGRAMS, STATES

P99_RATIO_MAX = 1.5
CHANGES_PART_MIN = 0.98
"""Of the changes that are due in a window; the last of them may be under way when it ends."""

FIGURES = ("p50_ms", "p99_ms", "max_ms", "server_cores", "late_p99_ms", "sent_p99_ms")


def percentile(values: Iterable[int], part: float) -> float:
    """Milliseconds of microseconds, at the rank that the generator takes; 0 of none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] / 1000


def judged(result: dict[str, Any]) -> dict[str, Any]:
    """The result with its medians, and whether it is within its bounds."""
    seconds = result["plan"]["seconds"]
    programs = {name: _program(result["rounds"][name]) for name in PROGRAMS}
    ours = programs["waddle"]
    expected = CHANGES_PER_MINUTE * seconds / 60 * len(result["rounds"]["waddle"])
    verdicts = {
        f"p99 at most {P99_RATIO_MAX:g} times the quiet one": ours["p99_ratio"] <= P99_RATIO_MAX,
        "no failed admission": ours["failed"] == 0,
        "no wrong admission": ours["wrong"] == 0,
        f"{CHANGES_PER_MINUTE} changes a minute": (
            sum(ours["changes"].values()) >= CHANGES_PART_MIN * expected
        ),
    }
    return {**result, "programs": programs, "verdicts": verdicts, "passed": all(verdicts.values())}


def _program(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns a program's medians of rounds, and its sums."""
    windows = {state: [one[state] for one in rounds] for state in STATES}
    states = {
        state: {
            **{
                figure: statistics.median(_figure(one, figure) for one in found)
                for figure in FIGURES
            },
            "p999_ms": percentile([at for one in found for at in one["latencies_us"]], 0.999),
        }
        for state, found in windows.items()
    }
    every = [one for found in windows.values() for one in found]
    changes: Counter[str] = Counter()
    for one in windows["churn"]:
        changes.update(one["changes"])
    taken = [seconds for one in windows["churn"] for seconds in one["change_seconds"]]
    return {
        **states,
        "p99_ratio": states["churn"]["p99_ms"] / states["quiet"]["p99_ms"],
        "requests": sum(one["requests"] for one in every),
        "failed": sum(one["failed"] for one in every),
        "wrong": sum(one["wrong"] for one in every),
        "faults": sorted({one["fault"] for one in every if one["fault"]}),
        "changes": dict(sorted(changes.items())),
        "change_ms": statistics.median(taken) * 1000 if taken else 0.0,
        "enforced_seconds": max(one["enforced_seconds"] for one in windows["churn"]),
    }


def _figure(window: dict[str, Any], figure: str) -> float:
    if figure == "late_p99_ms":
        return percentile(window["late_us"], 0.99)
    if figure == "sent_p99_ms":
        pairs = zip(window["latencies_us"], window["late_us"], strict=True)
        return percentile((latency - late for latency, late in pairs), 0.99)
    return float(window[figure])


def markdown(result: dict[str, Any]) -> str:
    """The result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    rows = "".join(
        _row(name, state, result["programs"][name][state]) for name in PROGRAMS for state in STATES
    )
    sums = "".join(_sums(name, result["programs"][name]) for name in PROGRAMS)
    verdicts = "".join(
        f"- {'holds' if holds else '**does NOT hold**'}: {name}\n"
        for name, holds in result["verdicts"].items()
    )
    plan = result["plan"]
    first = (
        "went before everything else on its core (a real-time priority)"
        if result["generator_first"]
        else "had no priority over the API server on its core, which this machine does not allow"
    )
    return f"""# Load while policies change

Written by `{result["command"]}`. One replica of Waddle and one Gatekeeper in turn on the same
cluster and the same core, each with the operations webhook, status and generate, and registered
at the API server as the webhook that reviews the changes. Twelve policies stay, twelve constraints
of four templates change: {CHANGES_PER_MINUTE} changes a minute, evenly spread, of which 20 are of
templates (their Rego), each accepted by the API server before the next. A good and a bad body in
turn at {result["rate"]:.1f} requests a second, {plan["load"]:.0%} of what Gatekeeper can answer with these
policies; the bad one is denied by a policy that does not change. Every verdict and every uid is
checked. A latency counts from when the request was due. {plan["rounds"]} rounds, each with a window of
{plan["seconds"]:g} s without changes and one with them, in turn the first; medians of rounds.

The API server and the generator share the other core. The generator {first}.
"Sent late" is how long after it was due a request was sent, at the 99th percentile. The generator's
own timer takes up to 1 ms of each latency, with changes and without. More than that is a wait for
the core or, where all connections were in use, for the server. "Since sent" leaves it out.

| machine | |
|---|---|
{machine}
| | | p50 ms | p99 ms | p99 ms since sent | p99.9 ms | slowest ms | sent late, p99 ms | cores |
|---|---|---|---|---|---|---|---|---|
{rows}
The 99.9th percentile is that of all rounds together. Cores are the server's, with processes that it started.

| | p99 with changes | failed | wrong | of | changes made | accepted in, median ms | all enforced after, s |
|---|---|---|---|---|---|---|---|
{sums}
{verdicts}"""


def _row(name: str, state: str, one: dict[str, float]) -> str:
    shown = {"quiet": "quiet", "churn": "changes"}[state]
    return (
        f"| {name} | {shown} | {one['p50_ms']:.2f} | {one['p99_ms']:.2f} "
        f"| {one['sent_p99_ms']:.2f} | {one['p999_ms']:.2f} "
        f"| {one['max_ms']:.1f} | {one['late_p99_ms']:.2f} | {one['server_cores']:.3f} |\n"
    )


def _sums(name: str, one: dict[str, Any]) -> str:
    changes = ", ".join(f"{count} {kind}" for kind, count in one["changes"].items())
    return (
        f"| {name} | **{one['p99_ratio']:.2f} times** the quiet one | {one['failed']} "
        f"| {one['wrong']} | {one['requests']} | {changes} | {one['change_ms']:.0f} "
        f"| {one['enforced_seconds']:.2f} |\n"
    )
