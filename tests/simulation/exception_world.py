"""The world of exceptions: of namespaces and of the cluster, that come, change, end and go.

What holds of templates and constraints holds, too. No replica ever excuses by an exception that never
was, that is broken, or that is gone; at rest each knows every one, and its status says what the clock
and the constraints make of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.policies import exception
from tests.simulation.api_server import Json, Refusal, Served, Storage
from tests.simulation.cluster_enforcement import CONSTRAINTS, Enforcement, Replica
from tests.simulation.cluster_users import BRIEF, NAMESPACE, Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.policies import KINDS, constraint
from webhook.api.timestamp import seconds_of, text_of
from webhook.constraint.excusable import ANNOTATION
from webhook.exceptions.stage import Excusing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.simulation.loop import Loop
    from webhook.exceptions.exception import PolicyException

GROUP = "waddle.dev"
SERVED = {NAMESPACE: "policyexceptions", BRIEF: "policyexceptions", "": "clusterpolicyexceptions"}
"""Plurals of exceptions, by namespace; "" for the cluster."""

FAR_SECONDS = 1e7

KEEP_SECONDS = 1e6
"""The age after which replicas delete ended exceptions, in seconds."""

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def is_due(item: Json) -> bool:
    """Whether an exception was kept for long enough."""
    return seconds_of(item["spec"]["expires"]) + KEEP_SECONDS <= time.time()


class ExceptionStorage(Storage):
    """Notes what replicas delete before its time: users name no version."""

    too_early = ""

    def delete(
        self, served: Served, namespace: str, name: str, uid: str = "", version: str = ""
    ) -> Json:
        """Deletes as the API server does; records a deletion by a replica before the due time."""
        before = self.items(served).get((namespace, name))
        deleted = super().delete(served, namespace, name, uid, version)
        if version and before is not None and served.group == GROUP and not is_due(before):
            self.too_early = f"{served.kind} {namespace}/{name} was deleted before its time"
        return deleted


class ExceptionUsers(Users):
    """Users who mostly write exceptions."""

    written = 0

    def begin(self) -> None:
        """Creates the objects that exist before the replicas."""
        super().begin()
        for _ in range(self.chance.choice([0, 2, 4])):
            self._write_exception()

    def write(self) -> None:
        """A change of one; sometimes of what they except from."""
        if self.chance.random() < 0.3:
            super().write()
            return
        for _ in range(self.chance.choice([1, 1, 3])):
            self._write_exception()

    def _write_exception(self) -> None:
        chance, storage = self.chance, self.storage
        place = chance.choice([NAMESPACE, NAMESPACE, BRIEF, ""])
        served = storage.kinds[GROUP, SERVED[place]]
        name = f"e{chance.randrange(3)}"
        try:
            self._write_constraint()
            if chance.random() < 0.2:
                storage.delete(served, place, name)
            else:
                self._apply(served, place, self._exception(name, place))
        except Refusal:
            return

    def _write_constraint(self) -> None:
        """Most exceptions have something to except from, which allows all of them, or most."""
        chance, kind = self.chance, KINDS[0]
        served = self.storage.kinds.get((CONSTRAINTS, kind.lower()))
        if served is None or chance.random() < 0.3:
            return
        made = constraint(kind, f"c{chance.randrange(2)}", 0)
        if chance.random() < 0.7:
            made["metadata"]["annotations"] = {ANNOTATION: "all"}
        self._apply(served, "", made)

    def _exception(self, name: str, place: str) -> Json:
        """Each another; now and then one that cannot be used."""
        chance, now = self.chance, time.time()
        self.written += 1
        begins, ends = chance.choice(
            [
                (now - 10, now + FAR_SECONDS),
                (now - 10, now + 5),
                (now + 5, now + FAR_SECONDS),
                (now - FAR_SECONDS, now - FAR_SECONDS / 2),
                (now + FAR_SECONDS / 2, now + FAR_SECONDS),
            ]
        )
        reason = "" if chance.random() < 0.2 else f"the {self.written}th"
        made = exception(
            name,
            f"{chance.choice([KINDS[0], *KINDS])}/c{chance.randrange(2)}",
            namespace=place,
            reason=reason,
            notBefore=text_of(begins),
            expires=text_of(ends),
            match={"name": "x"},
        )
        return {"metadata": {"name": name}, "spec": made["spec"]}


class ExceptionEnforcement(Enforcement):
    """Looks at exceptions, too."""

    storage: ExceptionStorage

    def exceptions(self) -> Iterator[tuple[Key, Json]]:
        """Exceptions as the API server holds them."""
        for plural in dict.fromkeys(SERVED.values()):
            served = self.storage.kinds[GROUP, plural]
            for (namespace, name), item in self.storage.items(served).items():
                yield (served.kind, namespace, name), item

    def look(self, replica: Replica) -> None:
        """Checks the exceptions in force: states of the API server, and none that is invalid."""
        super().look(replica)
        if self.storage.too_early:
            self.loop.fail(self.storage.too_early)
        for key, item in known_by(replica).items():
            states = self.storage.ever.get(key, ())
            reason = item.excuse.reason
            if not any(one["spec"]["reason"] == reason for one in states):
                self.loop.fail(f"{replica.name} excuses by {key} as it never was: {reason}")

    def differs(self, replica: Replica) -> str:
        """Returns the difference between a replica's exceptions and the API server's."""
        held = {key: item["spec"]["reason"] for key, item in self.exceptions()}
        expected = {key: reason for key, reason in held.items() if reason}
        ours = {key: item.excuse.reason for key, item in known_by(replica).items()}
        return "" if ours == expected else f"{replica.name} excuses by {ours}, not {expected}"

    def kept_too_long(self) -> str:
        """Returns an exception that ended long ago but still exists."""
        for key, item in self.exceptions():
            if item["spec"]["reason"] and is_due(item):
                return f"{key} ended long ago, and is still there"
        return ""

    def lies(self) -> str:
        """Returns a status that is wrong."""
        constraints = dict(self.held())
        for key, item in self.exceptions():
            expected = state_of(item, constraints)
            shown_state = (item.get("status") or {}).get("state")
            if shown_state != expected:
                return f"the status of {key} says {shown_state}, and it is {expected}"
        return ""


def known_by(replica: Replica) -> dict[Key, PolicyException]:
    """The exceptions that a replica goes by."""
    revision = replica.serving.revision
    stages: tuple[Any, ...] = () if revision is None else revision.policies.stages
    return {
        (item.excuse.kind, item.excuse.namespace, item.excuse.name): item
        for stage in stages
        if type(stage) is Excusing
        for item in stage.exceptions
    }


def state_of(item: Json, constraints: Mapping[tuple[str, str], Json]) -> str:
    """Returns the state of an exception by the clock and the constraints."""
    spec, now = item["spec"], time.time()
    if not spec["reason"]:
        return "Invalid"
    if seconds_of(spec["expires"]) <= now:
        return "Expired"
    (named,) = spec["constraints"]
    held = constraints.get((named["kind"], named["name"]))
    if held is None:
        return "Invalid"
    if item["metadata"].get("namespace") and not held["metadata"].get("annotations"):
        return "Invalid"  # it allows those of the cluster alone
    return "Pending" if seconds_of(spec["notBefore"]) > now else "Active"


class ExceptionWorld(ClusterWorld):
    """A world of exceptions."""

    MUTATION_SHARE = 1.0
    exceptions_keep_seconds = KEEP_SECONDS
    storage_of = ExceptionStorage
    enforcement: ExceptionEnforcement

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users = ExceptionUsers(loop.random, self.storage)

    def _watched(self) -> ExceptionEnforcement:
        return ExceptionEnforcement(self.loop, self.storage)

    def _unsettled(self) -> str:
        if why := super()._unsettled():
            return why
        for replica in self.replicas:
            if why := self.enforcement.differs(replica):
                return why
        if "status" not in self.operations:
            return ""
        return self.enforcement.kept_too_long() or self.enforcement.lies()
