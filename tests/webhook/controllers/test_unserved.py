"""Objects of kinds that Gatekeeper serves and we do not are logged with counts; a refusal is no failure."""

import asyncio
import json

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.cluster.fault_server import scripted, status
from webhook.cluster.client import ClusterClient
from webhook.controllers.follow.unserved import UNSERVED, count_all, log_unserved
from webhook.log import Log
from webhook.metrics.policies import UNSERVED_OBJECTS
from webhook.metrics.registry import Registry


def listed(number):
    """A page of one of so many objects."""
    metadata = {"resourceVersion": "1", "remainingItemCount": number - 1}
    return 200, [json.dumps({"items": [{}], "metadata": metadata}).encode()], "end"


def test_objects_without_effect_are_reported_with_their_number_and_counted(tmp_path):
    lines, registry = [], Registry()

    async def run():
        answers = [listed(1)]
        log = Log(lines.append).logger("cluster")
        script = [status(503), *answers, status(403), *answers, status(404)]
        async with (
            scripted(tmp_path, *script, compares=False) as (_, credentials),
            ClusterClient(credentials) as client,
        ):
            unserved = await count_all(client, registry, log, {}, external_data=False)
            await count_all(client, registry, log, unserved, external_data=False)

    asyncio.run(run())
    assert registry.gauges[UNSERVED_OBJECTS] == {
        ("Provider",): 1,
    }
    found = [json.loads(line) for line in lines]
    assert [(line["kind"], line["count"]) for line in found] == [
        ("Provider", 1),
    ]
    assert "external data is turned off" in found[0]["effect"]
    assert len(UNSERVED) == 1


def test_it_is_looked_again_after_an_outage_and_reported_once_it_is_known(tmp_path):
    lines, registry = [], Registry()

    async def run():
        log = Log(lines.append).logger("cluster")
        script = [status(500), listed(3)]
        async with (
            scripted(tmp_path, *script, compares=False) as (server, credentials),
            ClusterClient(credentials) as client,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            logging_ = tasks.create_task(log_unserved(client, registry, log, external_data=True))
            await turns_until(lambda: lines)
            logging_.cancel()
            assert len(server.requests) == 2

    asyncio.run(run())
    assert [json.loads(line)["count"] for line in lines] == [3]
    assert registry.gauges[UNSERVED_OBJECTS] == {("Connection",): 3}
