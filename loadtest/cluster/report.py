"""Rounds to medians, medians to tables, and what must not have been seen."""

import statistics
from typing import Any

FIGURES = {
    "ready_seconds": "start to ready, s",
    "ready_cpu_seconds": "processor time up to then, s",
    "ready_rss_mib": "resident memory then, MiB",
    "told_seconds": "start to every status written, s",
    "told_cpu_seconds": "processor time up to then, s",
    "told_rss_mib": "resident memory then, MiB",
    "api_server_cpu_seconds": "processor time of the API server, s",
}


VERDICTS = {
    "first_answer_denies": "first verdict of all right",
    "ready_answer_denies": "first verdict once ready right",
}


def medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """The median of each figure."""
    return {figure: statistics.median(one[figure] for one in rounds) for figure in FIGURES}


def faults(result: dict[str, Any]) -> list[str]:
    """Returns the faults: an answer of a half-filled cache, a replica apart, a write at rest."""
    found = []
    for name, stage in result["stages"].items():
        replicas = stage["replicas"]
        firsts = [one["first_answer_denies"] for one in stage["starts"]["waddle"]]
        firsts += replicas["first_answers_deny"]
        if not all(firsts):
            found.append(f"{name}: a first answer was given from a half-filled cache")
        if replicas["digests"] != 1:
            found.append(f"{name}: the replicas differ in what they enforce")
        if replicas["writes"]:
            found.append(f"{name}: {replicas['writes']} writes in a steady state")
    return found


def markdown(result: dict[str, Any]) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    stages = "".join(_stage(name, stage) for name, stage in result["stages"].items())
    return f"""# A large cluster, beside Gatekeeper

Written by `{result["command"]}`. One process of each, in turn, on one core (Gatekeeper with
`GOMAXPROCS=1`), follows the same API server on another, each time with a new Pod; Waddle by its service account, with
the rights of the manifests. Medians of the rounds. *Ready* is the first 200 of `/readyz`; *every status written* is when the API server has a
status object of this Pod for each template and constraint. Each process is asked for the same
admission from its start on, and a verdict is *right* if it is the denial of the last of all
constraints; Kubernetes sends nothing to a Pod before it is ready. Templates are those of the Gatekeeper policy library in `loadtest/policies/p12`,
each under many names.

| machine | |
|---|---|
{machine}{stages}"""


def _stage(name: str, stage: dict[str, Any]) -> str:
    ours, theirs = (medians(stage["starts"][program]) for program in ("waddle", "gatekeeper"))
    lines = "".join(
        f"| {label} | {ours[figure]:.1f} | {theirs[figure]:.1f} "
        f"| **{ours[figure] / theirs[figure]:.2f}** |\n"
        for figure, label in FIGURES.items()
    )
    rights = "".join(
        f"| {label} | {_right(stage['starts']['waddle'], key)} "
        f"| {_right(stage['starts']['gatekeeper'], key)} | |\n"
        for key, label in VERDICTS.items()
    )
    replicas = stage["replicas"]
    rss = ", ".join(f"{one:.0f}" for one in replicas["rss_mib"])
    ready = ", ".join(f"{one:.1f}" for one in replicas["ready_seconds"])
    same = "one digest" if replicas["digests"] == 1 else f"{replicas['digests']} digests"
    return f"""
## {name[0].upper()}{name[1:]}

| | waddle | gatekeeper | ratio |
|---|---|---|---|
{lines}{rights}
Three replicas of Waddle, started at once on the same core, were ready after {ready} s.
Resident memory was {rss} MiB. They had {same} of policies and data.
Together they made **{replicas["writes"]} writes** in {replicas["quiet_seconds"]:.0f} s of steady state.
"""


def _right(rounds: list[dict[str, Any]], key: str) -> str:
    return f"{sum(one[key] for one in rounds)} of {len(rounds)}"
