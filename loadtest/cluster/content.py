"""Contents of a large cluster: many copies of the library's templates, constraints and data."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from tests.system.replicas import CONSTRAINTS, TEMPLATES, constraint, template

Object = dict[str, Any]

LIBRARY = Path(__file__).resolve().parent.parent / "policies" / "p12"

CANARY = "canary"
"""The label that only the last of all constraints denies."""

CANARY_KIND = "ZCanary"

SYNC_SET = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets/data"

PACKAGE = re.compile(r"^package \S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Content:
    """Templates and constraints; the last constraint is the canary."""

    templates: tuple[Object, ...]
    constraints: tuple[Object, ...]


def policies(templates: int, constraints: int) -> Content:
    """Returns so many templates and constraints, copies of the library's with their own names.

    Every template has as many constraints as any other, or one more. The canary's
    is the last template, and the canary is the last constraint of the last kind.
    """
    assert 0 < templates <= constraints
    made = list(islice(_library(), templates - 1))
    kinds = [one for _, one in made]
    # The canary's kind has the rest, which is at least one.
    count = (constraints - 1) // templates * (templates - 1)
    many = [_numbered(kinds[number % len(kinds)], number) for number in range(count)]
    rest = constraints - count
    others = [constraint(f"z{number:05}", f"other {number}", CANARY_KIND) for number in range(rest)]
    others[-1]["spec"]["parameters"]["word"] = CANARY
    return Content((*(one for one, _ in made), template(CANARY_KIND)), (*many, *others))


def _library() -> Iterator[tuple[Object, Object]]:
    """Templates without end, each with a constraint of its own."""
    templates = list(yaml.safe_load_all((LIBRARY / "templates.yaml").read_text()))
    constraints = {
        one["kind"]: one for one in yaml.safe_load_all((LIBRARY / "constraints.yaml").read_text())
    }
    number = 0
    while True:
        for source in templates:
            kind = source["spec"]["crd"]["spec"]["names"]["kind"]
            yield (
                _renamed(source, f"{kind}{number:04}"),
                _of_kind(constraints[kind], f"{kind}{number:04}"),
            )
            number += 1


def _renamed(source: Object, kind: str) -> Object:
    """The template under another kind, its Rego in a package of its own."""
    made: Object = json.loads(json.dumps(source))
    made["metadata"]["name"] = kind.lower()
    made["spec"]["crd"]["spec"]["names"]["kind"] = kind
    for target in made["spec"]["targets"]:
        for place in (target, *(code["source"] for code in target.get("code", ()))):
            if "rego" in place:
                place["rego"] = PACKAGE.sub(f"package {kind.lower()}", place["rego"], count=1)
    return made


def _of_kind(source: Object, kind: str) -> Object:
    made: Object = json.loads(json.dumps(source))
    made["kind"] = kind
    return made


def _numbered(source: Object, number: int) -> Object:
    made: Object = json.loads(json.dumps(source))
    made["metadata"]["name"] = f"c{number:05}"
    return made


def config_maps(count: int, namespace: str) -> Iterator[tuple[str, Object]]:
    """ConfigMaps with their paths, for referential data; the last one is the canary."""
    for number in range(count):
        name = CANARY if number == count - 1 else f"data-{number:05}"
        yield (
            f"/api/v1/namespaces/{namespace}/configmaps",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": {"team": "payments"}},
                "data": {"owner": f"owner-{number}", "note": "x" * 200},
            },
        )


def sync_set() -> Object:
    """Returns the SyncSet of the data."""
    return {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "data"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
    }


def template_requests(content: Content) -> Iterator[tuple[str, Object]]:
    """The templates, each with the path that it is posted to."""
    return ((TEMPLATES, one) for one in content.templates)


def constraint_requests(content: Content) -> Iterator[tuple[str, Object]]:
    """The constraints, each with the path that it is posted to."""
    return ((f"{CONSTRAINTS}/{one['kind'].lower()}", one) for one in content.constraints)
