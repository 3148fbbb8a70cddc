"""Users of a cluster: they write policies, Namespaces, and the data that policies may read."""

import asyncio
import random

from tests.simulation.api_server import NAMESPACES, Json, Refusal, Served, Storage
from tests.simulation.control_plane import CONFIG_MAPS, CRDS, TEMPLATES
from tests.simulation.policies import BROKEN, KINDS, constraint, template

NAMESPACE = "waddle"
BRIEF = "brief"
"""A Namespace that comes and goes, with what is in it."""

CONFIG: Json = {
    "metadata": {"name": "config"},
    "spec": {"sync": {"syncOnly": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}},
}


class Users:
    """Users of a cluster, who ignore refusals."""

    def __init__(self, chance: random.Random, storage: Storage) -> None:
        self.chance = chance
        self.storage = storage

    def begin(self) -> None:
        """Creates the objects that exist before the replicas."""
        chance, storage = self.chance, self.storage
        for kind in KINDS[: chance.choice([1, 1, 1, 2])]:
            storage.create(TEMPLATES, "", self.template(kind, chance.randrange(BROKEN)))
        if chance.random() < 0.25:
            storage.create(storage.kinds["config.gatekeeper.sh", "configs"], NAMESPACE, CONFIG)
            self.change_namespace()

    def template(self, kind: str, variant: int) -> Json:
        """A template as they write them."""
        return template(kind, variant)

    def write(self) -> None:
        """A change of policy or, now and then, of data."""
        try:
            if self.chance.random() < 0.1:
                self._write_data()
            else:
                self._write_policy()
        except Refusal:
            return

    def _write_policy(self) -> None:
        chance, storage = self.chance, self.storage
        kind = chance.choice(KINDS)
        served = storage.kinds.get(("constraints.gatekeeper.sh", kind.lower()))
        name, variant = f"c{chance.randrange(2)}", chance.randrange(BROKEN)
        if chance.random() < 0.15:
            variant = BROKEN
        match chance.choice(["template", "constraint", "constraint", "constraint", "delete"]):
            case "template":
                self._apply(TEMPLATES, "", self.template(kind, variant))
            case "constraint" if served is not None:
                self._apply(served, "", constraint(kind, name, variant))
            case "delete" if chance.random() < 0.3:
                storage.delete(TEMPLATES, "", kind.lower())
            case "delete" if served is not None:
                storage.delete(served, "", name)

    def _apply(self, served: Served, namespace: str, body: Json) -> None:
        name = body["metadata"]["name"]
        before = self.storage.items(served).get((namespace, name))
        if before is None:
            self.storage.create(served, namespace, body)
        elif before["spec"] != body["spec"]:  # writes that change nothing are counted: not ours
            after = before | {"spec": body["spec"]}
            self.storage.replace(served, namespace, name, after, "")

    def _write_data(self) -> None:
        name = f"d{self.chance.randrange(3)}"
        namespace = self.chance.choice([NAMESPACE, BRIEF])
        if self.chance.random() < 0.3:
            self.storage.delete(CONFIG_MAPS, namespace, name)
        else:
            spec = {"word": self.chance.randrange(100)}
            self._apply(CONFIG_MAPS, namespace, {"metadata": {"name": name}, "spec": spec})

    def change_namespace(self) -> None:
        """The one that comes and goes does so, with what is in it."""
        storage = self.storage
        if ("", BRIEF) in storage.items(NAMESPACES):
            storage.delete(NAMESPACES, "", BRIEF)
            return
        storage.create(NAMESPACES, "", {"metadata": {"name": BRIEF}})
        for name in ("d0", "d1", "d2"):
            storage.create(CONFIG_MAPS, BRIEF, {"metadata": {"name": name}, "spec": {"word": -1}})

    async def redefine(self) -> None:
        """Delete a kind's CRD, which replicas make anew, and then make a constraint."""
        storage, kind = self.storage, self.chance.choice(KINDS)
        place = "constraints.gatekeeper.sh", kind.lower()
        if place not in storage.kinds:
            return
        storage.delete(CRDS, "", ".".join(reversed(place)))
        for _ in range(100):
            await asyncio.sleep(0.1)
            if served := storage.kinds.get(place):
                self._apply(served, "", constraint(kind, "c0", 0))
                return
