"""Mutators and ExpansionTemplates by chance, and the questions that they are part of."""

import random
from typing import TYPE_CHECKING, Any

from tests.differential.mutators import objects

if TYPE_CHECKING:
    from collections.abc import Callable

Question = dict[str, Any]

_PATTERNS = ("shop", "shop-*", "*-test", "*", "kube-system", "default", "*o*")
_WIDGETS = [{"groups": ["example.io"], "versions": ["v1", "v2"], "kinds": ["Widget", "Foo"]}]
_EVERYTHING = [
    {"groups": ["", "apps"], "versions": ["v1"], "kinds": ["Pod", "Foo", "Deployment"]},
    {"groups": ["example.io"], "versions": ["v1"], "kinds": ["Widget"]},
]


def quoted(name: str, chance: random.Random) -> str:
    """A name as locations have it."""
    plain = name.isidentifier() and name.isascii()
    if plain and chance.random() < 0.9:
        return name
    mark = chance.choice("\"'")
    return mark + name.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


def location(chance: random.Random, obj: Any) -> list[tuple[str, ...]]:
    """Steps of a location, mostly of what an object has: ("a",) or ("name", value)."""
    steps: list[tuple[str, ...]] = []
    here = obj
    for depth in range(chance.choice((1, 2, 2, 3, 3, 4, 5))):
        if isinstance(here, list) and steps and len(steps[-1]) == 1:
            key, found = _item(chance, here)
            steps.append((key, *found))
            named = [one for one in here if isinstance(one, dict)]
            here = chance.choice(named) if named else None
            if chance.random() < 0.15:
                break
            continue
        known = [name for name in here if name != "metadata"] if isinstance(here, dict) else []
        if not depth:
            known = [name for name in known if name not in ("apiVersion", "kind")]
        field = chance.choice(known) if known and chance.random() < 0.8 else ""
        field = field or chance.choice(objects.FIELDS)
        if chance.random() < 0.01:
            field = "metadata"
        steps.append((field,))
        here = here.get(field) if isinstance(here, dict) else None
        if here is None and chance.random() < 0.15:
            steps.append((chance.choice(objects.KEYS), *_key(chance)))
    return steps


def _item(chance: random.Random, here: list[Any]) -> tuple[str, tuple[str, ...]]:
    keys = [key for one in here if isinstance(one, dict) for key in objects.KEYS if key in one]
    key = chance.choice(keys) if keys and chance.random() < 0.9 else chance.choice(objects.KEYS)
    if chance.random() < 0.4:
        return key, ("*", "glob")
    values = [one[key] for one in here if isinstance(one, dict) and key in one]
    texts = [one for one in values if isinstance(one, str)]
    if texts and chance.random() < 0.7:
        return key, (chance.choice(texts),)
    return key, _key(chance)


def _key(chance: random.Random) -> tuple[str, ...]:
    kind = chance.random()
    if kind < 0.25:
        return "*", "glob"
    if kind < 0.33:
        return chance.choice(("1", "2")), "integer"
    return (chance.choice(objects.NAMES),)


def spelled(steps: list[tuple[str, ...]], chance: random.Random) -> str:
    """A location's text."""
    text = ""
    for step in steps:
        if len(step) == 1:
            text += ("." if text else "") + quoted(step[0], chance)
            continue
        key, item, *kind = step
        shown = item if kind else quoted(item, chance)
        space = chance.choice(("", " ", " ", "\t"))
        text += f"[{quoted(key, chance)}:{space}{shown}]"
    return text


def broken(text: str, chance: random.Random) -> str:
    """A text with something put in, taken out or changed."""
    at = chance.randrange(len(text) + 1)
    end = chance.choice((0, 1, 1, 2))
    put = chance.choice(
        ("", ".", "[", "]", ":", "*", '"', "'", "\\", " ", "7", "-", "é", "\n", "[a:*]")
    )
    return text[:at] + put + text[at + end :]


def _value(chance: random.Random, steps: list[tuple[str, ...]]) -> Any:
    integers = chance.random() < 0.15
    if len(steps[-1]) > 1 and chance.random() < 0.9:
        key, item, *kind = steps[-1]
        found = objects.keyed(chance, key, integers=integers)
        if chance.random() < 0.9:
            found[key] = int(item) if kind == ["integer"] else item
        return found
    return objects.value(chance, integers=integers)


def _assigned(chance: random.Random, steps: list[tuple[str, ...]], *, text: bool = False) -> Any:
    kind = chance.random()
    if kind < 0.78:
        given = (
            chance.choice(("v", "w", "", "n")) if text and kind < 0.76 else _value(chance, steps)
        )
        found: dict[str, Any] = {"value": given}
    elif kind < 0.9:
        found = {"fromMetadata": {"field": chance.choice(("name", "namespace"))}}
    else:
        found = {"externalData": _external(chance, username=text)}
    if chance.random() < 0.02:
        found["fromMetadata"] = {"field": "name"}
    return found if chance.random() < 0.99 else {}


def _external(chance: random.Random, *, username: bool) -> dict[str, Any]:
    policy = chance.choice(("Fail", "Ignore", "UseDefault"))
    found = {"provider": chance.choice(("p", "q", "none")), "failurePolicy": policy}
    found["dataSource"] = "Username" if username or chance.random() < 0.3 else "ValueAtLocation"
    if policy == "UseDefault" and chance.random() < 0.9:
        found["default"] = "d"
    return found


def match(chance: random.Random) -> dict[str, Any]:
    """Returns a random ``match`` of a mutator."""
    parts: dict[str, Callable[[], Any]] = {
        "kinds": lambda: chance.choice(
            (
                [{"apiGroups": ["*"], "kinds": ["*"]}],
                [{"apiGroups": [""], "kinds": ["Pod", "Foo"]}],
                [{"kinds": ["Widget"]}, {"apiGroups": ["apps"]}],
                [],
            )
        ),
        "scope": lambda: chance.choice(("*", "Cluster", "Namespaced")),
        "namespaces": lambda: chance.sample(_PATTERNS, chance.randint(0, 2)),
        "excludedNamespaces": lambda: chance.sample(_PATTERNS, chance.randint(0, 1)),
        "labelSelector": lambda: _selector(chance),
        "namespaceSelector": lambda: _selector(chance),
        "name": lambda: chance.choice(("web", "web-*", "*b", "db", "*")),
        "source": lambda: chance.choice(("Original", "Generated", "All")),
    }
    return {
        name: parts[name]() for name in chance.sample(tuple(parts), chance.choice((0, 0, 1, 1, 2)))
    }


def _selector(chance: random.Random) -> dict[str, Any]:
    key = chance.choice(tuple(objects.LABELS))
    values = list(objects.LABELS[key])
    kind = chance.random()
    if kind < 0.5:
        return {"matchLabels": {key: chance.choice(values)}}
    if kind < 0.8:
        operator = chance.choice(("In", "NotIn"))
        return {"matchExpressions": [{"key": key, "operator": operator, "values": values[:1]}]}
    operator = chance.choice(("Exists", "DoesNotExist"))
    return {"matchExpressions": [{"key": key, "operator": operator}]}


def apply_to(chance: random.Random, obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a random ``applyTo`` of a mutator, mostly with the object's kind."""
    group, _, version = obj["apiVersion"].rpartition("/")
    own = {"groups": [group], "versions": [version], "kinds": [obj["kind"]]}
    kind = chance.random()
    found = [own] if kind < 0.8 else chance.choice((_EVERYTHING, _WIDGETS, [own, *_EVERYTHING]))
    found = [dict(one) for one in found]
    if chance.random() < 0.15:
        for one in found:
            one["operations"] = chance.choice((["CREATE"], ["UPDATE"], ["CREATE", "UPDATE"], ["*"]))
    if chance.random() < 0.01:
        found[0] = {**found[0], chance.choice(("groups", "versions", "kinds")): []}
    if chance.random() < 0.01:
        found[0]["operations"] = chance.choice(
            (["create"], ["*", "CREATE"], ["CREATE"] * 2, ["DELETE"])
        )
    return found if chance.random() < 0.99 else []


def _path_tests(chance: random.Random, steps: list[tuple[str, ...]]) -> list[dict[str, Any]]:
    found = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        part = steps[: chance.randint(0 if chance.random() < 0.05 else 1, len(steps))]
        if chance.random() < 0.03:
            part = [*part, ("z",)]
        condition = chance.choice(("MustExist", "MustNotExist"))
        found.append({"subPath": spelled(part, chance), "condition": condition})
    return found


def mutator(chance: random.Random, obj: dict[str, Any], name: str) -> dict[str, Any]:
    """A mutator of any kind and version; one in fifty cannot be read."""
    kind = chance.choice(
        ("Assign", "Assign", "Assign", "AssignMetadata", "ModifySet", "AssignImage")
    )
    steps = location(chance, obj)
    spec: dict[str, Any] = {"location": spelled(steps, chance)}
    parameters: dict[str, Any] = {}
    if kind == "AssignMetadata":
        key = quoted(chance.choice((*objects.LABELS, "new", "new/er")), chance)
        spec["location"] = f"metadata.{chance.choice(('labels', 'annotations'))}.{key}"
        parameters["assign"] = _assigned(chance, steps, text=True)
    elif kind == "Assign":
        parameters["assign"] = _assigned(chance, steps)
    elif kind == "ModifySet":
        parameters["operation"] = chance.choice(("merge", "prune"))
        integers = chance.random() < 0.15
        values = [objects.value(chance, 1, integers=integers) for _ in range(chance.randint(0, 3))]
        parameters["values"] = {"fromList": values}
    else:
        parameters = _image(chance)
        if (
            isinstance(obj.get("spec"), dict)
            and "containers" in obj["spec"]
            and chance.random() < 0.7
        ):
            spec["location"] = chance.choice(
                ("spec.containers[name: *].image", "spec.containers[name: n].image")
            )
    if kind != "AssignMetadata":
        spec["applyTo"] = apply_to(chance, obj)
        if chance.random() < 0.25:
            if kind == "AssignImage" and "image" in spec["location"]:
                steps = [("spec",), ("containers",)]
            parameters["pathTests"] = _path_tests(chance, steps)
    if chance.random() < 0.3:
        spec["match"] = match(chance)
    if chance.random() < 0.02:
        spec["location"] = broken(spec["location"], chance)
    spec["parameters"] = parameters
    version = "v1alpha1" if kind == "AssignImage" else chance.choice(("v1", "v1beta1", "v1alpha1"))
    if chance.random() < 0.01:
        name = chance.choice(("n" * 63, "n" * 64, "é" * 32))
    return {
        "apiVersion": f"mutations.gatekeeper.sh/{version}",
        "kind": kind,
        "metadata": {"name": name, "generation": chance.randint(1, 3)},
        "spec": spec,
    }


def _image(chance: random.Random) -> dict[str, Any]:
    parts = {
        "assignDomain": ("r.io", "localhost:5000", "a.b.c", "nodomain", ""),
        "assignPath": ("library/nginx", "a/b", "c", "d.e/f", "A/b", ""),
        "assignTag": (":v1", "@sha256:" + "d" * 64, ":v1@sha256:" + "e" * 64, "latest", ""),
    }
    names = chance.sample(tuple(parts), chance.choice((1, 1, 2, 3)))
    return {
        name: parts[name][0] if chance.random() < 0.6 else chance.choice(parts[name])
        for name in names
    }


def providers(chance: random.Random) -> dict[str, Any]:
    """Returns random answers of providers: to all keys or to some."""
    found = {}
    for name in ("p", "q"):
        keys = ("", "v", "w", "n", "o", "nginx", "alice", "1", *objects.IMAGES)
        items = [{"key": key, "value": f"{key}!"} for key in keys if chance.random() < 0.9]
        if chance.random() < 0.1:
            items.append({"key": "v", "error": "not known"})
        if chance.random() < 0.1:
            items.append({"key": "w", "value": chance.choice((1, True, ["x"]))})
        found[name] = {"items": items, "idempotent": chance.random() < 0.95}
        if chance.random() < 0.05:
            found[name]["systemError"] = "down"
    return found


def mutation(chance: random.Random) -> Question:
    """Mutators beside each other, and an object for them."""
    obj = objects.an_object(chance)
    count = chance.choice((1, 1, 2, 2, 3, 3, 4, 6, 9))
    names = [chance.choice(("a", "b", "c", "A", "m-1", "z")) + str(at) for at in range(count)]
    mutators = [mutator(chance, obj, name) for name in names]
    for one in mutators[1:]:
        if chance.random() < 0.25:
            _about_the_same(chance, mutators[0], one)
    if chance.random() < 0.1:
        mutators.append({**mutator(chance, obj, names[0]), "kind": mutators[0]["kind"]})
        mutators[-1]["apiVersion"] = mutators[0]["apiVersion"]
    question: Question = {
        "mutators": mutators,
        "object": obj,
        "operation": chance.choice(("CREATE", "CREATE", "UPDATE", "")),
        "source": chance.choice(("Original", "Original", "Generated")),
        "username": chance.choice(("alice", "")),
        "providers": providers(chance),
        "annotations": chance.random() < 0.1,
        "namespace": None,
    }
    if chance.random() < 0.15:
        question["remove"] = [chance.choice(names)]
    place = obj["metadata"].get("namespace", "")
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        question["namespace"] = obj
    elif place and chance.random() < 0.9:
        question["namespace"] = objects.a_namespace(chance, place)
    return question


_CLOSE = (
    *("a", "a.b", "a.b.c", "l", "l[name: *]", "l[name: n]", "l[name: *].a", "l[name: n].a"),
    *("l[name: n].a.b", "l[id: *].a", "l[name: o].m[id: n].a", "l[name: *].m", "l[name: *].m.c"),
    *("metadata.labels.a", "metadata.labels.app", "metadata.annotations.a", "metadata.labels.new"),
)


def close(chance: random.Random) -> Question:
    """Mutators that meet: at few places, selected by labels that others assign, over passes."""
    found = mutation(chance)
    obj = {"apiVersion": "v1", "kind": "Foo", "metadata": objects.metadata(chance)}
    if chance.random() < 0.5:
        obj["l"] = objects.items(chance, 2, integers=False)
    if chance.random() < 0.4:
        obj["a"] = objects.value(chance, 1, integers=False)
    kinds = [{"groups": [""], "versions": ["v1"], "kinds": ["Foo"]}]
    mutators = []
    for at in range(chance.randint(2, 7)):
        location = chance.choice(_CLOSE)
        spec: dict[str, Any] = {"location": location}
        parameters: dict[str, Any] = {}
        kind = "AssignMetadata"
        if not location.startswith("metadata"):
            kind = chance.choice(("Assign", "Assign", "Assign", "ModifySet", "AssignImage"))
            spec["applyTo"] = kinds
            if chance.random() < 0.3:
                path = chance.choice((location, location.rpartition(".")[0] or location))
                condition = chance.choice(("MustExist", "MustNotExist"))
                parameters["pathTests"] = [{"subPath": path, "condition": condition}]
        given = {"name": "n", "a": "v"} if location.endswith("]") else chance.choice(_SMALL)
        if kind == "ModifySet":
            parameters["operation"] = chance.choice(("merge", "prune"))
            parameters["values"] = {"fromList": chance.sample(_SMALL, chance.randint(1, 2))}
        elif kind == "AssignImage":
            parameters |= _image(chance)
        elif kind == "AssignMetadata":
            parameters["assign"] = {"value": chance.choice(("b", "c", "web", "y", ""))}
        else:
            parameters["assign"] = (
                {"value": given} if chance.random() < 0.9 else _assigned(chance, [("a",)])
            )
        if chance.random() < 0.4:
            spec["match"] = {"labelSelector": _selector(chance)}
        spec["parameters"] = parameters
        version = "v1alpha1" if kind == "AssignImage" else "v1"
        name = chance.choice("abcdefgh") + str(at)
        mutators.append(
            {
                "apiVersion": f"mutations.gatekeeper.sh/{version}",
                "kind": kind,
                "metadata": {"name": name, "generation": 1},
                "spec": spec,
            }
        )
    found |= {"mutators": mutators, "object": obj, "namespace": None}
    found.pop("remove", None)
    return found


_SMALL: tuple[Any, ...] = (
    *("v", "w", "nginx", True, {}, {"b": "v"}, {"b": {"c": "w"}}, [], ["v"], [{"name": "n"}]),
    *([{"name": "n", "a": {}}, {"name": "o"}], {"name": "n"}, {"a": ["v"]}, [[]]),
)


def _about_the_same(chance: random.Random, one: dict[str, Any], other: dict[str, Any]) -> None:
    """Put another mutator at a location that begins or ends like the first one's."""
    if "AssignMetadata" in (one["kind"], other["kind"]):
        return
    text = one["spec"]["location"]
    other["spec"]["parameters"].pop("pathTests", None)
    kind = chance.random()
    if kind < 0.4:
        other["spec"]["location"] = text
    elif kind < 0.7:
        other["spec"]["location"] = f"{text}.{chance.choice(objects.FIELDS[:5])}"
    elif kind < 0.85:
        other["spec"]["location"] = f"{text}[{chance.choice(objects.KEYS)}: *].a"
    else:
        other["spec"]["location"] = text.rpartition(".")[0] or text
    if "applyTo" in one["spec"] and chance.random() < 0.8:
        other["spec"]["applyTo"] = one["spec"]["applyTo"]


_GENERATED = (("", "v1", "Pod"), ("apps", "v1", "ReplicaSet"), ("batch", "v1", "Job"), ("", "", ""))
_GENERATORS = (
    *(("apps", "v1", "Deployment"), ("apps", "v1", "ReplicaSet"), ("batch", "v1", "Job")),
    *(("", "v1", "Foo"), ("example.io", "v1", "Widget"), ("", "v1", "Pod")),
)


def template(chance: random.Random, name: str) -> dict[str, Any]:
    """An ExpansionTemplate; some cannot be used."""
    group, version, kind = chance.choice(_GENERATED[: 3 if chance.random() < 0.97 else 4])
    spec: dict[str, Any] = {
        "applyTo": [
            {"groups": [one], "versions": [two], "kinds": [three]}
            # Of a kind that is named twice Gatekeeper makes an edge twice, which is an error of
            # its graph.
            for one, two, three in chance.sample(_GENERATORS, chance.choice((1, 1, 2)))
        ],
        "templateSource": chance.choice(("spec.template", "spec.template", "spec", "a", "spec.a")),
        "generatedGVK": {"group": group, "version": version, "kind": kind},
    }
    if chance.random() < 0.3:
        spec["enforcementAction"] = chance.choice(("warn", "dryrun", "deny"))
    if chance.random() < 0.03:
        spec[chance.choice(("templateSource", "applyTo", "generatedGVK"))] = None
        spec = {name: value for name, value in spec.items() if value is not None}
    return {
        "apiVersion": f"expansion.gatekeeper.sh/{chance.choice(('v1alpha1', 'v1beta1'))}",
        "kind": "ExpansionTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def expansion(chance: random.Random) -> Question:
    """ExpansionTemplates, mutators of what they make, and a generator."""
    obj = objects.an_object(chance)
    if chance.random() < 0.6:
        obj.update(apiVersion="apps/v1", kind="Deployment")
        inner = {"template": objects.template(chance)} if chance.random() < 0.4 else {}
        made = {**objects.template(chance)}
        made["spec"].update(inner)
        obj["spec"] = {"template": made}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": objects.pod_spec(chance)}
    names = [f"t{at}" for at in range(chance.choice((1, 1, 2, 3, 4)))]
    question: Question = {
        "templates": [template(chance, name) for name in names],
        "mutators": [mutator(chance, pod, f"m{at}") for at in range(chance.choice((0, 0, 1, 2)))],
        "object": obj,
        "operation": "CREATE",
        "source": "Original",
        "username": "alice",
        "providers": {},
        "annotations": False,
        "namespace": None,
        "expand": True,
    }
    if chance.random() < 0.2:
        question["removeTemplates"] = [chance.choice(names)]
    if chance.random() < 0.1:
        question["templates"].append(template(chance, names[0]))
    place = obj["metadata"].get("namespace", "")
    if place and chance.random() < 0.7:
        question["namespace"] = objects.a_namespace(chance, place)
    return question


def a_location(chance: random.Random) -> Question:
    """A location alone, most of them broken in one place or more."""
    text = spelled(location(chance, objects.an_object(chance)), chance)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        text = broken(text, chance)
    return {"location": text}


def question(chance: random.Random) -> Question:
    """Any question."""
    kind = chance.random()
    if kind < 0.08:
        return a_location(chance)
    if kind < 0.25:
        return expansion(chance)
    return close(chance) if kind < 0.55 else mutation(chance)
