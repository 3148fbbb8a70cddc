"""Random sets of policies, and objects to be decided by them; a seed makes one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests import policies

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
violation[{"msg": msg}] {
  wanted := input.parameters.label
  not input.review.object.metadata.labels[wanted]
  msg := sprintf("no label %v", [wanted])
}
"""
IMAGES = """package images
violation[{"msg": msg}] {
  container := input.review.object.spec.containers[_]
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
REGO = {"NoPrivileged": PRIVILEGED, "Labelled": LABELLED, "Images": IMAGES, "Teams": TEAMS}
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
    policies += [_mutator(chance, number) for number in range(chance.randint(0, 3))]
    if chance.random() < 0.7:
        policies += _expansions(chance)
    if chance.random() < 0.4:
        policies.append(_config(chance))
    objects = tuple(_object(chance, number) for number in range(3))
    return World(seed, tuple(policies), objects)


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
    if chance.random() < 0.2:
        match["namespaceSelector"] = {"matchLabels": {"team": chance.choice(["a", "b"])}}
    if chance.random() < 0.2:
        match["labelSelector"] = {"matchLabels": {"app": "x"}}
    if chance.random() < 0.2:
        match["source"] = chance.choice(["All", "Original", "Generated"])
    return match


def _constraint(chance: random.Random, kind: str, name: str) -> Json:
    spec: Json = {"match": _match(chance)}
    if chance.random() < 0.5:
        spec["enforcementAction"] = chance.choice(["deny", "warn", "dryrun"])
    if kind == "Labelled":
        spec["parameters"] = {"label": chance.choice(["owner", "tier"])}
    return policies.constraint(kind, name, **spec)


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
    location, value = chance.choice(
        [
            ("spec.containers[name:*].securityContext.privileged", True),
            ("spec.containers[name:*].securityContext.privileged", False),
            ("spec.containers[name:*].image", "given:latest"),
        ]
    )
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": f"assign-{number}"},
        "spec": {
            "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}],
            "match": match,
            "location": location,
            "parameters": {"assign": {"value": value}},
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
    return {
        "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
        "kind": "ExpansionTemplate",
        "metadata": {"name": name},
        "spec": {
            "applyTo": [{"groups": [of[0]], "versions": ["v1"], "kinds": [of[1]]}],
            "templateSource": source,
            "generatedGVK": {"group": made[0], "version": "v1", "kind": made[1]},
        },
    }


def _config(chance: random.Random) -> Json:
    processes = chance.choice([["*"], ["webhook", "audit"], ["mutation-webhook"]])
    match = {"excludedNamespaces": [chance.choice([*NAMESPACES, "kube-*"])], "processes": processes}
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "gatekeeper-system"},
        "spec": {"match": [match]},
    }


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
