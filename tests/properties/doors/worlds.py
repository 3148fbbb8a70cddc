"""Random sets of policies, and objects to be decided by them; a seed makes one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests import policies
from tests.policies import config, expansion_template

Json = dict[str, Any]

NAMESPACES = ("web", "shop", "kube-own")
KINDS = (
    ("", "Pod"),
    ("apps", "Deployment"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("", "ConfigMap"),
)

PRIVILEGED = """package noprivileged
violation[{"msg": msg}] {
  container := input.review.object.spec.containers[_]
  container.securityContext.privileged
  msg := sprintf("%v is privileged", [container.name])
}
"""
LABELLED = """package labelled
violation[{"msg": msg, "details": {"label": wanted, "kind": input.review.kind.kind}}] {
  wanted := input.parameters.label
  not input.review.object.metadata.labels[wanted]
  msg := sprintf("no label %v", [wanted])
}
"""
IMAGES = """package images
violation[{"msg": msg, "details": {"image": container.image}}] {
  container := input.review.object.spec[["containers", "initContainers"][_]][_]
  endswith(container.image, ":latest")
  msg := sprintf("%v is latest", [container.image])
}
"""
TEAMS = """package teams
violation[{"msg": msg}] {
  team := input.review.namespaceObject.metadata.labels.team
  msg := sprintf("%v is of team %v", [input.review.kind.kind, team])
}
"""
SIGNED = """package signed
violation[{"msg": msg}] {
  image := input.review.object.spec.containers[_].image
  asked := external_data({"provider": "signatures", "keys": [image]})
  msg := sprintf("%v: %v", asked.errors[_])
}
violation[{"msg": msg}] {
  images := [container.image | container := input.review.object.spec.containers[_]]
  owner := external_data({"provider": "owners", "keys": images}).responses[_][1]
  asked := external_data({"provider": "signatures", "keys": [owner]})
  msg := sprintf("%v is %v", asked.responses[_])
}
"""
AWAY = """package away
violation[{"msg": msg}] {
  images := [container.image | container := input.review.object.spec.containers[_]]
  asked := external_data({"provider": "away", "keys": images})
  msg := sprintf("says (%v) of %v", [asked.system_error, count(images)])
}
"""
FICKLE = """package fickle
word = "one" { input.review.object.metadata.labels.tier }
word = "two" { input.review.object.metadata.labels.tier }
violation[{"msg": msg}] { msg := word }
violation[{"msg": "no label app"}] { not input.review.object.metadata.labels.app }
"""
"""It fails for some objects, which no exception excuses."""
REGO = {
    "Away": AWAY,
    "Fickle": FICKLE,
    "NoPrivileged": PRIVILEGED,
    "Labelled": LABELLED,
    "Images": IMAGES,
    "Teams": TEAMS,
    "Signed": SIGNED,
}
ANSWERS: dict[str, Json] = {
    "signatures": {
        "items": {
            "a:latest": {"error": "unsigned"},
            "mirror/a:1": {"error": "signed by nobody"},
            "ada": {"value": "gone"},
        }
    },
    "owners": {"items": {"a:1": {"value": "ada"}, "a:latest": {"value": "bob"}}},
    "away": {"systemError": "it is away"},
    "mirrors": {"items": {"a:1": {"value": "mirror/a:1"}, "given:latest": {"error": "none"}}},
}
"""Each provider's answers, in every world."""
SHORT = {
    "expression": "variables.anyObject.kind != 'Pod' || "
    "variables.anyObject.spec.containers.all(one, one.image.size() < 8)",
    "messageExpression": "variables.anyObject.kind + ' has a long image'",
}
CEL = {"Short": SHORT}


@dataclass(frozen=True)
class World:
    """Policies with the Namespaces, and the objects."""

    seed: int
    policies: tuple[Json, ...]
    objects: tuple[Json, ...]
    olds: tuple[Json, ...] = ()
    """The state of each object before an update."""

    @property
    def namespaces(self) -> dict[str, Json]:
        """The Namespaces by name."""
        return {
            item["metadata"]["name"]: item for item in self.policies if item["kind"] == "Namespace"
        }

    def __str__(self) -> str:
        kinds = ", ".join(f"{item['kind']}/{item['metadata']['name']}" for item in self.policies)
        return f"world {self.seed}: {kinds}"


def world(seed: int) -> World:
    """The world of a seed."""
    chance = random.Random(seed)
    kinds = chance.sample(sorted(REGO | CEL), chance.randint(1, 3))
    policies = [*map(_template, kinds), *_namespaces(chance)]
    policies += [
        _constraint(chance, chance.choice(kinds), f"c{number}")
        for number in range(chance.randint(1, 4))
    ]
    constraints = [item for item in policies if "constraints" in item["apiVersion"]]
    policies += [
        _group(chance, f"g{number}", kinds, constraints) for number in range(chance.randint(0, 2))
    ]
    policies += [_mutator(chance, number) for number in range(chance.randint(0, 3))]
    if chance.random() < 0.7:
        policies += _expansions(chance)
    if chance.random() < 0.4:
        policies.append(_config(chance))
    objects = tuple(_object(chance, number) for number in range(3))
    policies += _kyverno(random.Random(f"kyverno of {seed}"))
    policies += _kyverno_mutating(random.Random(f"kyverno mutating of {seed}"))
    policies += _exceptions(random.Random(f"exceptions of {seed}"), policies)
    olds = tuple(_old(chance, obj) for obj in objects)
    chance = random.Random(f"more of {seed}")
    _scope(chance, policies)
    _narrow(chance, [item for item in policies if item["kind"].endswith("PolicyException")])
    for obj in {id(obj): obj for obj in (*objects, *olds)}.values():
        _add_containers(chance, obj)
    return World(seed, tuple(policies), objects, olds)


def _scope(chance: random.Random, policies: list[Json]) -> None:
    """Give some constraints and groups several actions, the same at every enforcement point."""
    for item in policies:
        if item["apiVersion"].startswith("constraints") or item["kind"] == "ConstraintGroup":
            if chance.random() < 0.7:
                continue
            actions = chance.sample(["deny", "warn", "dryrun"], chance.randint(1, 2))
            item["spec"] |= {
                "enforcementAction": "scoped",
                "scopedEnforcementActions": [
                    {"action": action, "enforcementPoints": [{"name": "*"}]} for action in actions
                ],
            }


def _narrow(chance: random.Random, exceptions: list[Json]) -> None:
    """Let some exceptions be about details, other parts, or a later time."""
    details = ({"label": "owner"}, {"image": "*:latest"}, {"kind": "Pod", "label": "tier"})
    parts = (
        {"containers": ["side"]},
        {"containers": ["first", "main"]},
        {"images": ["a:*"]},
        {"paths": ["spec.template.metadata.labels"], "containers": ["side"]},
        {"paths": ["spec.containers[name: main].securityContext.privileged"]},
    )
    for item in exceptions:
        spec = item["spec"]
        if "violations" in spec and chance.random() < 0.6:
            spec["violations"].append({"details": chance.choice(details)})
            del spec["violations"][: chance.randint(0, 1)]
        if "parts" in spec and chance.random() < 0.6:
            spec["parts"] = chance.choice(parts)
        if chance.random() < 0.1:
            spec["notBefore"] = chance.choice(["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
            spec["expires"] = "2100-01-01T00:00:00Z"


def _add_containers(chance: random.Random, obj: Json) -> None:
    """Give a Pod, or the Pods of a controller, further containers."""
    spec = obj.get("spec", {})
    for name in ("jobTemplate", "spec", "template", "spec"):
        spec = spec.get(name, spec)
    if "containers" not in spec or chance.random() < 0.5:
        return
    for field, name in (("containers", "side"), ("initContainers", "first")):
        if chance.random() < 0.6:
            container: Json = {"name": name, "image": chance.choice(["a:1", "a:latest", "b:2"])}
            if chance.random() < 0.4:
                container["securityContext"] = {"privileged": True}
            spec[field] = [*spec.get(field, ()), container]


def _old(chance: random.Random, obj: Json) -> Json:
    """Returns an earlier state of an object: same kind and name, maybe with other content."""
    if chance.random() < 0.3:
        return obj
    others = [_object(chance, 0) for _ in range(20)]
    old = dict(next((one for one in others if one["kind"] == obj["kind"]), obj))
    labels = old["metadata"].get("labels")
    metadata = {key: obj["metadata"][key] for key in ("name", "namespace")}
    old["metadata"] = metadata | ({"labels": labels} if labels else {})
    return old


def _template(kind: str) -> Json:
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    cel = {"validations": [CEL[kind]]} if kind in CEL else None
    return policies.template(kind, REGO.get(kind, ""), cel=cel, schema=schema)


def _namespaces(chance: random.Random) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": chance.choice(["a", "b"]), "owner": "x"}},
        }
        for name in NAMESPACES
    ]


def _match(chance: random.Random) -> Json:
    match: Json = {}
    if chance.random() < 0.8:
        chosen = chance.sample(KINDS, chance.randint(1, 2))
        match["kinds"] = [{"apiGroups": [group], "kinds": [kind]} for group, kind in chosen]
    else:
        match["kinds"] = [{"apiGroups": ["*"], "kinds": ["*"]}]
    if chance.random() < 0.2:
        match["namespaces"] = [chance.choice([*NAMESPACES, "kube-*"])]
    if chance.random() < 0.2:
        match["excludedNamespaces"] = [chance.choice(NAMESPACES)]
        if chance.random() < 0.5:
            # Processes that all ways in have, as in a Config.
            match["processes"] = chance.choice([["*"], ["webhook", "audit"], ["mutation-webhook"]])
    if chance.random() < 0.2:
        match["namespaceSelector"] = {"matchLabels": {"team": chance.choice(["a", "b"])}}
    if chance.random() < 0.2:
        match["labelSelector"] = {"matchLabels": {"app": "x"}}
    if chance.random() < 0.2:
        match["source"] = chance.choice(["All", "Original", "Generated"])
    return match


def _of_any_process(chance: random.Random) -> Json:
    """The match of a case, which is the same everywhere."""
    return {key: value for key, value in _match(chance).items() if key != "processes"}


def _constraint(chance: random.Random, kind: str, name: str) -> Json:
    spec: Json = {"match": _match(chance)}
    if chance.random() < 0.5:
        spec["enforcementAction"] = chance.choice(["deny", "warn", "dryrun"])
    if kind == "Labelled":
        spec["parameters"] = {"label": chance.choice(["owner", "tier"])}
    made = policies.constraint(kind, name, **spec)
    if chance.random() < 0.4:
        made["metadata"]["annotations"] = {"waddle.dev/existing": "allow"}
    return made


def _group(chance: random.Random, name: str, kinds: list[str], constraints: list[Json]) -> Json:
    """A group of templates and of a constraint, by an expression or by cases."""
    made = _constraint(chance, chance.choice(kinds), name)
    members: Json = {}
    for number in range(chance.randint(1, 3)):
        member = _constraint(chance, chance.choice(kinds), "member")
        members[f"m{number}"] = {"kind": member["kind"]}
        if "parameters" in member["spec"]:
            members[f"m{number}"]["parameters"] = member["spec"]["parameters"]
    one = chance.choice(constraints)
    members["other"] = {"constraint": {"kind": one["kind"], "name": one["metadata"]["name"]}}
    spec: Json = {
        key: made["spec"][key] for key in ("match", "enforcementAction") if key in made["spec"]
    }
    spec["members"] = members
    if chance.random() < 0.3:
        spec["message"] = "not as the group wants it"
    if chance.random() < 0.6:
        calls = [f"{chance.choice(['', '', '!'])}{member}()" for member in members]
        spec["expression"] = chance.choice(
            [" && ", " || ", " != "][: 3 if len(calls) == 2 else 2]
        ).join(calls)
    else:
        cases: list[Json] = [
            {
                "match": _of_any_process(chance),
                **chance.choice([{"accept": True}, {"member": member}]),
            }
            for member in members
        ]
        spec["firstMatch"] = [*cases, {"member": "other"}]
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {**made["metadata"], "name": name},
        "spec": spec,
    }


def _mutator(chance: random.Random, number: int) -> Json:
    match = _match(chance)
    match.pop("source", None)
    if chance.random() < 0.5:
        return {
            "apiVersion": "mutations.gatekeeper.sh/v1",
            "kind": "AssignMetadata",
            "metadata": {"name": f"label-{number}"},
            "spec": {
                "match": match,
                "location": f"metadata.labels.{chance.choice(['owner', 'tier'])}",
                "parameters": {"assign": {"value": "given"}},
            },
        }
    if chance.random() < 0.3:
        data = {"provider": "mirrors", "failurePolicy": chance.choice(["Ignore", "UseDefault"])}
        return _assign(
            number,
            match,
            "spec.containers[name:*].image",
            {"externalData": {**data, "default": "given:1"}},
        )
    location, value = chance.choice(
        [
            ("spec.containers[name:*].securityContext.privileged", True),
            ("spec.containers[name:*].securityContext.privileged", False),
            ("spec.containers[name:*].image", "given:latest"),
        ]
    )
    return _assign(number, match, location, {"value": value})


def _assign(number: int, match: Json, location: str, assigned: Json) -> Json:
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": f"assign-{number}"},
        "spec": {
            "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}],
            "match": match,
            "location": location,
            "parameters": {"assign": assigned},
        },
    }


def _expansions(chance: random.Random) -> list[Json]:
    made = [
        _expansion("of-deployments", ("apps", "Deployment"), "spec.template", ("", "Pod")),
        _expansion("of-cronjobs", ("batch", "CronJob"), "spec.jobTemplate", ("batch", "Job")),
        _expansion("of-jobs", ("batch", "Job"), "spec.template", ("", "Pod")),
    ]
    if chance.random() < 0.3:
        made[0]["spec"]["enforcementAction"] = chance.choice(["warn", "dryrun"])
    return made


def _expansion(name: str, of: tuple[str, str], source: str, made: tuple[str, str]) -> Json:
    return expansion_template(
        name,
        applyTo=[{"groups": [of[0]], "versions": ["v1"], "kinds": [of[1]]}],
        templateSource=source,
        generatedGVK={"group": made[0], "version": "v1", "kind": made[1]},
    )


def _exceptions(chance: random.Random, known: list[Json]) -> list[Json]:
    """Exceptions from some constraints, which say whether they allow any."""
    made = []
    for item in known:
        if not item["apiVersion"].startswith(("constraints", "waddle")) or chance.random() < 0.1:
            continue
        allowed = chance.choice(["all", "all", "cluster", "none", ""])
        if allowed:
            annotations = item["metadata"].setdefault("annotations", {})
            annotations["waddle.dev/exceptions"] = allowed
        name, kind = item["metadata"]["name"], item["kind"]
        for number in range(chance.randint(2, 5)):
            place = chance.choice([*NAMESPACES, ""])
            of = "*" if not place and chance.random() < 0.3 else name
            made.append(
                policies.exception(
                    f"{name}-{number}", f"{kind}/{of}", namespace=place, **_excused(chance, place)
                )
            )
    return made


KYVERNO = {
    "tagged": "!object.spec.containers.exists(one, one.image.endsWith(':latest'))",
    "plain": "object.spec.containers.all(one, !(one.?securityContext.privileged.orValue(false)))",
    "known": "dyn(resource.Get('v1', 'namespaces', '', request.namespace)) != null",
    "owned": "has(object.metadata.labels) && 'owner' in object.metadata.labels",
}
"""Policies of Kyverno about Pods, by name."""


def _kyverno(chance: random.Random) -> list[Json]:
    """Some policies of Kyverno: about Pods, and what it writes of them for their controllers."""
    made: list[Json] = []
    for name in chance.sample(sorted(KYVERNO), chance.choice([0, 0, 1, 2, 3])):
        place = chance.choice([*NAMESPACES, "", ""])
        rule: Json = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        expression = KYVERNO[name]
        if place:
            expression = expression.replace("'namespaces', '', request", "'namespaces', request")
        spec: Json = {
            "validationActions": chance.choice([["Deny"], ["Warn"], ["Audit"]]),
            "matchConstraints": {
                "resourceRules": [{**rule, "operations": chance.choice([["CREATE"], ["*"]])}]
            },
            "validations": [{"expression": expression, "message": f"not {name}"}],
        }
        if chance.random() < 0.3:
            condition = "object.metadata.namespace != 'shop'"
            spec["matchConditions"] = [{"name": "not-shop", "expression": condition}]
        kind = "NamespacedValidatingPolicy" if place else "ValidatingPolicy"
        metadata = {"name": name, **({"namespace": place} if place else {})}
        api = "policies.kyverno.io/v1beta1"
        made.append({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    return made


KYVERNO_MUTATING: dict[str, tuple[str, str]] = {
    "owner": ("ApplyConfiguration", 'Object{metadata: Object.metadata{labels: {"owner": "me"}}}'),
    "images": (
        "ApplyConfiguration",
        (
            "Object{spec: Object.spec{containers: object.spec.containers.map(one, "
            "Object.spec.containers{name: one.name, image: one.image.replace(':latest', ':1')})}}"
        ),
    ),
    "place": (
        "JSONPatch",
        (
            "has(object.metadata.annotations) ? [] : "
            '[JSONPatch{op: "add", path: "/metadata/annotations", value: {"in": request.namespace}}]'
        ),
    ),
}
"""MutatingPolicies of Kyverno about Pods, by name: how they change them, and the expression."""


def _kyverno_mutating(chance: random.Random) -> list[Json]:
    """Some that change Pods, and maybe their controllers."""
    made: list[Json] = []
    for name in chance.sample(sorted(KYVERNO_MUTATING), chance.choice([0, 0, 1, 2])):
        patch_type, expression = KYVERNO_MUTATING[name]
        field = "jsonPatch" if patch_type == "JSONPatch" else "applyConfiguration"
        place = chance.choice([*NAMESPACES, "", ""])
        rule: Json = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        spec: Json = {
            "matchConstraints": {
                "resourceRules": [{**rule, "operations": chance.choice([["CREATE"], ["*"]])}]
            },
            "mutations": [{"patchType": patch_type, field: {"expression": expression}}],
            "reinvocationPolicy": chance.choice(["Never", "IfNeeded"]),
            "failurePolicy": chance.choice(["Fail", "Ignore"]),
        }
        if name != "images" or chance.random() < 0.5:
            spec["autogen"] = {"podControllers": {"controllers": []}}
        kind = "NamespacedMutatingPolicy" if place else "MutatingPolicy"
        metadata = {"name": name, **({"namespace": place} if place else {})}
        api = "policies.kyverno.io/v1beta1"
        made.append({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    return made


def _excused(chance: random.Random, place: str) -> Json:
    """Of what an exception is, and what becomes of that."""
    spec: Json = {}
    match: Json = {}
    if chance.random() < 0.3:
        chosen = chance.sample(KINDS, 3)
        match["kinds"] = [{"apiGroups": [group], "kinds": [kind]} for group, kind in chosen]
    if chance.random() < 0.2:
        match["name"] = chance.choice(["subject-0", "subject-*"])
    if chance.random() < 0.2:
        match["labelSelector"] = {"matchLabels": {"app": "x"}}
    if not place and chance.random() < 0.5:
        match["namespaces"] = chance.sample(NAMESPACES, chance.randint(1, 2))
    if chance.random() < 0.3:
        spec["violations"] = [{"message": chance.choice(["main*", "*latest*", "no label*"])}]
    if chance.random() < 0.3:
        spec["parts"] = chance.choice(
            [{"containers": ["main"]}, {"images": ["a:latest"]}, {"paths": ["metadata.labels"]}]
        )
    if chance.random() < 0.3:
        expression = chance.choice(["object.kind != ''", "object.metadata.labels.app == 'x'"])
        spec["matchConditions"] = [{"name": "c", "expression": expression}]
    if chance.random() < 0.5:
        spec["effect"] = chance.choice(["skip", "warn", "dryrun"])
    if chance.random() < 0.1:
        spec["expires"] = "2020-01-01T00:00:00Z"
    if match or not spec.keys() & {"violations", "parts", "matchConditions"}:
        spec["match"] = match or {"name": "subject-*"}
    return spec


def _config(chance: random.Random) -> Json:
    processes = chance.choice([["*"], ["webhook", "audit"], ["mutation-webhook"]])
    match = {"excludedNamespaces": [chance.choice([*NAMESPACES, "kube-*"])], "processes": processes}
    return config(match=[match], namespace="gatekeeper-system")


def _object(chance: random.Random, number: int) -> Json:
    group, kind = chance.choice(KINDS)
    metadata: Json = {"name": f"subject-{number}", "namespace": chance.choice(NAMESPACES)}
    labels = {name: "x" for name in ("owner", "tier", "app") if chance.random() < 0.4}
    if labels:
        metadata["labels"] = labels
    container: Json = {"name": "main", "image": chance.choice(["a:1", "a:latest"])}
    if chance.random() < 0.5:
        container["securityContext"] = {"privileged": chance.random() < 0.6}
    pod = {"containers": [container]}
    made: Json = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": metadata,
    }
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    if kind == "Pod":
        made["spec"] = pod
    elif kind == "CronJob":
        made["spec"] = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    elif kind in ("Deployment", "Job"):
        made["spec"] = {"template": template}
    return made
