"""Figures to tables."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from loadtest.enforcement.changes import CHANGES

MEDIAN_MS_MAX = 50.0
P95_MS_MAX = 150.0
EXCESS_MS_MAX = 100.0
"""The goal for the median above the floor, in milliseconds."""


def summary(values: Iterable[float]) -> dict[str, float]:
    """Median, 95th percentile (nearest rank) and extremes."""
    ordered = sorted(values)
    rank = math.ceil(0.95 * len(ordered)) - 1
    return {
        "p50": statistics.median(ordered),
        "p95": ordered[rank],
        "min": ordered[0],
        "max": ordered[-1],
    }


def markdown(result: dict[str, Any]) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    names = ("waddle", "gatekeeper")
    replicas = result["replicas"]
    return f"""# From a change of policy to its enforcement, beside Gatekeeper

Written by `{result["command"]}`. {replicas} replicas of Waddle and one of Gatekeeper, each system
with a control plane of its own that holds {result["constraints"]} constraints of
{result["templates"]} templates; same machine, same run, in turn. A time begins when the change is
sent to the API server and ends when the last replica has answered a real admission by it, read at
each replica and not from status; all replicas are asked every few milliseconds.

| machine | |
|---|---|
{machine}
## A constraint

Milliseconds of {result["rounds"]} rounds. Aimed at: {MEDIAN_MS_MAX:g} at the median, {P95_MS_MAX:g} at p95.

| change | waddle p50, {replicas} replicas | p95 | gatekeeper p50, 1 replica | p95 | ratio p50 | ratio p95 |
|---|---|---|---|---|---|---|
{"".join(_change(change, [result["milliseconds"][name][change] for name in names]) for change in CHANGES)}
## A template and its constraint

Milliseconds of {result["template_rounds"]} rounds. The floor is a CRD made by hand and an object of
it, with nobody else involved: the API server itself sleeps two seconds on the first create of a
kind that is younger. Aimed at: {EXCESS_MS_MAX:g} above it.

| | enforced p50 | p95 | floor p50 | **above the floor p50** | p95 |
|---|---|---|---|---|---|
{"".join(_template(name, result["template_milliseconds"][name]) for name in names)}
## Writes

Requests that write, by the API servers' audit logs, for each change of a constraint until nothing
follows; the median of {result["write_rounds"]} rounds.

| | replicas | create | update | delete |
|---|---|---|---|---|
{"".join(_writes(one) for one in result["writes"])}
In a steady state of {result["steady"]["seconds"]:g} s: waddle
**{result["steady"]["waddle"]}**, gatekeeper {result["steady"]["gatekeeper"]}.
"""


def _change(change: str, figures: Sequence[dict[str, float]]) -> str:
    ours, theirs = figures
    return (
        f"| {change} | {ours['p50']:.0f} | {ours['p95']:.0f} | {theirs['p50']:.0f} "
        f"| {theirs['p95']:.0f} | **{ours['p50'] / theirs['p50']:.2f}** "
        f"| {ours['p95'] / theirs['p95']:.2f} |\n"
    )


def _template(name: str, figures: dict[str, dict[str, float]]) -> str:
    enforced, floor, excess = (figures[part] for part in ("enforced", "floor", "excess"))
    return (
        f"| {name} | {enforced['p50']:.0f} | {enforced['p95']:.0f} | {floor['p50']:.0f} "
        f"| **{excess['p50']:.0f}** | {excess['p95']:.0f} |\n"
    )


def _writes(one: dict[str, Any]) -> str:
    shown = " | ".join(f"{one['median'][change]:g}" for change in CHANGES)
    return f"| {one['system']} | {one['replicas']} | {shown} |\n"
