"""Records of an audit, which can wait: for room, and never in an admission's place."""

import asyncio
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.decisions.exporting import Peer, balanced, make, obliging


def test_audit_waits_for_room_and_leaves_half_of_it_to_admissions(tmp_path: Path) -> None:
    async def run() -> None:
        exporter = make(tmp_path, queue={"maxRecords": 20})
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:

            async def sweep() -> None:
                for n in range(300):
                    assert await exporter.put({"n": n})
                    assert exporter.queued <= 11

            sweeping = tasks.create_task(sweep())
            while exporter.queued < 11:  # noqa: ASYNC110  # another task fills it
                await asyncio.sleep(0)
            assert exporter.offer({"admission": True})
            async with Peer(tmp_path, obliging):
                tasks.create_task(exporter.run())
                await sweeping
                await exporter.drain(PATIENCE_SECONDS)
        assert exporter.counters.acknowledged == 301
        assert exporter.counters.dropped == {}

    asyncio.run(run())


def test_what_an_audit_gives_up_is_counted_and_so_is_what_rules_and_limits_leave_out(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        rules = [{"verdicts": ["allow"]}]
        exporter = make(tmp_path, queue={"maxRecords": 2}, rules=rules, maxRecordBytes=1024)
        assert not await exporter.put({"verdict": "allow"})
        assert not await exporter.put({"verdict": "deny", "other": ["x" * 2000]})
        assert await exporter.put({"n": 1})
        assert await exporter.put({"n": 2})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await exporter.put({"n": 3})
        assert exporter.counters.dropped == {"rule": 1, "too_large": 1, "audit_timeout": 1}
        assert balanced(exporter)

    asyncio.run(run())
