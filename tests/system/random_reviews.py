"""Policies that say everything they see, and reviews of every kind of request, by chance.

What a template sees is told as a digest, so that two servers that answer alike have seen alike;
constraints differ in what they match and in how they act.
"""

import random
from collections.abc import Iterator
from typing import Any

from tests import policies
from tests.behaviour.serving import review
from tests.system.replicas import constraint

Object = dict[str, Any]

NAMESPACES: dict[str, dict[str, str]] = {
    "team-a": {"team": "a", "env": "prod"},
    "team-b": {"team": "b"},
    "other": {},
}

SEES = """
package sees
violation[{"msg": msg, "details": {"operation": input.review.operation}}] {
  seen := {key: value | value := input.review[key]; not hidden[key]}
  msg := sprintf("%v %v %v %v sees %v", [
    input.review.operation, input.review.kind.kind, object.get(input.review, "namespace", "-"),
    object.get(input.parameters, "word", "-"), crypto.sha256(json.marshal(seen)),
  ])
}
hidden := {"_unstable"}
"""
"""The whole review; what `json.marshal` writes of it is the same to the byte, or the digests differ."""

NAMESPACE_OBJECT = """
package placed
violation[{"msg": msg}] {
  labels := object.get(input.review.namespaceObject, ["metadata", "labels"], "none")
  managers := sort([name | name := input.review.namespaceObject.metadata.managedFields[_].manager])
  msg := sprintf("in %v by %v", [labels, managers])
}
"""

UNIQUE = """
package unique
violation[{"msg": msg}] {
  word := input.review.object.data.unique
  other := data.inventory.namespace[namespace]["v1"].ConfigMap[name]
  other.data.unique == word
  not same(namespace, name)
  whole := crypto.sha256(json.marshal(other))
  applied := other.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]
  writers := count(other.metadata.managedFields)
  msg := sprintf("%v is taken by %v/%v %v %v %v", [word, namespace, name, whole, applied, writers])
}
violation[{"msg": msg}] {
  input.review.kind.kind == "Namespace"
  found := [name | data.inventory.cluster["v1"].Namespace[name].metadata.labels.team]
  msg := sprintf("teams have %v", [sort(found)])
}
same(namespace, name) {
  input.review.namespace == namespace
  input.review.name == name
}
"""

FAILS = """
package fails
violation[{"msg": msg}] {
  msg := word
}
word = "one" { input.review.object.data.fails == "yes" }
word = "two" { input.review.object.data.fails == "yes" }
"""
"""Two values of one rule: an evaluation that fails."""

SOURCES = {"Sees": SEES, "Placed": NAMESPACE_OBJECT, "Unique": UNIQUE, "Fails": FAILS}


def templates() -> list[Object]:
    """Returns a template for each source."""
    return [policies.template(kind, rego, schema=policies.FREE) for kind, rego in SOURCES.items()]


def kinds(*names: str, group: str = "") -> Object:
    return {"kinds": [{"apiGroups": [group], "kinds": list(names)}]}


def expression(key: str, operator: str, *values: str) -> Object:
    found: Object = {"key": key, "operator": operator}
    return {"matchExpressions": [{**found, "values": list(values)} if values else found]}


MATCHES: dict[str, Object | None] = {
    "all": None,
    "pods": kinds("Pod"),
    "several": {"kinds": [*kinds("ConfigMap")["kinds"], *kinds("*", group="apps")["kinds"]]},
    "namespaces": {"namespaces": ["team-a", "gho*"]},
    "excluded": {"excludedNamespaces": ["team-*"]},
    "names": {"name": "*-1"},
    "labels": {"labelSelector": {"matchLabels": {"app": "x"}}},
    "label-in": {"labelSelector": expression("env", "NotIn", "prod", "dev")},
    "label-exists": {"labelSelector": expression("owner", "Exists")},
    "namespace-labels": {"namespaceSelector": {"matchLabels": {"env": "prod"}}},
    "namespace-without": {"namespaceSelector": expression("team", "DoesNotExist")},
    "cluster": {"scope": "Cluster"},
    "namespaced": {"scope": "Namespaced", **kinds("*", group="*")},
    "original": {"source": "Original"},
    "generated": {"source": "Generated"},
    "everything": {
        **kinds("ConfigMap", "Pod"),
        "scope": "Namespaced",
        "excludedNamespaces": ["other"],
        "namespaceSelector": expression("team", "In", "a", "b"),
        "labelSelector": {"matchLabels": {"app": "y"}, **expression("owner", "DoesNotExist")},
    },
}

ACTIONS: tuple[Object, ...] = (
    {"enforcementAction": "warn"},
    {},
    {"enforcementAction": "dryrun"},
    {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [
            {"action": "warn", "enforcementPoints": [{"name": "validation.gatekeeper.sh"}]},
            {"action": "deny", "enforcementPoints": [{"name": "audit.gatekeeper.sh"}]},
        ],
    },
    {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": [{"name": "*"}]}],
    },
)


def constraints() -> list[Object]:
    """Each way to match, with one of the ways to act, of the template that sees; and the others."""
    found = []
    for number, (name, match) in enumerate(MATCHES.items()):
        spec: Object = {"parameters": {"word": name}, **ACTIONS[number % len(ACTIONS)]}
        found.append(named("Sees", name, spec if match is None else {"match": match, **spec}))
    warns = {"enforcementAction": "warn"}
    found += [named(kind, "warns", warns) for kind in ("Placed", "Unique", "Fails")]
    found.append(named("Unique", "denies", {"match": kinds("ConfigMap")}))
    return found


def named(kind: str, name: str, spec: Object) -> Object:
    return {**constraint(name, "", kind), "spec": spec}


CONFIG: Object = {
    "sync": {
        "syncOnly": [
            {"group": "", "version": "v1", "kind": "ConfigMap"},
            {"group": "", "version": "v1", "kind": "Namespace"},
        ]
    },
}

TAKEN = "taken"
"""The value of `unique` in an object of the cluster."""

KINDS: tuple[tuple[str, str, str, bool], ...] = (
    ("v1", "ConfigMap", "configmaps", True),
    ("v1", "Pod", "pods", True),
    ("apps/v1", "Deployment", "deployments", True),
    ("v1", "Namespace", "namespaces", False),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False),
)
LABELS = {"app": ("x", "y"), "env": ("prod", "dev", "test"), "owner": ("me",)}
GHOST = "ghost"
"""A namespace that is not there."""


def reviews(seed: int) -> Iterator[Object]:
    """Reviews without end, the same for the same seed."""
    source = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield random_review(source, number)


def random_review(source: random.Random, number: int) -> Object:
    """Returns a random request, as an API server would send it, or nearly."""
    api_version, kind, plural, is_namespaced = source.choice(KINDS)
    places = [*NAMESPACES, *NAMESPACES, GHOST]
    namespace = source.choice(places) if is_namespaced else ""
    name = f"thing-{source.randrange(3)}"
    operation = source.choice(["CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT"])
    obj = random_object(source, api_version, kind, namespace, name)
    old = random_object(source, api_version, kind, namespace, name)
    body = review(obj, operation=operation)
    request = body["request"]
    request["uid"] = f"00000000-0000-0000-0000-{number:012d}"
    request["resource"]["resource"] = plural
    request["requestKind"], request["requestResource"] = request["kind"], request["resource"]
    request["object"] = None if operation == "DELETE" else obj
    request["oldObject"] = old if operation in ("UPDATE", "DELETE") else None
    request["userInfo"] = random_user(source)
    if source.random() < 0.3:
        request["dryRun"] = source.random() < 0.5
    if source.random() < 0.2:
        request["subResource"] = source.choice(["status", "scale"])
    if operation == "CREATE" and source.random() < 0.1:
        request["name"] = ""
        obj["metadata"].pop("name")
        obj["metadata"]["generateName"] = "thing-"
    if kind == "Namespace":
        request["namespace"] = source.choice(["", name])
    options = {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation.title()}Options"}
    request["options"] = source.choice([None, options])
    # An API server leaves these out where they are empty, as Go does on reading them.
    for field in ("name", "namespace"):
        if not request[field]:
            del request[field]
    return body


def random_user(source: random.Random) -> Object:
    user: Object = {"username": source.choice(["alice", "system:serviceaccount:team-a:runner"])}
    if source.random() < 0.5:
        user |= {"uid": "u-1", "groups": ["system:authenticated"], "extra": {"scopes": ["a", "b"]}}
    return user


def random_object(
    source: random.Random, api_version: str, kind: str, namespace: str, name: str
) -> Object:
    """Anything that policies look at is there, or is not."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    labels = {key: source.choice(values) for key, values in LABELS.items() if source.random() < 0.5}
    if labels or source.random() < 0.3:
        metadata["labels"] = labels
    if source.random() < 0.2:
        metadata["annotations"] = {"note": source.choice(["", "é", "<&>", "1"])}
    found: Object = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    if kind == "ConfigMap":
        found["data"] = {"unique": source.choice([TAKEN, "free"]), "n": str(source.randrange(3))}
        if source.random() < 0.15:
            found["data"]["fails"] = "yes"
    elif kind == "Pod":
        found["spec"] = {"containers": random_containers(source)}
    elif kind == "Deployment":
        template = {"spec": {"containers": random_containers(source)}}
        found["spec"] = {"replicas": source.randrange(4), "template": template}
    return found


def random_containers(source: random.Random) -> list[Object]:
    return [
        {
            "name": f"c{number}",
            "image": source.choice(["nginx", "registry.example/app:1.0"]),
            "resources": {"limits": {"cpu": source.choice(["1", 1, 0.5, "100m", 1e21, None])}},
        }
        for number in range(source.randrange(3))
    ]
