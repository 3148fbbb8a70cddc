"""Statuses at a CRD that does not keep all of them."""

import asyncio
import copy

from tests.webhook.controllers.session import (
    ALPHAS,
    EVERYTHING,
    LABELS,
    NAMESPACE,
    STATUSES,
    enforced,
    session,
)
from webhook.api.pod_status import POD_LABEL
from webhook.controllers.status import condition_keeper


def test_a_write_of_which_the_crd_keeps_nothing_does_not_keep_by_pod_from_following(
    tmp_path, monkeypatch
):
    """The object's version stays, and no event ends the wait for what was written."""
    monkeypatch.setattr(condition_keeper, "PRUNED_SECONDS", 0.0)

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.storage.pruned.add(("Alpha", "conditions"))
            await enforced(replica)
            await replica.until(lambda: replica.get(*ALPHAS, "c").get("status", {}).get("byPod"))
            before = replica.storage.idle_writes
            replica.following._aggregation.touch_all()
            await replica.until(
                lambda: replica.storage.idle_writes > before, "what changes nothing"
            )
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            pod = replica.make(
                "",
                "pods",
                {"metadata": {"name": "waddle-2", "labels": LABELS}, "status": ready},
                NAMESPACE,
            )
            other = copy.deepcopy(replica.all(*STATUSES)[0])
            other["metadata"] |= {"name": "waddle--2-alpha-c", "resourceVersion": ""}
            other["metadata"]["ownerReferences"][0] |= {
                "name": "waddle-2",
                "uid": pod["metadata"]["uid"],
            }
            other["metadata"]["labels"][POD_LABEL] = "waddle-2"
            other["status"]["id"] = "waddle-2"
            replica.make(*STATUSES, other, NAMESPACE)
            await replica.until(
                lambda: len(replica.get(*ALPHAS, "c")["status"]["byPod"]) == 2, "both in byPod"
            )
            entries = replica.get(*ALPHAS, "c")["status"]["byPod"]
            assert [one["id"] for one in entries] == ["waddle-1", "waddle-2"]

    asyncio.run(run())
