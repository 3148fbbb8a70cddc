"""Random requests of each operation: for ConfigMaps and Pods, custom resources, Namespaces, subresources."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.policies import definition

Json = dict[str, Any]
CASE = "case"
SPACE = "default"
EVERY = ("CREATE", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource, or a subresource ``sub`` of it, with the operations that it has.

    ``version`` and ``name`` are those of objects, ``of`` is the version of the resource where that
    is another. ``build`` gives an object, for a subresource the object that has it.
    """

    version: str
    name: str
    resource: str
    build: Callable[[random.Random, str, int], Json]
    operations: tuple[str, ...] = EVERY
    sub: str = ""
    of: str = ""
    is_clustered: bool = False

    @property
    def group(self) -> str:
        """Returns the group of the resource."""
        return (self.of or self.version).rpartition("/")[0]

    @property
    def path(self) -> str:
        """Returns where an API server creates objects of the resource."""
        version = self.of or self.version
        space = "" if self.is_clustered else f"/namespaces/{SPACE}"
        return f"/{'apis' if '/' in version else 'api'}/{version}{space}/{self.resource}"


@dataclass(frozen=True, slots=True)
class Request:
    """A request; ``stored`` is what an API server holds before, None for nothing."""

    kind: Kind
    operation: str
    name: str
    object: Json | None
    stored: Json | None = None

    @property
    def path(self) -> str:
        """Returns the path of the stored object or its subresource."""
        sub = f"/{self.kind.sub}" if self.kind.sub else ""
        return f"{self.kind.path}/{self.name}{sub}"

    def review(self, old: Json | None) -> Json:
        """Returns the AdmissionReview of it, with the old object."""
        group, _, version = self.kind.version.rpartition("/")
        kind = {"group": group, "version": version, "kind": self.kind.name}
        resource = {
            "group": self.kind.group,
            "version": (self.kind.of or self.kind.version).rpartition("/")[2],
            "resource": self.kind.resource,
        }
        request: Json = {
            "uid": "",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": self.operation,
            "name": self.name,
            "namespace": self.name if self.kind.is_clustered else SPACE,
            "userInfo": {"username": "tests", "groups": ["system:masters"]},
            "object": self.object,
            "oldObject": old,
            "dryRun": self.operation != "CONNECT",
        }
        if self.kind.sub:
            request |= {"subResource": self.kind.sub, "requestSubResource": self.kind.sub}
        if self.operation != "CONNECT":
            request["options"] = {
                "kind": f"{self.operation.capitalize()}Options",
                "apiVersion": "meta.k8s.io/v1",
                "dryRun": ["All"],
            }
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        }


def metadata(chance: random.Random, name: str, number: int) -> Json:
    """Returns the metadata of an object of a case."""
    labels = {CASE: name}
    if chance.random() < 0.5:
        labels["team"] = chance.choice(("red", "blue"))
    return {"name": f"{name}-{number}", "namespace": SPACE, "labels": labels}


def _config(chance: random.Random, name: str, number: int) -> Json:
    given = {
        "a": ("x", "y", "xy", "Not-A-Label"),
        "b": ("y", "z"),
        "n": ("1", "4", "many"),
        "z": ("0", "1"),
        "q": ("2Gi", "1", "no"),
        "s": ("1.2.3", "2.0.0", "v"),
        "ip": ("10.0.0.1", "::1", "1"),
    }
    data = {key: chance.choice(values) for key, values in given.items() if chance.random() < 0.6}
    made: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(chance, name, number),
    }
    return {**made, "data": data} if data else made


def _pod(chance: random.Random, name: str, number: int) -> Json:
    containers: list[Json] = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    if chance.random() < 0.5:
        containers[1]["env"] = [{"name": "A", "value": "0"}, {"name": "C", "value": "9"}]
    if chance.random() < 0.5:
        containers.reverse()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(chance, name, number),
        "spec": {"containers": containers, "automountServiceAccountToken": False},
    }


def _widget(chance: random.Random, name: str, number: int) -> Json:
    return {**_config(chance, name, number), "apiVersion": "example.com/v1", "kind": "Widget"}


def _namespace(chance: random.Random, name: str, number: int) -> Json:
    found = metadata(chance, name, number)
    del found["namespace"]
    found["labels"]["kubernetes.io/metadata.name"] = found["name"]  # as the API server does
    spec = {"finalizers": ["kubernetes"]}  # likewise
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": found, "spec": spec}


def _deployment(chance: random.Random, name: str, number: int) -> Json:
    pod = _pod(chance, name, number)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod["metadata"],
        "spec": {
            "replicas": chance.randint(0, 3),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


CONFIG = Kind("v1", "ConfigMap", "configmaps", _config, ("CREATE",))
POD = Kind("v1", "Pod", "pods", _pod, ("CREATE",))
UPDATED = Kind("v1", "ConfigMap", "configmaps", _config, ("UPDATE",))
WIDGET = Kind("example.com/v1", "Widget", "widgets", _widget)
SCALE = Kind(
    "autoscaling/v1", "Scale", "deployments", _deployment, ("UPDATE",), "scale", of="apps/v1"
)
EVICTION = Kind("policy/v1", "Eviction", "pods", _pod, ("CREATE",), "eviction", of="v1")
EXEC = Kind("v1", "PodExecOptions", "pods", _pod, ("CONNECT",), "exec")
KINDS = (
    *[Kind("v1", "ConfigMap", "configmaps", _config)] * 2,
    WIDGET,
    Kind("v1", "Pod", "pods", _pod, ("CREATE", "DELETE")),  # hardly a field of it is mutable
    Kind("v1", "Namespace", "namespaces", _namespace, is_clustered=True),
    Kind("apps/v1", "Deployment", "deployments", _deployment),
    SCALE,
    EVICTION,
    EXEC,
)
"""The kinds of varied requests; ConfigMaps twice as often, as most expressions are of them."""


DATA: Json = {"type": "object", "additionalProperties": {"type": "string"}}
WIDGETS = definition(
    *("Widget", "widgets", "example.com"),
    namespaced=True,
    schema={"type": "object", "properties": {"data": DATA}},
)
"""Custom resources with the data of ConfigMaps."""


def request_of(chance: random.Random, kind: Kind, name: str, number: int) -> Request:
    """Returns a request of a kind, of any of its operations, about an object of a case."""
    operation = kind.operations[0] if len(kind.operations) == 1 else chance.choice(kind.operations)
    obj = kind.build(chance, name, number)
    key = obj["metadata"]["name"]
    if operation == "CREATE" and not kind.sub:
        return Request(kind, operation, key, obj)
    stored = kind.build(chance, name, number)
    if kind is UPDATED:
        stored["metadata"]["labels"][CASE] = "none"
    head = {"apiVersion": kind.version, "kind": kind.name}
    place = {"name": key, "namespace": SPACE}
    parts: dict[str, Json] = {
        "scale": {"metadata": place, "spec": {"replicas": chance.randint(0, 3)}},
        "eviction": {"metadata": place},
        "exec": {"stdout": True, "stderr": True, "command": [chance.choice(("ls", "sh"))]},
    }
    if kind.sub:
        return Request(kind, operation, key, {**head, **parts[kind.sub]}, stored)
    return Request(kind, operation, key, None if operation == "DELETE" else obj, stored)
