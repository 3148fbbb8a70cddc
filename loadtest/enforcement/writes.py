"""The writes of a system for each kind of change."""

import statistics

from loadtest.enforcement.changes import CHANGES, MERGE
from loadtest.enforcement.requests import Ledger
from loadtest.enforcement.systems import KIND, System
from tests.system.replicas import CONSTRAINTS, constraint

Counts = dict[str, dict[str, int]]
"""By change, then by verb and resource."""


def per_change(system: System, rounds: int) -> dict[str, Counts]:
    """The writes of each round, by round and change."""
    Ledger(system).wait_quiet()
    return {str(number): _round(system, number) for number in range(rounds)}


def _round(system: System, number: int) -> Counts:
    path = f"{CONSTRAINTS}/{KIND.lower()}"
    word, other = f"counted-{system.replicas}-{number}", f"recounted-{system.replicas}-{number}"
    name, probe = f"{path}/{word}", system.probe

    def create() -> None:
        system.connection.request("POST", path, constraint(word, word, KIND))
        probe.wait(word, denied=True)

    def update() -> None:
        body = {"spec": {"parameters": {"word": other}}}
        system.connection.request("PATCH", name, body, MERGE)
        probe.wait(other, denied=True)

    def delete() -> None:
        system.connection.request("DELETE", name)
        probe.wait(other, denied=False)

    found = {}
    for change, step in zip(CHANGES, (create, update, delete), strict=True):
        ledger = Ledger(system)
        step()
        found[change] = ledger.wait_quiet()
    return found


def medians(rounds: dict[str, Counts]) -> dict[str, float]:
    """Writes of each change, all resources together: the median of the rounds."""
    return {
        change: statistics.median(sum(counts[change].values()) for counts in rounds.values())
        for change in CHANGES
    }
