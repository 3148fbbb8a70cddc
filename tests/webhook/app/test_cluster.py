"""Tasks beside the policies at a cluster: a bug in one part ends no other."""

import asyncio

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
