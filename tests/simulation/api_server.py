"""A simulated API server: objects with versions, lists in pages, watches, and every way to fail.

It answers as the real one does where the product looks; ``test_api_server.py`` asks both the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

PAGE_OBJECTS_MAX: Final = 500
NEWEST: Final = "-1"
"""The moment of a list that goes on although the one of its beginning is forgotten."""

WRITTEN_BESIDE: Final = 1000
"""Versions between a backup and what is written next: a cluster has tens of writes a second."""

WITH_STATUS: Final = frozenset({"status.gatekeeper.sh", "policy.waddle.dev"})
"""Groups whose kinds have their status in themselves, without a subresource."""

CRD_KIND: Final = "CustomResourceDefinition"


def _place(item: Json) -> tuple[str, str]:
    """Returns an object's place in lists."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def is_deleted(item: Json) -> bool:
    """Whether an object is to go, and is there yet."""
    return "deletionTimestamp" in item["metadata"]


def _apart(item: Json) -> Json:
    """Returns a copy with its own fields and metadata; deeper parts are never changed."""
    return {**item, "metadata": {**item["metadata"]}}


@dataclass(frozen=True)
class Served:
    """A served kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def group_version(self) -> str:
        """Returns the apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version


NAMESPACES: Final = Served("", "v1", "namespaces", "Namespace")


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: int | None = None,
        *,
        go_on: str = "",
    ) -> None:
        """``go_on`` is the token with which an expired list may go on, at what there is by then."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self.go_on = go_on

    @property
    def body(self) -> Json:
        """The Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.go_on} if self.go_on else {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.status,
        }


@dataclass(frozen=True)
class Selector:
    """The selection of a list or watch."""

    namespace: str = ""
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, namespace: str, query: dict[str, str]) -> "Selector":
        """From a request."""
        name = ""
        for part in filter(None, query.get("fieldSelector", "").split(",")):
            key, _, value = part.partition("=")
            if key == "metadata.name":
                name = value.lstrip("=")
        labels = []
        for part in filter(None, query.get("labelSelector", "").split(",")):
            key, _, value = part.partition("=")
            labels.append((key, value.lstrip("=")))
        return cls(namespace, name, tuple(labels))

    def takes(self, item: Json) -> bool:
        """Whether an object is meant."""
        metadata = item["metadata"]
        if self.namespace and metadata.get("namespace", "") != self.namespace:
            return False
        if self.name and metadata["name"] != self.name:
            return False
        have = metadata.get("labels") or {}
        return all(have.get(key) == value for key, value in self.labels)


@dataclass
class Happened:
    """A change, as watches tell it."""

    version: int
    served: Served
    before: Json | None
    after: Json | None

    def event(self, selector: Selector) -> tuple[str, Json] | None:
        """Returns the event of a watch with this selector; None for none."""
        was = self.before is not None and selector.takes(self.before)
        now = self.after is not None and selector.takes(self.after)
        if now:
            assert self.after is not None
            return ("MODIFIED" if was else "ADDED"), self.after
        if was:
            assert self.before is not None
            gone = _apart(self.before)  # as it was when it was last selected
            gone["metadata"]["resourceVersion"] = str(self.version)
            return "DELETED", gone
        return None


@dataclass(frozen=True)
class Copy:
    """The stored objects at a moment, like a backup of etcd."""

    version: int
    compacted: int
    kinds: dict[tuple[str, str], Served]
    objects: dict[tuple[str, str], dict[tuple[str, str], Json]]


@dataclass
class Storage:
    """The objects of the API server, which outlive its restarts."""

    version: int = 100
    compacted: int = 0
    """Places before this one are forgotten."""
    kinds: dict[tuple[str, str], Served] = field(default_factory=dict)
    """By group and plural."""
    objects: dict[tuple[str, str], dict[tuple[str, str], Json]] = field(default_factory=dict)
    history: list[Happened] = field(default_factory=list)
    writes: int = 0
    idle_writes: int = 0
    """The number of writes that changed nothing."""
    uids: int = 0
    page_objects_max: int = PAGE_OBJECTS_MAX
    """A page may have fewer than were asked for."""
    listeners: list[Any] = field(default_factory=list)
    """Called with each change."""
    droppers: list[Any] = field(default_factory=list)
    """Called with each kind that is served no more."""
    ever: dict[tuple[str, str, str], list[Json]] = field(default_factory=dict)
    """By kind, namespace and name: each state that there was."""

    def serve(self, served: Served) -> None:
        """From now on this kind is served."""
        self.kinds[served.group, served.plural] = served
        self.objects.setdefault((served.group, served.plural), {})

    def find(self, group: str, version: str, plural: str) -> Served:
        """The kind; refuses with 404."""
        served = self.kinds.get((group, plural))
        if served is None or served.version != version:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        return served

    def items(self, served: Served) -> dict[tuple[str, str], Json]:
        """All objects of a kind."""
        return self.objects[served.group, served.plural]

    # --- writes --------------------------------------------------------------------------------

    def create(self, served: Served, namespace: str, body: Json) -> Json:
        """A new object; refuses what exists."""
        name = body["metadata"]["name"]
        if namespace:
            self._check_namespace(namespace, f'{served.plural} "{name}"')
        if (namespace, name) in self.items(served):
            raise Refusal(409, "AlreadyExists", f'{served.plural} "{name}" already exists')
        made = _apart(body)
        made.setdefault("apiVersion", served.group_version)
        made.setdefault("kind", served.kind)
        self.uids += 1
        metadata = made["metadata"]
        metadata["uid"] = f"{self.uids:08d}-0000-4000-8000-{abs(hash(name)) % 10**12:012d}"
        metadata["generation"] = 1
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if namespace:
            metadata["namespace"] = namespace
        return self._put(served, None, made)

    def replace(
        self, served: Served, namespace: str, name: str, body: Json, subresource: str
    ) -> Json:
        """Compare and swap; a change of the status leaves the rest, and the other way round."""
        before = self.get(served, namespace, name)
        version = body["metadata"].get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise Refusal(
                409, "Conflict", f'{served.plural} "{name}": the object has been modified'
            )
        uid = body["metadata"].get("uid")
        if uid and uid != before["metadata"]["uid"]:
            raise Refusal(409, "Conflict", f'{served.plural} "{name}": the UID is another')
        if subresource == "status":
            after = _apart(before)
            after["status"] = body.get("status", {})
        else:
            after = _apart(body)
            kept = before["metadata"]
            for key in ("uid", "generation", "creationTimestamp", "namespace"):
                if key in kept:
                    after["metadata"][key] = kept[key]
            if served.group not in WITH_STATUS and "status" in before:
                after["status"] = before["status"]
            if after.get("spec") != before.get("spec"):
                after["metadata"]["generation"] = kept["generation"] + 1
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        if after == before:
            self.writes += 1
            self.idle_writes += 1
            return before  # nothing differs: the version stays
        return self._put(served, before, after)

    def delete(
        self, served: Served, namespace: str, name: str, uid: str = "", version: str = ""
    ) -> Json:
        """Remove an object; a Namespace goes only when it is empty."""
        before = self.get(served, namespace, name)
        if uid and before["metadata"]["uid"] != uid:
            raise Refusal(409, "Conflict", "the UID in the precondition is another")
        if version and before["metadata"]["resourceVersion"] != version:
            raise Refusal(409, "Conflict", "the version in the precondition is another")
        if served != NAMESPACES:
            return self.remove(served, namespace, name)
        if is_deleted(before):
            return before
        after = _apart(before)
        after["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        after["status"] = {"phase": "Terminating"}
        return self._put(served, before, after)

    def remove(self, served: Served, namespace: str, name: str) -> Json:
        """An object is there no more."""
        before = self.get(served, namespace, name)
        del self.items(served)[namespace, name]
        self._happened(served, before, None)
        return before

    def _check_namespace(self, namespace: str, resource: str) -> None:
        """Refuses objects in a missing or terminating Namespace."""
        spaces = self.objects.get((NAMESPACES.group, NAMESPACES.plural))
        if spaces is None:
            return  # a world that has none
        if ("", namespace) not in spaces:
            raise Refusal(404, "NotFound", f'namespaces "{namespace}" not found')
        if is_deleted(spaces["", namespace]):
            why = f"unable to create new content in namespace {namespace}"
            raise Refusal(
                403, "Forbidden", f"{resource} is forbidden: {why} because it is being terminated"
            )

    def get(self, served: Served, namespace: str, name: str) -> Json:
        """Returns an object; refuses with 404."""
        found = self.items(served).get((namespace, name))
        if found is None:
            raise Refusal(404, "NotFound", f'{served.plural} "{name}" not found')
        return found

    def _put(self, served: Served, before: Json | None, after: Json) -> Json:
        metadata = after["metadata"]
        metadata["resourceVersion"] = str(self.version + 1)
        self.items(served)[metadata.get("namespace", ""), metadata["name"]] = after
        self._happened(served, before, after)
        return after

    def _happened(self, served: Served, before: Json | None, after: Json | None) -> None:
        self.version += 1
        self.writes += 1
        change = Happened(self.version, served, before, after)
        self.history.append(change)
        if after is not None:
            metadata = after["metadata"]
            key = (served.kind, metadata.get("namespace", ""), metadata["name"])
            self.ever.setdefault(key, []).append(after)
        for listener in list(self.listeners):
            listener(change)

    def compact(self) -> None:
        """Forget the history: watches that want to go on from before get 410."""
        self.compacted = self.version
        self.history.clear()

    def copy(self) -> Copy:
        """A backup, behind which others write much at once, as they do in a real cluster."""
        objects = {kind: dict(items) for kind, items in self.objects.items()}
        taken = Copy(self.version, self.compacted, dict(self.kinds), objects)
        self.version += WRITTEN_BESIDE
        return taken

    def restore(self, copy: Copy, *kept: Served) -> None:
        """Go back to a backup; of these kinds what there is now is made there anew."""
        present = [(served, list(self.items(served).values())) for served in kept]
        self.version, self.compacted = copy.version, copy.compacted
        self.kinds = dict(copy.kinds)
        self.objects = {kind: dict(items) for kind, items in copy.objects.items()}
        self.history = [change for change in self.history if change.version <= copy.version]
        for served, items in present:
            self.items(served).clear()
            for item in items:
                self._put(served, None, _apart(item))

    def drop_kind(self, served: Served) -> None:
        """A CRD went, and with it every object and the kind itself."""
        for namespace, name in list(self.items(served)):
            self.delete(served, namespace, name)
        self.kinds.pop((served.group, served.plural), None)
        for dropper in list(self.droppers):
            dropper(served)

    # --- reads ---------------------------------------------------------------------------------

    def page(self, served: Served, selector: Selector, query: dict[str, str]) -> Json:
        """A page of a list; its token says of which moment the list is, and behind what it goes on."""
        version, found, behind = self.version, list(self.items(served).values()), ("", "")
        if token := query.get("continue"):
            of, *names = token.split("/")
            behind = names[0], names[1]
            if of != NEWEST:
                version = int(of)
                if version < self.compacted:
                    raise Refusal(
                        410,
                        "Expired",
                        "The provided continue parameter is too old to display a consistent list",
                        go_on="/".join((NEWEST, *names)),
                    )
                found = self._as_of(served, version)
        rest = sorted(
            (place, item)
            for item in found
            if selector.takes(item) and (place := _place(item)) > behind
        )
        limit = min(int(query["limit"]), self.page_objects_max) if "limit" in query else len(rest)
        metadata: Json = {"resourceVersion": str(version)}
        if limit < len(rest):
            metadata["continue"] = "/".join((str(version), *rest[limit - 1][0]))
        return {
            "kind": f"{served.kind}List",
            "apiVersion": served.group_version,
            "metadata": metadata,
            "items": [item for _, item in rest[:limit]],
        }

    def _as_of(self, served: Served, version: int) -> list[Json]:
        """The objects as they were at a version that is not forgotten."""
        objects = dict(self.items(served))
        for change in reversed(self.history):
            if change.version <= version:
                break
            if change.served != served:
                continue
            item = change.after if change.after is not None else change.before
            assert item is not None
            key = item["metadata"].get("namespace", ""), item["metadata"]["name"]
            if change.before is None:
                objects.pop(key, None)
            else:
                objects[key] = change.before
        return list(objects.values())

    def since(self, version: int) -> Iterator[Happened]:
        """Returns the changes after a version; refuses if they are forgotten."""
        if version < self.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {version}")
        return (change for change in self.history if change.version > version)

    def groups(self, *, is_core: bool) -> Json:
        """Aggregated discovery: the kinds of the core group, or those of all others."""
        versions: dict[tuple[str, str], list[Json]] = {}
        for served in self.kinds.values():
            if (served.group == "") == is_core:
                entry = {
                    "resource": served.plural,
                    "responseKind": {"kind": served.kind},
                    "scope": "Namespaced" if served.namespaced else "Cluster",
                    "verbs": ["get", "list", "watch", "create", "update", "delete"],
                }
                versions.setdefault((served.group, served.version), []).append(entry)
        return {
            "kind": "APIGroupDiscoveryList",
            "items": [
                {
                    "metadata": {"name": group},
                    "versions": [{"version": version, "resources": entries}],
                }
                for (group, version), entries in versions.items()
            ],
        }

    def resources(self, group: str, version: str) -> Json:
        """Discovery of a group."""
        found = [
            served
            for served in self.kinds.values()
            if (served.group, served.version) == (group, version)
        ]
        if not found:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        return {
            "kind": "APIResourceList",
            "groupVersion": found[0].group_version,
            "resources": [
                {"name": one.plural, "kind": one.kind, "namespaced": one.namespaced, "verbs": []}
                for one in found
            ],
        }
