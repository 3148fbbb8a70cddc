"""The audit's figures as a page, and the goals that they are held against."""

from typing import Any

GOALS = {
    "processor time of a sweep, of Gatekeeper's": 0.1,
    "peak memory, MiB": 120.0,
    "growth of the peak from the small cluster to the large one": 1.1,
}


def verdicts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Each goal with what was measured at the large cluster."""
    small, large = result["points"][0], result["points"][-1]
    measured = (
        large["waddle"]["cpu_seconds"] / large["gatekeeper"]["cpu_seconds"],
        large["waddle"]["peak_mib"],
        large["waddle"]["peak_mib"] / small["waddle"]["peak_mib"],
    )
    found = [
        {"goal": goal, "bound": bound, "measured": value, "met": value <= bound}
        for (goal, bound), value in zip(GOALS.items(), measured, strict=True)
    ]
    same = all(point["equal"] for point in result["points"])
    decisions = result["decisions"]
    total = sum(large["totals"].values())
    whole = decisions["violations"] == decisions["said"] == total
    for goal, met in (
        ("totals and violations of every constraint are Gatekeeper's", same),
        ("the decision log has every violation of a sweep, once", whole),
    ):
        found.append({"goal": goal, "bound": 1, "measured": int(met), "met": met})
    return found


def markdown(result: dict[str, Any]) -> str:
    """The whole result."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    goals = "".join(
        f"| {one['goal']} | {one['measured']:.3f} | {one['bound']:g} "
        f"| {'met' if one['met'] else '**not met**'} |\n"
        for one in result["goals"]
    )
    rows = "".join(_row(point, name) for point in result["points"] for name in NAMES)
    decisions, large = result["decisions"], result["points"][-1]
    return f"""# The audit, beside Gatekeeper

Written by `make bench-audit` in {result["minutes"]} minutes. The twelve constraints of
`loadtest/policies/p12` on Pods, half `pod.json` and half `pod_bad.json`, on one cluster; each
auditor on one core (Gatekeeper with `GOMAXPROCS=1` and `--audit-match-kind-only`), logging every
violation. Processor time is user and system, from a sweep's begin to the next, statuses included;
ours is the median of the sweeps after the first. Memory is the most that was ever resident.

| machine | |
|---|---|
{machine}
| goal | measured | at most | |
|---|---|---|---|
{goals}
| pods | auditor | a sweep, s | processor, s | of a pod, ms | first sweep, s | peak, MiB |
|---|---|---|---|---|---|---|
{rows}
In {large["pods"]:,} pods there are {sum(large["totals"].values()):,} violations. With the decision
log on, a sidecar beside it has {decisions["violations"]:,} of them from one sweep, which took
{decisions["first_cpu_seconds"]:.1f} s of processor time and {decisions["peak_mib"]:.0f} MiB.
"""


NAMES = ("waddle", "gatekeeper")


def _row(point: dict[str, Any], name: str) -> str:
    one = point[name]
    return (
        f"| {point['pods']:,} | {name} | {one['seconds']:.2f} | {one['cpu_seconds']:.2f} "
        f"| {one['cpu_seconds'] / point['pods'] * 1000:.2f} | {one['first_cpu_seconds']:.2f} "
        f"| {one['peak_mib']:.1f} |\n"
    )
