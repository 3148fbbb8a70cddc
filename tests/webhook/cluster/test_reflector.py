"""The reflector at a real API server: it reports each change once and in order."""

import asyncio

import pytest

from tests.cluster import ApiError, Cluster
from tests.patience import PATIENCE_SECONDS
from tests.policies import definition
from tests.webhook.cluster.recording import Recorder, running
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.reflector import ObjectSelection, Reflector, Settings

CONFIG_MAP = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
WIDGET = Resource(GroupVersionKind("tests.waddle.dev", "v1", "Widget"), "widgets", namespaced=False)
QUICK = Settings(backoff_initial_seconds=0.05, backoff_max_seconds=0.5, missing_seconds=0.3)
PAGED = Settings(
    backoff_initial_seconds=0.05, backoff_max_seconds=0.5, watch_list=False, page_objects=3
)


@pytest.fixture
def namespace(cluster):
    """Makes namespaces of the test's own, where ConfigMaps are; they end with it."""
    paths = []

    def make(name):
        paths.append(f"/api/v1/namespaces/{name}")
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        cluster.api.apply(paths[-1], body)
        return f"{paths[-1]}/configmaps"

    yield make
    for path in paths:
        cluster.api.request("DELETE", path)


def put(cluster, path, name, **data):
    """Write a ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    cluster.api.apply(f"{path}/{name}", body)


def drop(cluster, path, name):
    """Delete it."""
    cluster.api.request("DELETE", f"{path}/{name}")


def widgets(**labels):
    """The definition of the Widget kind."""
    return definition("Widget", "widgets", "tests.waddle.dev", labels=labels)


DEFINITION_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.tests.waddle.dev"


async def put_widget(cluster, name):
    """Write a Widget, waiting until the kind is served."""
    body = {"apiVersion": "tests.waddle.dev/v1", "kind": "Widget", "metadata": {"name": name}}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await asyncio.to_thread(
                    cluster.api.apply, f"/apis/tests.waddle.dev/v1/widgets/{name}", body
                )
            except ApiError as error:
                if error.status not in (404, 405, 429):
                    raise
                await asyncio.sleep(0.2)


async def absence(reflector):
    """Wait until the reflector has found its kind missing, which it tells nobody by itself."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not reflector.statistics().absent:  # noqa: ASYNC110  # counters have no event
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("settings", [QUICK, PAGED], ids=["stream", "pages"])
def test_what_exists_comes_first_then_what_happens_in_order(cluster, namespace, settings):
    name = f"order-{'pages' if settings is PAGED else 'stream'}"
    path = namespace(name)
    for index in range(10):
        put(cluster, path, f"old-{index}")

    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            seen = Recorder()
            reflector = Reflector(
                client, CONFIG_MAP, seen, selection=ObjectSelection(name), settings=settings
            )
            async with running(reflector):
                await reflector.wait_synced()
                assert sum(kind == "set" for kind, _ in seen.changes) >= 10
                before = len(seen.changes)
                put(cluster, path, "new", a="1")
                put(cluster, path, "new", a="2")
                drop(cluster, path, "old-3")
                drop(cluster, path, "new")
                await seen.until(lambda s: s.changes[-1] == ("delete", "new"))
                assert seen.changes[before:] == [
                    ("set", "new"),
                    ("set", "new"),
                    ("delete", "old-3"),
                    ("delete", "new"),
                ]
                (listed,) = [reflector.store.get(name, "old-4")]
                assert (listed["kind"], listed["apiVersion"]) == ("ConfigMap", "v1")
                assert "managedFields" not in listed["metadata"]
                found = reflector.statistics()
                assert (found.lists, found.watches, found.gone, found.errors) == (1, 1, 0, 0)

    asyncio.run(run())


def test_selected_objects_alone_are_seen_and_leave_when_they_change(cluster, namespace):
    path = namespace("selected")

    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            seen = Recorder()
            selection = ObjectSelection("selected", labels="team=a")
            reflector = Reflector(client, CONFIG_MAP, seen, selection=selection, settings=QUICK)
            async with running(reflector):
                await reflector.wait_synced()
                body = {"apiVersion": "v1", "kind": "ConfigMap"}
                for team in ("b", "a", "b"):
                    metadata = {"name": "x", "labels": {"team": team}}
                    cluster.api.apply(f"{path}/x", body | {"metadata": metadata})
                await seen.until(lambda s: s.changes[-1] == ("delete", "x"))
                assert seen.changes == [("synced", ""), ("set", "x"), ("delete", "x")]

    asyncio.run(run())


def test_a_kind_may_be_missing_come_go_and_come_back(cluster):
    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            seen = Recorder()
            reflector = Reflector(client, WIDGET, seen, settings=QUICK)
            async with running(reflector):
                await absence(reflector)
                assert ("synced", "") not in seen.changes
                for round_ in ("first", "second"):
                    await asyncio.to_thread(cluster.api.apply, DEFINITION_PATH, widgets())
                    await put_widget(cluster, round_)
                    await seen.until(lambda s, name=round_: name in s.objects)
                    assert not reflector.statistics().absent
                    await asyncio.to_thread(cluster.api.request, "DELETE", DEFINITION_PATH)
                    await seen.until(lambda s: not s.objects)
                    await absence(reflector)

    asyncio.run(run())


@pytest.mark.slow
def test_a_restarted_server_makes_a_new_list_that_finds_what_was_missed(program, tmp_path):
    """Away while objects change and the server restarts: its memory of events is gone, hence 410."""
    cluster = Cluster.start(program("testcluster"), tmp_path / "state", "-controllers=false")
    try:
        path = "/api/v1/namespaces/default/configmaps"
        for name in ("kept", "changed", "deleted"):
            put(cluster, path, name)

        async def run():
            async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
                seen = Recorder()
                reflector = Reflector(
                    client,
                    CONFIG_MAP,
                    seen,
                    selection=ObjectSelection("default", fields="metadata.name!=kube-root-ca.crt"),
                    settings=QUICK,
                )
                async with running(reflector):
                    await reflector.wait_synced()
                assert seen.objects.keys() >= {"kept", "changed", "deleted"}
                await asyncio.to_thread(put, cluster, path, "changed", a="2")
                await asyncio.to_thread(drop, cluster, path, "deleted")
                await asyncio.to_thread(put, cluster, path, "new")
                await asyncio.to_thread(cluster.kill)
                await asyncio.to_thread(cluster.run)
                async with running(reflector):
                    await seen.until(
                        lambda s: (
                            "deleted" not in s.objects
                            and "new" in s.objects
                            and s.objects["changed"].get("data") == {"a": "2"}
                        )
                    )
                assert seen.changes.count(("set", "kept")) == 1
                assert seen.changes.count(("delete", "deleted")) == 1
                found = reflector.statistics()
                assert found.gone >= 1
                assert found.lists == 2

        asyncio.run(run())
    finally:
        cluster.stop()
