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
        async with session(tmp_path, *EVERYTHING) as made:
            made.storage.pruned.add(("Alpha", "conditions"))
            await enforced(made)
            await made.until(lambda: made.get(*ALPHAS, "c").get("status", {}).get("byPod"))
            before = made.storage.idle_writes
            made.following._aggregation.touch_all()
            await made.until(lambda: made.storage.idle_writes > before, "what changes nothing")
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            pod = made.make(
                "",
                "pods",
                {"metadata": {"name": "waddle-2", "labels": LABELS}, "status": ready},
                NAMESPACE,
            )
            other = copy.deepcopy(made.all(*STATUSES)[0])
            other["metadata"] |= {"name": "waddle--2-alpha-c", "resourceVersion": ""}
            other["metadata"]["ownerReferences"][0] |= {
                "name": "waddle-2",
                "uid": pod["metadata"]["uid"],
            }
            other["metadata"]["labels"][POD_LABEL] = "waddle-2"
            other["status"]["id"] = "waddle-2"
            made.make(*STATUSES, other, NAMESPACE)
            await made.until(
                lambda: len(made.get(*ALPHAS, "c")["status"]["byPod"]) == 2, "both in byPod"
            )
            entries = made.get(*ALPHAS, "c")["status"]["byPod"]
            assert [one["id"] for one in entries] == ["waddle-1", "waddle-2"]

    asyncio.run(run())
