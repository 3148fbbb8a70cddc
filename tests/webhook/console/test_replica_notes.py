"""The replicas' own reports: when they are read, and how long they are kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.console.assembled import pod
from tests.webhook.console.listing import Listing
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.console import replica_notes
from webhook.console.replica_notes import ReplicaNotes

FOREVER = 3600.0


def replica(name: str) -> Any:
    """A replica that answers probes."""
    ports = [{"name": "health", "containerPort": 9440}]
    made = pod(name)
    spec = {"containers": [{"name": "webhook", "ports": ports}]}
    return {**made, "spec": spec, "status": {**made["status"], "podIP": "10.0.0.1"}}


def run(listing: Listing, check: Callable[[ReplicaNotes, list[Any], list[int]], Any]) -> None:
    """Runs a check with the notes of Pods that it may change, and counts what was new."""
    pods, new = [replica("a"), replica("b")], [0]

    def notify() -> None:
        new[0] += 1

    async def follow() -> None:
        notes = ReplicaNotes("waddle-system", lambda: pods, notify)
        credentials = load_credentials(str(listing.kubeconfig))
        async with ClusterClient(credentials) as client, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(notes.run(client))
            await check(notes, pods, new)
            running.cancel()

    asyncio.run(follow())


def test_many_visitors_cost_replicas_as_much_as_one_until_a_reading_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_notes, "PAGE_SECONDS", FOREVER)
    monkeypatch.setattr(replica_notes, "KEPT_SECONDS", FOREVER)
    with Listing(tmp_path) as listing:
        listing.reports |= {"a": "[!]the clock is wrong\n[+]policies ok\n", "b": "[+]policies ok\n"}

        async def check(notes: ReplicaNotes, pods: list[Any], new: list[int]) -> None:
            async with asyncio.TaskGroup() as visitors:
                for _ in range(50):
                    visitors.create_task(notes.refresh())
            await notes.refresh()
            assert sorted(listing.reported) == ["a", "b"]
            assert (dict(notes.by_pod), new) == ({"a": ("the clock is wrong",), "b": ()}, [1])
            listing.reports["c"] = "[-]policies failed: none\n"
            pods.append(replica("c"))
            await notes.refresh()
            assert notes.by_pod["c"] == ("not ready: policies: none",)
            assert (len(listing.reported), new) == (5, [2])
            monkeypatch.setattr(replica_notes, "KEPT_SECONDS", 0.0)
            await notes.refresh()
            assert (len(listing.reported), new) == (8, [2])

        run(listing, check)


def test_a_page_does_not_wait_for_a_replica_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_notes, "PAGE_SECONDS", 0.0)
    with Listing(tmp_path) as listing:

        async def check(notes: ReplicaNotes, pods: list[Any], new: list[int]) -> None:
            await notes.refresh()
            assert (dict(notes.by_pod), new) == ({}, [0])
            monkeypatch.setattr(replica_notes, "PAGE_SECONDS", FOREVER)
            listing.reports |= dict.fromkeys("ab", "[+]policies ok\n")
            await notes.refresh()
            assert (dict(notes.by_pod), new) == ({"a": (), "b": ()}, [1])

        run(listing, check)
