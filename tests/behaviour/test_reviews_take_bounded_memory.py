"""A policy that makes much of little ends as an overrun before a replica is out of memory."""

from pathlib import Path

import pytest

from loadtest.drill.attacks.review_memory import policies
from tests.behaviour.serving import Server, pod, review, write_policies
from tests.patience import until


def peak_mib(server: Server) -> float:
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the server is gone")


@pytest.mark.parametrize("rule", ["ranges", "pairs"])
def test_an_evaluation_that_makes_hundreds_of_mib_ends(tmp_path: Path, rule: str) -> None:
    """It has thirty times the budget: the object is of a MiB."""
    with Server(write_policies(tmp_path, *policies())) as server:
        server.ready()
        found = pod(owner="me", tries=rule)
        found["metadata"]["annotations"] = {"notes": "x" * 1024 * 1024}
        messages: list[str] = []

        def has_ended_by_memory() -> bool:
            verdict = server.post(review(found)).verdict
            assert verdict["allowed"] is False
            messages.append(verdict["status"]["message"])
            return "made more than 64 MiB" in messages[-1]

        # Where other programs have the processors, a review's time ends first.
        until(has_ended_by_memory, lambda: f"the end by memory: {messages}")
        for _ in range(3):  # And nothing stays of what each had made.
            has_ended_by_memory()
        assert peak_mib(server) < 400
