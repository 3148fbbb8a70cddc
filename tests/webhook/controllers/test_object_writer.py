"""Status objects at a real API server: written when they differ, and never otherwise."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import event, obj, scripted
from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import Pod
from webhook.api.resource import Resource
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.errors import ApiError
from webhook.cluster.reflector import ObjectSelection
from webhook.controllers.object_writer import ObjectWriter, changed_names, difference
from webhook.controllers.status.statuses import overlay_status, own_statuses
from webhook.log import open_log

CRDS = Path(__file__).parents[3] / "manifests" / "crds"
TEMPLATE_STATUS = Resource(
    GroupVersionKind("status.gatekeeper.sh", "v1beta1", "ConstraintTemplatePodStatus"),
    "constrainttemplatepodstatuses",
    namespaced=True,
)
POD = Resource(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
NAMESPACE = Resource(GroupVersionKind("", "v1", "Namespace"), "namespaces", namespaced=False)
CRD = Resource(
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    "customresourcedefinitions",
    namespaced=False,
)
ADDITIONS = {
    "activeGeneration": 2,
    "since": "2026-01-01T00:00:00Z",
    "missingData": [{"group": "", "version": "v1", "kind": "Service"}],
}


def status_of(pod, template, generation=3, **options):
    subject = pod_status.status_subject(
        pod_status.TEMPLATE,
        {"metadata": {"name": template, "uid": f"{template}-uid", "generation": generation}},
    )
    return pod_status.pod_status(pod, subject, additions=ADDITIONS, **options)


def by_name(*documents):
    return {document["metadata"]["name"]: document for document in documents}


def test_only_differences_are_written():
    pod = Pod("p", "ns", "u")
    same, changed, new = (status_of(pod, name) for name in ("same", "changed", "new"))
    found = by_name(
        same | {"metadata": same["metadata"] | {"resourceVersion": "1"}},
        status_of(pod, "changed", generation=1)
        | {"metadata": changed["metadata"] | {"resourceVersion": "2"}},
        status_of(pod, "gone"),
    )
    desired = by_name(same, changed, new)

    def write_of(name, *, prune):
        return difference(name, desired.get(name), found.get(name), overlay_status, prune=prune)

    names = sorted({*desired, *found})
    writes = {name: write for name in names if (write := write_of(name, prune=True))}
    assert {name: write.action for name, write in writes.items()} == {
        "p-changed": "replace",
        "p-new": "create",
        "p-gone": "delete",
    }
    assert writes["p-changed"].document["metadata"]["resourceVersion"] == "2"
    assert write_of("p-gone", prune=False) is None


def test_whoever_listens_gets_a_list_of_nothing_too():
    """Keepers that waited for it went on a minute later: an empty list has no changes."""
    notified = []
    nobody: Any = None
    writer = ObjectWriter(
        nobody,
        TEMPLATE_STATUS,
        ObjectSelection(),
        overlay_status,
        nobody,
        listener=notified.append,
    )
    writer.synced()
    assert [list(changes) for changes in notified] == [[]]


def test_what_did_not_change_is_not_compared_again():
    pod = Pod("p", "ns", "u")
    before = by_name(*(status_of(pod, name) for name in ("kept", "changed", "dropped")))
    after = by_name(status_of(pod, "changed"), status_of(pod, "new"))
    after["p-kept"] = before["p-kept"]
    assert changed_names(before, after) == {"p-changed", "p-dropped", "p-new"}
    assert changed_names(after, after) == set()


@pytest.fixture
def namespace(cluster):
    """The name of one that is gone after the test; its Pods take their statuses along."""
    name = f"status-writer-{uuid.uuid4().hex[:8]}"
    yield name
    cluster.api.request("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
    cluster.api.request("DELETE", f"/api/v1/namespaces/{name}")


async def until(condition):
    """Wait for something that the API server or the writer will make true."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110  # the API server has no event for this
            await asyncio.sleep(0.02)


async def make_pod(client, namespace, name) -> Pod:
    """A Pod object in a namespace of its own, with the CRDs installed."""
    for file in CRDS.glob("*.yaml"):
        manifest = yaml.safe_load(file.read_text())
        if manifest["kind"] == "CustomResourceDefinition":
            await client.apply(CRD, manifest)

    async def served():
        try:
            await names_of(client, namespace)
        except ApiError as error:
            # The CRD is there, and its kind in a moment; 429: its storage is being made.
            if error.is_absent or error.status == 429:
                return False
            raise
        return True

    await until(served)
    await client.apply(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    )
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }

    async def created():
        try:
            nonlocal document
            document = await client.create(POD, document, namespace)
        except ApiError as error:
            return error.is_conflict  # its service account comes a moment after the namespace
        return True

    await until(created)
    return Pod(name, namespace, document["metadata"]["uid"], ("webhook",))


def run_with_writer(cluster, namespace, tmp_log, work):
    """Run a writer beside ``work(client, pod, writer)``."""

    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            pod = await make_pod(client, namespace, "waddle-0")
            log = open_log(str(tmp_log)).logger("status")
            writer = ObjectWriter(client, TEMPLATE_STATUS, own_statuses(pod), overlay_status, log)
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(writer.run())
                await work(client, pod, writer)
                running.cancel()

    event_loop.run(run())


async def names_of(client, namespace):
    found = await client.request("GET", TEMPLATE_STATUS.collection(namespace))
    return {item["metadata"]["name"] for item in found["items"]}


def test_statuses_follow_what_is_wanted_and_then_rest(cluster, namespace, tmp_path):
    """Create, change, prune; put right what another changed; then no request at all."""

    async def work(client, pod, writer):
        first, second = status_of(pod, "a"), status_of(pod, "b")
        writer.want(by_name(first, second), prune=False)

        async def both():
            return await names_of(client, namespace) == {"waddle--0-a", "waddle--0-b"}

        await until(both)
        read = await client.get(TEMPLATE_STATUS, "waddle--0-a", namespace)
        assert read["status"] == first["status"], "a field is not declared in the CRD"
        assert read["metadata"]["ownerReferences"] == first["metadata"]["ownerReferences"]

        newer = status_of(pod, "a", generation=4)
        writer.want(by_name(newer), prune=True)

        async def one():
            return await names_of(client, namespace) == {"waddle--0-a"}

        await until(one)
        await client.merge(
            TEMPLATE_STATUS, "waddle--0-a", namespace, {"status": {"observedGeneration": 1}}
        )

        async def mended():
            read = await client.get(TEMPLATE_STATUS, "waddle--0-a", namespace)
            return read["status"] == newer["status"]

        await until(mended)
        writes = writer.writes
        writer.want(by_name(newer), prune=True)
        writer.want(by_name(newer), prune=True)
        writer.synced()
        # All is compared when one more is wanted, and that one alone is written.
        writer.want(by_name(newer, second), prune=True)
        await until(both)

        async def counted():
            return writer.writes > writes  # the watch may report the object before the answer

        await until(counted)
        assert writer.writes == writes + 1

    run_with_writer(cluster, namespace, tmp_path / "log", work)


def test_a_deleted_pod_takes_its_statuses_along(cluster, namespace):
    """The garbage collector follows the owner reference."""

    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            pod = await make_pod(client, namespace, "waddle-1")
            await client.create(TEMPLATE_STATUS, status_of(pod, "a"), namespace)
            body = {"gracePeriodSeconds": 0}
            await client.request("DELETE", POD.path("waddle-1", namespace), body=body)

            async def gone():
                return not await names_of(client, namespace)

            await until(gone)

    event_loop.run(run())


CONFIG_MAP = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)


@pytest.mark.parametrize(
    ("grace_seconds", "written"),
    [(3600.0, [""]), (0.05, ["", "/made"])],
    ids=["within its grace", "after it"],
)
def test_what_nobody_wants_is_deleted_once_it_has_not_been_wanted_for_a_while(
    tmp_path, grace_seconds, written
):
    """Another replica may have made it for a change that this one has not seen yet."""
    ended = {"annotations": {"k8s.io/initial-events-end": "true"}}
    there = [event("ADDED", "made", 1), event("BOOKMARK", "", 5, **ended)]

    async def run():
        async with (
            # Requests after the watch are recorded, and wait for an answer.
            scripted(tmp_path, (200, there, "hang")) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            writer = ObjectWriter(
                client,
                CONFIG_MAP,
                ObjectSelection(namespace="default"),
                lambda desired, current: None,
                open_log(str(tmp_path / "log")).logger("generation"),
                grace_seconds=grace_seconds,
            )
            # Compared in this order: when the second is created, the first has been looked at.
            writer.want({"new": obj("new", 2)}, prune=True)

            async def all_written():
                return len(server.requests) == 1 + len(written)

            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(writer.run())
                await until(all_written)
                running.cancel()
            return [path for path, _ in server.requests]

    collection = "/api/v1/namespaces/default/configmaps"
    assert event_loop.run(run())[1:] == [f"{collection}{one}" for one in written]
