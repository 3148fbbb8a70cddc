"""Behaviour of an API server that the product relies on, at the simulated and the real one.

:func:`observe` does the same things to either and tells what it saw; :data:`EXPECTED` is both's.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from webhook.api.encoding import decode
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.client import ClusterClient
from webhook.cluster.errors import ApiError
from webhook.cluster.reflector import read_lines

CONFIG_MAPS: Final = Resource(
    GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True
)
NOTHING: Final = Resource(GroupVersionKind("", "v1", "Nothing"), "nothings", namespaced=True)
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

EXPECTED: Final[dict[str, Any]] = {
    "absent": [404, "NotFound"],
    "absent kind": [404, "NotFound"],
    "made twice": [409, "AlreadyExists"],
    "swapped with an old version": [409, "Conflict"],
    "swapped with what it is": "the version stays",
    "deleted with another's uid": [409, "Conflict"],
    "deleted twice": [404, "NotFound"],
    "pages": [["a", "b"], ["c", "d"], ["e"]],
    "pages are of one moment": True,
    "a page shows what was written meanwhile": False,
    "events": [
        ["ADDED", "f", "yes"],
        ["MODIFIED", "f", "yes"],
        ["DELETED", "f", "yes"],
        ["ADDED", "f", "yes"],
        ["DELETED", "f", "yes"],
    ],
    "events have versions that rise": True,
    "events of a watch from a version that is to come": 0,
    "a list of one object is of the newest version": True,
    "initial events": [["ADDED", name] for name in "abcde"] + [["BOOKMARK", "the end"]],
}


async def _refused(answer: Any) -> list[Any]:
    try:
        await answer
    except ApiError as error:
        return [error.status, error.reason]
    return ["not refused"]


def _object(name: str, word: str = "", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"word": word},
    }


async def observe(client: ClusterClient, namespace: str) -> dict[str, Any]:
    """Do all of it in an empty namespace."""
    seen: dict[str, Any] = {}
    seen["absent"] = await _refused(client.get(CONFIG_MAPS, "a", namespace))
    seen["absent kind"] = await _refused(client.get(NOTHING, "a", namespace))
    made = {name: await client.create(CONFIG_MAPS, _object(name), namespace) for name in "abcde"}
    seen["made twice"] = await _refused(client.create(CONFIG_MAPS, _object("a"), namespace))
    first = made["a"]
    second = await client.replace(CONFIG_MAPS, first | {"data": {"word": "x"}})
    seen["swapped with an old version"] = await _refused(
        client.replace(CONFIG_MAPS, first | {"data": {"word": "y"}})
    )
    third = await client.replace(CONFIG_MAPS, second)
    same = third["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    seen["swapped with what it is"] = "the version stays" if same else "another version"
    path = CONFIG_MAPS.path("a", namespace)
    seen["deleted with another's uid"] = await _refused(
        client.request("DELETE", path, body={"preconditions": {"uid": "another"}})
    )
    await _pages(client, namespace, seen)
    await _versions(client, namespace, seen)
    await _events(client, namespace, seen)
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    events = await _watch(client, namespace, {**query, "allowWatchBookmarks": "true"}, 6)
    initial = [
        [kind, item["metadata"]["name"]]
        if kind == "ADDED"
        else [kind, "the end" if INITIAL_EVENTS_END in item["metadata"]["annotations"] else ""]
        for kind, item in events
    ]
    seen["initial events"] = sorted(initial)
    await client.request("DELETE", path)
    seen["deleted twice"] = await _refused(client.request("DELETE", path))
    return seen


async def _pages(client: ClusterClient, namespace: str, seen: dict[str, Any]) -> None:
    query = {"limit": "2"}
    pages, versions = [], set()
    while True:
        page = await client.request("GET", CONFIG_MAPS.collection(namespace), query=query)
        pages.append([item["metadata"]["name"] for item in page["items"]])
        versions.add(page["metadata"]["resourceVersion"])
        if len(pages) == 1:
            await client.create(CONFIG_MAPS, _object("bb"), namespace)
        if not (token := page["metadata"].get("continue")):
            break
        query = {"limit": "2", "continue": token}
    seen["pages"] = pages
    seen["pages are of one moment"] = len(versions) == 1
    seen["a page shows what was written meanwhile"] = any("bb" in page for page in pages)
    await client.delete(CONFIG_MAPS, "bb", namespace)


async def _versions(client: ClusterClient, namespace: str, seen: dict[str, Any]) -> None:
    """Watches from a resource version that the API server has not reached."""
    ahead = {"resourceVersion": str(10**12), "timeoutSeconds": "3", "allowWatchBookmarks": "true"}
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(_watch(client, namespace, ahead, 1))
        await asyncio.sleep(1.0)
        made = await client.create(CONFIG_MAPS, _object("g"), namespace)
    seen["events of a watch from a version that is to come"] = len(listening.result())
    page = await client.request("GET", CONFIG_MAPS.collection(namespace), query={"limit": "1"})
    at_least = int(made["metadata"]["resourceVersion"])
    newest = int(page["metadata"]["resourceVersion"]) >= at_least
    seen["a list of one object is of the newest version"] = newest
    await client.delete(CONFIG_MAPS, "g", namespace)


async def _events(client: ClusterClient, namespace: str, seen: dict[str, Any]) -> None:
    """An object that comes, changes, leaves the selection, comes back, and goes."""
    page = await client.request("GET", CONFIG_MAPS.collection(namespace))
    start = page["metadata"]["resourceVersion"]
    item = await client.create(CONFIG_MAPS, _object("f", seen="yes"), namespace)
    for word, label in (("x", "yes"), ("x", "no"), ("x", "yes")):
        item["data"] = {"word": word}
        item["metadata"]["labels"] = {"seen": label}
        item = await client.replace(CONFIG_MAPS, item)
    await client.delete(CONFIG_MAPS, "f", namespace)
    query = {"resourceVersion": start, "labelSelector": "seen=yes"}
    events = await _watch(client, namespace, query, 5)
    seen["events"] = [
        [kind, item["metadata"]["name"], item["metadata"]["labels"]["seen"]]
        for kind, item in events
    ]
    versions = [int(item["metadata"]["resourceVersion"]) for _, item in events]
    seen["events have versions that rise"] = versions == sorted(set(versions))


async def _watch(
    client: ClusterClient, namespace: str, query: dict[str, str], count: int
) -> list[tuple[str, Any]]:
    events: list[tuple[str, Any]] = []
    path = CONFIG_MAPS.collection(namespace)
    query = {"watch": "true", "timeoutSeconds": "60", **query}
    async with (
        client.stream(path, query, inactivity_seconds=90.0) as content,
        aclosing(read_lines(content)) as lines,
    ):
        async for line in lines:
            event = decode(line)
            events.append((event["type"], event["object"]))
            if len(events) == count:
                break
    return events


async def forgotten(client: ClusterClient, namespace: str, version: str) -> int:
    """The code that a watch from a version is refused with, as a status or as an event; or 0.

    The real API server's is 410 where it is compacted: tests/system/test_etcd_is_compacted.py.
    """
    try:
        events = await _watch(client, namespace, {"resourceVersion": version}, 1)
    except ApiError as error:
        return error.status
    await asyncio.sleep(0)
    return int(events[0][1].get("code", 0)) if events else 0


async def forgotten_page(
    client: ClusterClient, namespace: str, forget: Callable[[], None]
) -> list[Any]:
    """How a list's second page is refused whose moment is forgotten, and what there is behind it.

    That the real API server refuses it with 410, and replicas then list anew, the same test has.
    """
    path = CONFIG_MAPS.collection(namespace)
    page = await client.request("GET", path, query={"limit": "2"})
    forget()
    query = {"limit": "2", "continue": page["metadata"]["continue"]}
    try:
        await client.request("GET", path, query=query)
    except ApiError as error:
        rest = await client.request(
            "GET", path, query={"limit": "9", "continue": error.continue_token}
        )
        names = [item["metadata"]["name"] for item in rest["items"]]
        return [error.status, error.reason, names]
    return []
