"""Changes of objects between the audit's sweeps, at a real API server."""

import asyncio

from tests.cluster import Cluster
from tests.patience import PATIENCE_SECONDS
from webhook.api.gvk import GroupVersionKind
from webhook.api.names import LAST_APPLIED
from webhook.api.resource import Resource
from webhook.audit.watches import ObjectWatches
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials

CONFIG_MAP = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
NAME = "seen-between-sweeps"
PATH = f"/api/v1/namespaces/default/configmaps/{NAME}"


def test_an_object_that_changes_is_seen_as_whole_as_a_sweep_sees_it(cluster: Cluster) -> None:
    """Else a policy that reads an object's writers would decide one way here, another there."""

    async def run() -> None:
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            watches = ObjectWatches(client)
            watches.follow([CONFIG_MAP])
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(watches.run())
                await watches.wait_synced(PATIENCE_SECONDS)
                document = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": NAME, "annotations": {LAST_APPLIED: "{}"}},
                }
                applied = await asyncio.to_thread(cluster.api.apply, PATH, document)
                try:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        assert await next_event(watches) == applied
                finally:
                    await asyncio.to_thread(cluster.api.request, "DELETE", PATH)
                    following.cancel()

    async def next_event(watches: ObjectWatches) -> object:
        while True:
            await watches.wait(PATIENCE_SECONDS)
            for changed in watches.take():
                if changed.identity.name == NAME:
                    return changed.object

    asyncio.run(run())
