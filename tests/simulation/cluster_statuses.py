"""Compares byPod with the objects in force of each replica."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from tests.simulation.api_server import Json, Storage
from tests.simulation.cluster_enforcement import Replica
from tests.simulation.control_plane import STATUS_GROUP, TEMPLATES
from tests.simulation.policies import is_broken

RETURNS_MAX = 3
"""The number of times that an object's byPod may return to an earlier state: a container that
restarts removes its entry and adds it again."""


def fights(storage: Storage) -> str:
    """Returns an object whose byPod was set back repeatedly: two writers disagree."""
    for (kind, _, name), states in storage.ever.items():
        bodies: list[bytes] = []
        for state in states:
            by_pod = (state.get("status") or {}).get("byPod")
            now = orjson.dumps([state["metadata"]["uid"], by_pod])
            if not bodies or bodies[-1] != now:
                bodies.append(now)
        if len(bodies) - len(set(bodies)) > RETURNS_MAX:
            return f"byPod of {kind} {name} went back {len(bodies) - len(set(bodies))} times"
    return ""


def orphans(storage: Storage, pods: Collection[str]) -> list[str]:
    """The status objects that there are of these Pods."""
    return [
        name
        for (group, _), served in storage.kinds.items()
        if group == STATUS_GROUP
        for (_, name), item in storage.items(served).items()
        if item["status"]["id"] in pods
    ]


def lies(items: Iterable[Json], replicas: Collection[Replica], dead: Collection[str]) -> str:
    """Returns a wrong byPod entry of templates and constraints.

    Those that are dead, and their Pods there, may have said something once.
    """
    in_force = {replica.name: _in_force(replica) for replica in replicas}
    for item in items:
        entries = (item.get("status") or {}).get("byPod") or []
        title = f"{item['kind']} {item['metadata']['name']}"
        entries = [entry for entry in entries if entry["id"] not in dead]
        writers = sorted(entry["id"] for entry in entries)
        if writers != sorted(in_force):
            return f"byPod of {title} names {writers}, there are {sorted(in_force)}"
        for entry in entries:
            if why := _lie(item, entry, in_force[entry["id"]]):
                return f"byPod of {title} says of {entry['id']} {why}: {entry}"
    return ""


def _in_force(replica: Replica) -> dict[tuple[str, str], int]:
    """The generations that a replica enforces, of templates and constraints by kind and name."""
    revision = replica.serving.revision
    if revision is None:
        return {}
    found = {
        (TEMPLATES.kind, entry.template.name): _generation(entry.template.document)
        for entry in revision.snapshot.entries
        if entry.template.document
    }
    return found | {
        (item.kind, item.name): _generation(item.document) for item in revision.snapshot.constraints
    }


def _lie(item: Json, entry: Json, in_force: dict[tuple[str, str], int]) -> str:
    """Returns the wrong statement of a byPod entry."""
    key = item["kind"], item["metadata"]["name"]
    active = in_force.get(key, 0)
    if entry.get("observedGeneration") != _generation(item):
        return f"that it has not seen generation {_generation(item)}"
    if entry.get("activeGeneration") != active:
        return f"another generation than {active}, which is in force"
    if key[0] != TEMPLATES.kind and entry.get("enforced") is not (active > 0):
        return f"what is not so, whether it is enforced: {active > 0}"
    is_wrong = is_broken(item["spec"]) or active != _generation(item)
    if bool(entry.get("errors")) is not is_wrong:
        return f"what is not so, whether something is wrong: {is_wrong}"
    return ""


def _generation(document: Mapping[str, Any]) -> int:
    generation: int = document["metadata"]["generation"]
    return generation
