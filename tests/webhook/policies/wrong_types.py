"""Documents with one value of a wrong type."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from tests.policies import config
from tests.webhook.constraint.policies import expands

CRDS = Path(__file__).resolve().parents[3] / "manifests" / "crds"
SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
MATCH = {
    "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
    "namespaces": ["a"],
    "excludedNamespaces": ["b-*"],
    "labelSelector": SELECTOR,
    "namespaceSelector": SELECTOR,
    "name": "a*",
    "scope": "Namespaced",
    "source": "Original",
}
APPLY_TO = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]
TESTS = [{"subPath": "spec.a", "condition": "MustExist"}]


def mutator(kind, version, location, parameters, **spec):
    """A mutator with every field."""
    return {
        "apiVersion": f"mutations.gatekeeper.sh/{version}",
        "kind": kind,
        "metadata": {"name": "m"},
        "spec": {"location": location, "match": MATCH, "parameters": parameters, **spec},
    }


WHOLE = {
    "assign": mutator(
        "Assign",
        "v1",
        "spec.a.b",
        {"assign": {"value": "x"}, "pathTests": TESTS},
        applyTo=APPLY_TO,
    ),
    "assignmetadata": mutator(
        "AssignMetadata", "v1", "metadata.labels.a", {"assign": {"value": "x"}}
    ),
    "modifyset": mutator(
        "ModifySet",
        "v1",
        "spec.a.b",
        {"operation": "merge", "values": {"fromList": ["x"]}, "pathTests": TESTS},
        applyTo=APPLY_TO,
    ),
    "assignimage": mutator(
        "AssignImage",
        "v1alpha1",
        "spec.a.image",
        {"assignDomain": "a.b", "assignPath": "c/d", "assignTag": ":v1", "pathTests": TESTS},
        applyTo=APPLY_TO,
    ),
    "expansiontemplate": expands(enforcementAction="warn"),
    "configs": config(
        match=[{"excludedNamespaces": ["a", "b-*"], "processes": ["*", "audit"]}],
        readiness={"statsEnabled": True},
        sync={"syncOnly": [{"group": "", "version": "v1", "kind": "Pod"}]},
        validation={
            "traces": [
                {"dump": "All", "user": "u", "kind": {"group": "", "version": "v1", "kind": ""}}
            ]
        },
        namespace="gatekeeper-system",
    ),
    "syncsets": {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "s"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "Pod"}]},
    },
}


def schema_of(crd, version):
    """The schema of a version of a kind, as an API server has it."""
    document = yaml.safe_load((CRDS / f"{crd}.yaml").read_text())
    versions = {one["name"]: one for one in document["spec"]["versions"]}
    return versions[version]["schema"]["openAPIV3Schema"]


def places(value, path=()):
    """The path to each value within another."""
    yield path
    kinds: dict[type, Any] = {dict: dict.items, list: enumerate}
    items = kinds.get(type(value))
    for key, item in items(value) if items else ():
        yield from places(item, (*path, key))


def changed(document, path, value):
    """The document with another value at a place."""
    result = deepcopy(document)
    owner = result
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return result
