"""Controllers beside the API server: they serve CRDs, and collect objects without an owner."""

import functools
from collections.abc import Collection
from pathlib import Path

import yaml

from tests.simulation.api_server import (
    CRD_KIND,
    NAMESPACES,
    Happened,
    Json,
    Served,
    Storage,
    is_deleted,
)
from tests.simulation.loop import Loop

PODS = Served("", "v1", "pods", "Pod", namespaced=True)
CONFIG_MAPS = Served("", "v1", "configmaps", "ConfigMap", namespaced=True)
SECRETS = Served("", "v1", "secrets", "Secret", namespaced=True)
EVENTS = Served("", "v1", "events", "Event", namespaced=True)
CRDS = Served("apiextensions.k8s.io", "v1", "customresourcedefinitions", CRD_KIND)
TEMPLATES = Served("templates.gatekeeper.sh", "v1", "constrainttemplates", "ConstraintTemplate")
STATUS_GROUP = "status.gatekeeper.sh"


@functools.cache
def manifests() -> tuple[Json, ...]:
    """The CRDs that an installation brings."""
    folder = Path(__file__).parents[2] / "manifests" / "crds"
    found: list[Json] = []
    for path in sorted(folder.glob("*.yaml")):
        found += [
            item
            for item in yaml.load_all(path.read_text(), yaml.CSafeLoader)
            if item and item.get("kind") == CRD_KIND
        ]
    return tuple(found)


class ControlPlane:
    """Controllers over a storage, each a moment late.

    ``left_out`` are groups whose kinds an installation did not bring.
    """

    def __init__(self, loop: Loop, storage: Storage, *, left_out: Collection[str] = ()) -> None:
        self.loop = loop
        self.storage = storage
        self.owning = {"Pod", "ConstraintTemplate"}
        """The kinds whose objects own others that go with them."""
        for served in (PODS, NAMESPACES, CONFIG_MAPS, SECRETS, EVENTS, CRDS, TEMPLATES):
            self.storage.serve(served)
        self.storage.listeners.append(self._control)
        self.storage.create(NAMESPACES, "", {"metadata": {"name": "default"}})
        for crd in manifests():
            spec = crd["spec"]
            if spec["group"] in left_out:
                continue
            made = self.storage.create(CRDS, "", crd)
            made["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
            versions = [item["name"] for item in spec["versions"] if item.get("storage")]
            self.storage.serve(
                Served(
                    spec["group"],
                    versions[0],
                    spec["names"]["plural"],
                    spec["names"]["kind"],
                    spec["scope"] == "Namespaced",
                )
            )
        self.storage.serve(TEMPLATES)

    def _control(self, change: Happened) -> None:
        """Reacts to a change as controllers of the control plane do, a moment later."""
        loop = self.loop
        item = change.after or change.before
        assert item is not None
        kind, name = change.served.kind, item["metadata"]["name"]
        if self.loop._follow is not None:
            verb = "deleted" if change.after is None else "changed" if change.before else "made"
            loop.notify("storage", f"{change.version}: {kind} {name} {verb}")
        later = loop.random.random() * 0.1
        context = loop.director.context
        if change.before is None:
            for owner in item["metadata"].get("ownerReferences") or []:
                if not self._exists(owner["uid"]):
                    loop.call_later(1.0, self._collect, owner["uid"], context=context)
        if kind == CRD_KIND and change.before is None and "status" not in item:
            loop.call_later(later, self._establish, name, context=context)
        elif kind == CRD_KIND and change.after is None:
            names = item["spec"]["names"]
            served = self.storage.kinds.get((item["spec"]["group"], names["plural"]))
            if served is not None:
                self.storage.drop_kind(served)
        elif kind == NAMESPACES.kind and change.after is not None and is_deleted(change.after):
            loop.call_later(later, self._empty, name, context=context)
        elif change.after is None and kind in self.owning:
            loop.call_later(later, self._collect, item["metadata"]["uid"], context=context)

    def _establish(self, name: str) -> None:
        crd = self.storage.items(CRDS).get(("", name))
        if crd is None or "status" in crd:
            return
        since = "2026-01-01T00:00:00Z"
        status = {
            "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": since}],
            "acceptedNames": crd["spec"]["names"],
        }
        self.storage.replace(CRDS, "", name, crd | {"status": status}, "status")
        spec = crd["spec"]
        served = Served(
            spec["group"],
            next(item["name"] for item in spec["versions"] if item.get("storage")),
            spec["names"]["plural"],
            spec["names"]["kind"],
        )
        # Its storage is made only a moment after it is announced.
        self.loop.call_later(
            self.loop.random.random() * 0.1,
            self._serve,
            name,
            served,
            context=self.loop.director.context,
        )

    def _serve(self, crd: str, served: Served) -> None:
        if ("", crd) in self.storage.items(CRDS):
            self.storage.serve(served)

    def _exists(self, uid: str) -> bool:
        owners = (PODS, TEMPLATES, *self.storage.kinds.values())
        return any(
            item["metadata"]["uid"] == uid
            for served in owners
            for item in self.storage.items(served).values()
        )

    def resume(self) -> None:
        """Begin anew, after the storage has become another: finish what stands there half-way."""
        loop, context, storage = self.loop, self.loop.director.context, self.storage
        for (_, name), item in storage.items(NAMESPACES).items():
            if is_deleted(item):
                loop.call_later(0.05, self._empty, name, context=context)
        for (_, name), item in storage.items(CRDS).items():
            names = item["spec"]["names"]
            if "status" not in item:
                loop.call_later(0.05, self._establish, name, context=context)
            elif (item["spec"]["group"], names["plural"]) not in storage.kinds:
                after = {key: value for key, value in item.items() if key != "status"}
                storage.items(CRDS)["", name] = after
                loop.call_later(0.05, self._establish, name, context=context)
        owners = {
            owner["uid"]
            for served in storage.kinds.values()
            for item in storage.items(served).values()
            for owner in item["metadata"].get("ownerReferences") or []
        }
        for uid in sorted(uid for uid in owners if not self._exists(uid)):
            loop.call_later(1.0, self._collect, uid, context=context)

    def _empty(self, namespace: str) -> None:
        """Deletes the objects of a terminating Namespace one by one, and then the Namespace."""
        spaces = self.storage.items(NAMESPACES)
        if ("", namespace) not in spaces or not is_deleted(spaces["", namespace]):
            return  # it went already, or etcd was restored to when it was not to go
        for served in self.storage.kinds.values():
            for place, name in self.storage.items(served):
                if place == namespace:
                    self.storage.delete(served, namespace, name)
                    later = self.loop.random.random()
                    context = self.loop.director.context
                    self.loop.call_later(later, self._empty, namespace, context=context)
                    return
        self.storage.remove(NAMESPACES, "", namespace)

    def _collect(self, uid: str) -> None:
        """The garbage collector: what the gone one owned goes."""
        for served in list(self.storage.kinds.values()):
            for (namespace, name), item in list(self.storage.items(served).items()):
                owners = item["metadata"].get("ownerReferences") or []
                if any(owner.get("uid") == uid for owner in owners):
                    self.storage.delete(served, namespace, name)
