"""Objects for mutators: of few names and values, so that locations meet something."""

import random
from typing import Any

FIELDS = ("a", "b", "c", "l", "m", "spec", "x y", "d.e")
KEYS = ("name", "id", "k")
NAMES = ("n", "o", "p", "*", "")
IMAGES = (
    *("nginx", "nginx:1", "nginx@sha256:" + "a" * 64, "docker.io/library/nginx:1.2", "r.io:5/a/b"),
    *("localhost/a", "localhost:5000/a:t", "a/b/c", "gcr.io/p/q@sha256:" + "b" * 64, "", "/", ":t"),
    *("a:b/c", "a.b", "A/b:1@sha256:" + "c" * 64, "library/nginx:v1"),
)
NAMESPACES = ("shop", "shop-test", "default", "kube-system")
LABELS = {"a": ("b", "c", ""), "app": ("web", "db"), "team.io/x": ("y",)}


def scalar(chance: random.Random, *, integers: bool = True) -> Any:
    """A value that is no container."""
    kind = chance.random()
    if kind < 0.62:
        return chance.choice(("v", "w", "", "n", "o", "1", "true"))
    if kind < 0.75 and integers:
        return chance.choice((0, 1, 2, 8080))
    if kind < 0.9:
        return chance.random() < 0.5
    return None if kind < 0.95 else chance.choice(IMAGES)


def value(chance: random.Random, depth: int = 0, *, integers: bool = True) -> Any:
    """Any JSON, not deep."""
    kind = chance.random()
    if depth > 2 or kind < 0.5:
        return scalar(chance, integers=integers)
    if kind < 0.75:
        names = chance.sample(FIELDS, chance.randint(0, 3))
        return {name: value(chance, depth + 1, integers=integers) for name in names}
    return items(chance, depth + 1, integers=integers)


def items(chance: random.Random, depth: int = 0, *, integers: bool = True) -> list[Any]:
    """A list: of keyed objects mostly."""
    kind = chance.random()
    count = chance.choice((0, 1, 1, 2, 3))
    if kind < 0.7:
        key = chance.choice(KEYS)
        return [keyed(chance, key, depth, integers=integers) for _ in range(count)]
    if kind < 0.9:
        return [scalar(chance, integers=integers) for _ in range(count)]
    return [value(chance, depth + 1, integers=integers) for _ in range(count)]


def keyed(chance: random.Random, key: str, depth: int = 0, *, integers: bool = True) -> Any:
    """An item of a list with a key, which is of another type or not there now and then."""
    found: dict[str, Any] = {}
    if chance.random() < 0.95:
        number = integers and chance.random() < 0.15
        found[key] = chance.choice((1, 2)) if number else chance.choice(NAMES)
    for name in chance.sample(FIELDS, chance.randint(0, 2)):
        found[name] = value(chance, depth + 1, integers=integers)
    return found


def containers(chance: random.Random) -> list[Any]:
    """Containers of a Pod."""
    found = []
    for name in chance.sample(NAMES, chance.randint(0, 3)):
        item: dict[str, Any] = {"name": name}
        if chance.random() < 0.9:
            item["image"] = chance.choice(IMAGES)
        if chance.random() < 0.3:
            item["args"] = [chance.choice(("x", "y", "z")) for _ in range(chance.randint(0, 3))]
        if chance.random() < 0.3:
            item["securityContext"] = chance.choice(({}, {"privileged": True}, None))
        if chance.random() < 0.2:
            item["env"] = [{"name": "n", "value": "v"}, {"name": "o"}][: chance.randint(0, 2)]
        found.append(item)
    return found


def pod_spec(chance: random.Random) -> dict[str, Any]:
    """A Pod's spec."""
    spec: dict[str, Any] = {"containers": containers(chance)}
    if chance.random() < 0.3:
        spec["initContainers"] = containers(chance)
    if chance.random() < 0.2:
        spec["hostNetwork"] = True
    if chance.random() < 0.2:
        spec["tolerations"] = chance.choice(([], [{"key": "a"}], ["odd"], None))
    return spec


def metadata(chance: random.Random) -> dict[str, Any]:
    """An object's metadata."""
    found: dict[str, Any] = {}
    if chance.random() < 0.85:
        found["name"] = chance.choice(("web", "web-1", "db"))
    if chance.random() < 0.2:
        found["generateName"] = chance.choice(("web-", "db"))
    if chance.random() < 0.6:
        found["namespace"] = chance.choice(NAMESPACES)
    for name in ("labels", "annotations"):
        if chance.random() < 0.5:
            found[name] = labels(chance)
        elif chance.random() < 0.03:
            found[name] = None
    return found


def labels(chance: random.Random) -> dict[str, str]:
    """Labels, or none."""
    return {
        name: chance.choice(LABELS[name])
        for name in chance.sample(tuple(LABELS), chance.randint(0, 2))
    }


KINDS = (
    ("v1", "Pod"),
    ("v1", "Foo"),
    ("apps/v1", "Deployment"),
    ("v1", "Namespace"),
    ("example.io/v1", "Widget"),
    ("example.io/v2", "Widget"),
)


def an_object(chance: random.Random) -> dict[str, Any]:
    """An object that a request may bring."""
    version, kind = chance.choice(KINDS)
    found: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": metadata(chance)}
    if kind == "Pod":
        found["spec"] = pod_spec(chance)
    elif kind == "Deployment":
        found["spec"] = {"template": template(chance), "replicas": 1}
    elif kind == "Namespace":
        found["metadata"].pop("namespace", None)
        found["metadata"]["name"] = chance.choice(NAMESPACES)
        found["spec"] = {"finalizers": ["kubernetes"]}
    if kind != "Namespace" and chance.random() < 0.8:
        for name in chance.sample(FIELDS, chance.randint(1, 4)):
            found.setdefault(name, value(chance))
    return found


def template(chance: random.Random) -> dict[str, Any]:
    """A Pod's template."""
    found: dict[str, Any] = {"spec": pod_spec(chance)}
    if chance.random() < 0.7:
        found["metadata"] = metadata(chance)
    return found


def a_namespace(chance: random.Random, name: str) -> dict[str, Any]:
    """A Namespace."""
    own = {"name": name, "labels": labels(chance)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": own}
