"""Tasks beside the policies at a cluster: a bug in one part ends no other."""

import asyncio
import subprocess
import sys

from webhook import log
from webhook.app.cluster import run_whatever_happens
from webhook.metrics.cluster import CLUSTER_FAULTS
from webhook.metrics.registry import Registry


def test_a_bug_in_a_part_begins_that_part_anew_and_is_counted_and_reported():
    """The certificate's keeper, reports and Events share a loop with the watches of policy."""
    registry, lines, runs = Registry(), [], []

    async def part() -> None:
        runs.append(len(runs))
        if len(runs) < 3:
            raise KeyError("data")

    async def follow() -> str:
        async with asyncio.TaskGroup() as tasks:
            logger = log.Log(lines.append).logger("test")
            tasks.create_task(run_whatever_happens("certificate", part, registry, logger, 0.001))
            return "followed"

    assert asyncio.run(follow()) == "followed"
    assert runs == [0, 1, 2]
    assert registry.counters[CLUSTER_FAULTS][()] == 2
    assert len([line for line in lines if "bug: certificate ended" in str(line)]) == 2


def test_a_replica_in_a_cluster_starts_without_what_few_policies_need():
    """Together they took 80 ms of each start, and 5 MiB."""
    program = """
import sys
import webhook.app.process, webhook.app.cluster
unneeded = {
    "yaml",
    "webhook.cel.syntax.parser",
    "webhook.constraint.formats",
    "webhook.kyverno.autogen",
    "webhook.policies.loader",
    "webhook.policies.validation",
}
print(sorted(unneeded & sys.modules.keys()))
"""
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout.strip() == "[]"
