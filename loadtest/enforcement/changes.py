"""The changes, each timed from the moment it is sent to the last replica that follows."""

import itertools
import time
from collections.abc import Callable
from typing import Any

from loadtest.enforcement.systems import KIND, System
from tests.cluster import ApiError
from tests.system.replicas import CONSTRAINTS, CRD_PATH, TEMPLATES, constraint, template

MERGE = "application/merge-patch+json"
SERVED_SECONDS_MAX = 60.0
RETRY_SECONDS = 0.002

CHANGES = ("create", "update", "delete")

_numbers = itertools.count()


Times = dict[str, list[float]]
"""Milliseconds of each part of a round, on each replica in the order in which they followed."""


def constraint_round(system: System, settle: Callable[[], None]) -> Times:
    """From each change of a constraint until it is enforced.

    ``settle`` waits between two changes for what follows from the first.
    """
    number = next(_numbers)
    first, second = f"first-{number}", f"second-{number}"
    path = f"{CONSTRAINTS}/{KIND.lower()}"
    name = f"{path}/changing-{number}"
    body = constraint(f"changing-{number}", first, KIND)
    other = {"spec": {"parameters": {"word": second}}}
    found: Times = {}
    began = time.monotonic()
    system.connection.request("POST", path, body)
    found["create"] = _since(began, system.probe.wait(first, denied=True))
    settle()
    began = time.monotonic()
    system.connection.request("PATCH", name, other, MERGE)
    found["update"] = _since(began, system.probe.wait(second, denied=True))
    settle()
    began = time.monotonic()
    system.connection.request("DELETE", name)
    found["delete"] = _since(began, system.probe.wait(second, denied=False))
    settle()
    return found


def _since(began: float, followed: list[float]) -> list[float]:
    return [(at - began) * 1000 for at in followed]


def template_round(system: System, settle: Callable[[], None]) -> Times:
    """From a new template until its constraint is enforced, and how much of that is the server's.

    The constraint is tried until its kind is served. ``floor`` is how long that takes for a
    kind whose CRD is made by hand, with nobody else involved.
    """
    number = next(_numbers)
    floor = _crd_round(system, number)
    kind, word = f"Fresh{number}", f"fresh-{number}"
    began = time.monotonic()
    system.connection.request("POST", TEMPLATES, template(kind))
    _create(system, f"{CONSTRAINTS}/{kind.lower()}", constraint("fresh", word, kind))
    enforced = _since(began, system.probe.wait(word, denied=True))
    system.connection.request("DELETE", f"{TEMPLATES}/{kind.lower()}")
    system.probe.wait(word, denied=False)
    settle()
    return {"enforced": enforced, "floor": [floor * 1000]}


def _crd_round(system: System, number: int) -> float:
    """Seconds from a new CRD until an object of its kind is created."""
    group, plural = "enforcement.waddle.dev", f"plain{number}"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": plural.capitalize(), "plural": plural, "singular": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    body = {
        "apiVersion": f"{group}/v1",
        "kind": plural.capitalize(),
        "metadata": {"name": "one"},
    }
    began = time.monotonic()
    system.connection.request("POST", CRD_PATH, definition)
    _create(system, f"/apis/{group}/v1/{plural}", body)
    seconds = time.monotonic() - began
    system.connection.request("DELETE", f"{CRD_PATH}/{plural}.{group}")
    return seconds


def _create(system: System, path: str, body: Any) -> None:
    """Create an object as soon as its kind is served and its storage made."""
    end = time.monotonic() + SERVED_SECONDS_MAX
    while True:
        try:
            system.connection.request("POST", path, body)
        except ApiError as error:
            if error.status not in (404, 429) or time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return
