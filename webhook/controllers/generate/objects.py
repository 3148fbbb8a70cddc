"""Compares generated policies and bindings with those in the cluster.

Several writers may compare and write them: every replica with ``--operation=generate``, a
Gatekeeper in the same cluster, and replicas of another release during an upgrade. A replica that
has restored the same object a few times leaves it alone for a while. Two writers that disagree must
not write for ever.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from webhook.api.encoding import is_same_json
from webhook.api.shapes import Json, objects_of
from webhook.constraint import constraint as constraints
from webhook.constraint.template import GROUP as TEMPLATES_GROUP
from webhook.constraint.template import KIND as TEMPLATE_KIND

REWRITES_MAX: Final = 3
"""The most restores within :data:`WHILE_SECONDS` of an object that another writer changed."""

WHILE_SECONDS: Final = 600.0

_OURS: Final = frozenset(
    {
        "auditAnnotations",
        "excludeResourceRules",
        "matchConditions",
        "message",
        "messageExpression",
        "paramKind",
        "paramRef",
        "resourceRules",
        "variables",
    }
)
"""The fields that must equal ours; any other may be a default that a later API server fills in."""


def is_contained(desired: Any, current: Any) -> bool:
    """Returns whether a current value has all that is desired, and no other of our fields."""
    if isinstance(desired, dict) and isinstance(current, dict):
        return all(
            name in current and is_contained(value, current[name])
            for name, value in desired.items()
        ) and not any(name in _OURS and name not in desired for name in current)
    if isinstance(desired, list) and isinstance(current, list):
        return len(desired) == len(current) and all(map(is_contained, desired, current))
    return is_same_json(desired, current)


def owner_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the reference to the object's controller; empty without one."""
    owners = objects_of(document["metadata"].get("ownerReferences"))
    return next((owner for owner in owners if owner.get("controller")), {})


def is_owned_by(document: Mapping[str, Any], uids: Collection[str]) -> bool:
    """Whether an object's controller is a template or constraint with a UID of ``uids``."""
    owner = owner_of(document)
    group = str(owner.get("apiVersion", "")).partition("/")[0]
    known = (group == TEMPLATES_GROUP and owner.get("kind") == TEMPLATE_KIND) or (
        group == constraints.GROUP
    )
    return known and owner.get("uid") in uids


class Rewrites:
    """The overlay of generated objects; gives up an object that another writer keeps changing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, tuple[Json, deque[float]]] = {}

    def __call__(self, desired: Json, current: Json) -> Json | None:
        """Returns the object to write over the current one; None to leave it as it is."""
        if not self.differs(desired, current) or self.foreign(desired, current):
            return None
        name = desired["metadata"]["name"]
        document, times = self._times.get(name, (desired, deque[float]()))
        if not is_same_json(document, desired):
            times = deque()
        now = self._clock()
        while times and now - times[0] > WHILE_SECONDS:
            times.popleft()
        if len(times) >= REWRITES_MAX:
            return None
        times.append(now)
        self._times[name] = desired, times
        return {**current, "spec": desired["spec"]}

    def yields(self, name: str) -> bool:
        """Whether an object is left alone, since other writers keep changing it."""
        _, times = self._times.get(name, (None, ()))
        return len(times) >= REWRITES_MAX

    @staticmethod
    def differs(desired: Json, current: Json) -> bool:
        """Whether an object is not as it should be."""
        return not is_contained(desired["spec"], current.get("spec"))

    @staticmethod
    def foreign(desired: Json, current: Json) -> bool:
        """Whether an object has another owner: no template or constraint of this UID controls it."""
        return bool(owner_of(current).get("uid") != owner_of(desired)["uid"])
