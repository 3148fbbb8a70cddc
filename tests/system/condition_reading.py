"""Readers of a policy's conditions and Events."""

from typing import Any

from tests.system.replicas import Plane

EVENTS = "/api/v1/namespaces/default/events"


def conditions(plane: Plane, path: str) -> dict[str, dict[str, Any]]:
    """The conditions of an object by type."""
    status = plane.api.request("GET", path).get("status") or {}
    return {item["type"]: item for item in status.get("conditions") or ()}


def holds(plane: Plane, path: str, *types: str) -> bool:
    """Whether exactly these conditions hold, of the object's present generation."""
    document = plane.api.request("GET", path)
    found = (document.get("status") or {}).get("conditions") or ()
    return {item["type"] for item in found if item["status"] == "True"} == set(types) and all(
        item["observedGeneration"] == document["metadata"]["generation"] for item in found
    )


def says(plane: Plane, path: str, condition: str, words: str) -> bool:
    """Whether a condition's message begins with these words.

    It is true or false as soon as one replica has spoken, so that who wants to hear all waits for
    their number.
    """
    return conditions(plane, path).get(condition, {}).get("message", "").startswith(words)


def events(plane: Plane, uid: str) -> dict[str, dict[str, Any]]:
    """The Events about an object by reason; there must be one of each."""
    items = plane.api.request("GET", f"{EVENTS}?fieldSelector=involvedObject.uid={uid}")["items"]
    found = {item["reason"]: item for item in items}
    assert len(found) == len(items)
    return found
