"""Registrars at a real API server."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import PATIENCE_SECONDS
from tests.policies import definition
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError as Unavailable
from webhook.cluster.errors import ApiUnreachable
from webhook.cluster.reflector import Settings
from webhook.watch.manager import Manager

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
GADGET = GroupVersionKind("watch.waddle.dev", "v1", "Gadget")
QUICK = Settings(backoff_initial_seconds=0.05, backoff_max_seconds=0.5, missing_seconds=0.3)


@asynccontextmanager
async def managed(cluster):
    """A manager that runs; ConfigMaps end with it."""
    async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
        manager = Manager(client, Discovery(client), settings=QUICK)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                task = tasks.create_task(manager.run())
                yield manager
                task.cancel()
        finally:
            collection = "/api/v1/namespaces/default/configmaps"
            await asyncio.to_thread(cluster.api.request, "DELETE", collection)


async def put(cluster, name, **data):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    await asyncio.to_thread(cluster.api.apply, path, body)


async def drop(cluster, name):
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    await asyncio.to_thread(cluster.api.request, "DELETE", path)


async def until(registrar, kind, name=""):
    """Take events until this one; all that were taken."""
    taken = []
    while True:
        event = await registrar.next()
        taken.append(event)
        if event.kind == kind and (not name or (event.key and event.key.name == name)):
            return taken


def late_of(taken):
    """The names in events before all was told; the cluster's other objects come and go."""
    return sorted(event.key.name for event in taken[:-1] if event.key.name.startswith("late"))


def test_a_registrar_that_joins_late_is_informed_what_is_there_without_a_second_watch(cluster):
    async def run():
        for name in ("late", "late-too"):
            await put(cluster, name)
        async with managed(cluster) as manager:
            first, second = manager.registrar("first"), manager.registrar("second")
            first.add_watch(CONFIG_MAP)
            names = late_of(await until(first, "synced"))
            assert names == ["late", "late-too"]
            second.add_watch(CONFIG_MAP)
            second.add_watch(CONFIG_MAP)
            assert late_of(await until(second, "synced")) == names
            await drop(cluster, "late-too")
            await drop(cluster, "late")
            for registrar in (first, second):
                await until(registrar, "delete", "late")
            assert manager.statistics()[CONFIG_MAP].watches == 1

    asyncio.run(run())


def test_a_registrar_that_never_listens_delays_nobody_and_costs_little(cluster):
    async def run():
        async with managed(cluster) as manager:
            quick, slow = manager.registrar("quick"), manager.registrar("slow")
            for registrar in (quick, slow):
                registrar.add_watch(CONFIG_MAP)
            await until(quick, "synced")
            for version in range(20):
                await put(cluster, "busy", version=str(version))
            taken = await until(quick, "set", "busy")
            while taken[-1].object["data"]["version"] != "19":
                taken = await until(quick, "set", "busy")
            waiting = [slot for slot in slow.queue._waiting if slot[1] and slot[1].name == "busy"]
            assert len(waiting) == 1
            found = (await until(slow, "set", "busy"))[-1]
            assert found.object["data"]["version"] == "19"

    asyncio.run(run())


def test_kinds_are_watched_as_long_as_anybody_wants_them(cluster):
    async def run():
        async with managed(cluster) as manager:
            first, second = manager.registrar("first"), manager.registrar("second")
            first.replace_watch([CONFIG_MAP, SECRET])
            second.add_watch(SECRET)
            for registrar, kinds in ((first, 2), (second, 1)):
                for _ in range(kinds):
                    await until(registrar, "synced")
            assert manager.statistics().keys() == {CONFIG_MAP, SECRET}
            first.replace_watch([CONFIG_MAP])
            assert manager.statistics().keys() == {CONFIG_MAP, SECRET}
            second.remove_watch(SECRET)
            assert manager.statistics().keys() == {CONFIG_MAP}
            assert manager.get(SECRET, "default", "x") is None
            second.add_watch(SECRET)
            await until(second, "synced")
            assert manager.statistics().keys() == {CONFIG_MAP, SECRET}

    asyncio.run(run())


def test_intents_may_come_before_the_manager_runs(cluster):
    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            manager = Manager(client, Discovery(client), settings=QUICK)
            registrar = manager.registrar("early")
            registrar.add_watch(CONFIG_MAP)
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                task = tasks.create_task(manager.run())
                await until(registrar, "synced")
                task.cancel()

    asyncio.run(run())


def test_a_kind_may_be_wanted_before_it_is_defined(cluster):
    gadgets = definition("Gadget", "gadgets", "watch.waddle.dev")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.watch.waddle.dev"

    async def run():
        async with managed(cluster) as manager:
            registrar = manager.registrar("early")
            registrar.add_watch(GADGET)
            while not manager.statistics()[GADGET].last_error:  # noqa: ASYNC110  # a counter
                await asyncio.sleep(0.02)
            await asyncio.to_thread(cluster.api.apply, path, gadgets)
            manager.wake(GADGET)
            await until(registrar, "synced")
            gadget: dict[str, Any] = {"apiVersion": "watch.waddle.dev/v1", "kind": "Gadget"}
            gadget["metadata"] = {"name": "g"}
            where = "/apis/watch.waddle.dev/v1/gadgets/g"
            await asyncio.to_thread(cluster.api.apply, where, gadget)
            await until(registrar, "set", "g")
            assert manager.get(GADGET, "", "g")["metadata"]["name"] == "g"
            await asyncio.to_thread(cluster.api.request, "DELETE", path)
            await until(registrar, "delete", "g")
        with pytest.raises(ApiError):
            cluster.api.request("GET", where)

    asyncio.run(run())


def test_a_restart_lists_anew_and_tells_only_what_differs(cluster):
    """This happens to a kind whose definition was made anew under the same name."""

    async def run():
        await put(cluster, "restarted")
        async with managed(cluster) as manager:
            registrar = manager.registrar("one")
            registrar.add_watch(CONFIG_MAP)
            await until(registrar, "set", "restarted")
            manager.restart(CONFIG_MAP)
            assert manager.get(CONFIG_MAP, "default", "restarted") is not None
            await put(cluster, "restarted-after")
            taken = await until(registrar, "set", "restarted-after")
            assert not [event for event in taken if event.key and event.key.name == "restarted"]

    event_loop.run(run())


class UnsureDiscovery(Discovery):
    """Does not know a kind, for this reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        raise self.error

    def forget(self, gvk: GroupVersionKind) -> None:
        """Does nothing."""


def test_a_kind_that_the_api_server_could_not_be_asked_about_is_not_absent():
    """A caller that takes it for absent goes on without an existing Config."""

    async def run():
        discovery = UnsureDiscovery(Unavailable(503, "busy"))
        manager = Manager(None, discovery)  # type: ignore[arg-type]  # nothing is asked of it
        manager.registrar("one").add_watch(GADGET)

        async def logged(error: str) -> bool:
            while True:
                one = manager.statistics()[GADGET]
                if error in one.last_error:
                    return one.absent
                await asyncio.sleep(0.001)

        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            task = tasks.create_task(manager.run())
            assert not manager.statistics()[GADGET].absent
            assert not await logged("busy")
            discovery.error = UnknownKind("served by nobody")
            manager.wake(GADGET)
            assert await logged("served by nobody")
            discovery.error = ApiUnreachable("no answer")
            manager.wake(GADGET)
            assert not await logged("no answer")
            task.cancel()

    event_loop.run(run())
