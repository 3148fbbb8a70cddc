"""A replica follows Providers: what is in force of each, and what its status says."""

import asyncio

from tests.webhook.controllers.session import session
from tests.webhook.external_data.recorded import provider
from webhook.metrics.providers import KNOWN_PROVIDERS, PROVIDER_ERRORS

SERVED = "externaldata.gatekeeper.sh", "providers"
STATUSES = "status.gatekeeper.sh", "providerpodstatuses"


def test_a_provider_is_in_force_and_what_cannot_be_used_leaves_the_last_good_one(tmp_path):
    async def run():
        async with session(tmp_path, "webhook", "status") as replica:
            replica.make(*SERVED, provider())
            status = {}

            def says(generation, *, active):
                entries = replica.get(*SERVED, "images").get("status", {}).get("byPod", ())
                status.update(entries[0] if entries else {})
                reported = status.get("observedGeneration"), status.get("active")
                return reported == (generation, active)

            await replica.until(lambda: says(1, active=True), "in force, and told")
            assert status["activeGeneration"] == 1
            assert "lastCacheUpdateTime" in status
            assert "lastTransitionTime" not in status
            assert "errors" not in status
            policies = replica.serving.revision.policies
            assert policies.providers["images"].timeout_seconds == 3
            assert replica.registry.gauges[KNOWN_PROVIDERS] == {("active",): 1, ("error",): 0}

            first_update = status["lastCacheUpdateTime"]
            replica.change(*SERVED, "images", spec={"url": "http://images.example"})
            await replica.until(lambda: says(2, active=False), "broken, and told")
            assert status["activeGeneration"] == 1
            assert status["lastCacheUpdateTime"] == first_update
            assert status["errors"] == [
                {
                    "type": "UpsertCache",
                    "message": "only HTTPS scheme is supported for Providers",
                    "retryable": True,
                    "errorTimestamp": status["lastTransitionTime"],
                }
            ]
            assert replica.serving.revision.policies.providers["images"].url.startswith("https:")
            assert replica.registry.gauges[KNOWN_PROVIDERS] == {("active",): 1, ("error",): 1}
            assert replica.registry.counters[PROVIDER_ERRORS][()] == 1

            def conditions():
                held = replica.get(*SERVED, "images")["status"].get("conditions", ())
                return {one["type"] for one in held if one["status"] == "True"}

            await replica.until(lambda: "Error" in conditions(), "a condition that says so")
            replica.drop(*SERVED, "images")
            await replica.until(lambda: not replica.all(*STATUSES), "no status of what is gone")
            assert not replica.serving.revision.policies.providers

    asyncio.run(run())


def test_a_timeout_beyond_the_longest_is_in_the_status(tmp_path):
    async def run():
        async with session(tmp_path, "webhook", "status") as replica:
            replica.make(*SERVED, provider(timeout=45))

            def warnings():
                entries = replica.get(*SERVED, "images").get("status", {}).get("byPod", ())
                return [text for entry in entries for text in entry.get("warnings", ())]

            await replica.until(warnings, "a warning")
            assert warnings()[0].startswith("its spec.timeout is 45 s")
            replica.change(*SERVED, "images", spec=provider(timeout=30)["spec"])
            await replica.until(lambda: not warnings(), "no warning")

    asyncio.run(run())


def test_a_replica_is_ready_beside_a_provider_that_cannot_be_used(tmp_path):
    async def run():
        def prepare(replica):
            replica.make(*SERVED, provider(url="nowhere"))

        async with session(tmp_path, "webhook", "status", prepare=prepare) as replica:
            await replica.until(lambda: replica.serving.revision is not None, "ready")
            assert not replica.serving.revision.policies.providers

    asyncio.run(run())


def test_where_external_data_is_turned_off_each_provider_says_that_nobody_asks_it(tmp_path):
    """Each was told to be active, and gatekeeper_providers counted it."""

    async def run():
        async with session(tmp_path, "webhook", "status", external_data=False) as replica:
            replica.make(*SERVED, provider())
            replica.make(*SERVED, provider("broken", url="http://images.example"))

            def entry(name):
                return next(iter(replica.get(*SERVED, name).get("status", {}).get("byPod", ())), {})

            await replica.until(lambda: entry("images") and entry("broken"), "statuses")
            for name in ("images", "broken"):
                assert entry(name)["active"] is False
                assert entry(name)["activeGeneration"] == 0
                [error] = entry(name)["errors"]
                assert "external data is turned off" in error["message"]
                assert error["errorTimestamp"]
            assert replica.registry.gauges[KNOWN_PROVIDERS] == {("active",): 0, ("error",): 0}

    asyncio.run(run())
