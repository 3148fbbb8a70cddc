"""The templates and constraints of cluster worlds, small, and compiled once for all of them."""

import functools
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.api_server import Json
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.template import Code, Template
from webhook.rego.code_cache import CodeCache

KINDS = ("Alpha", "Beta")

BROKEN = 3
"""The variant that cannot be enforced, after those that can."""


@functools.cache
def code_cache() -> CodeCache:
    """Compiled policies, shared by all replicas of all worlds of this process."""
    folder = tempfile.TemporaryDirectory(prefix="simulation-")  # gone with the process
    cache = CodeCache(Path(folder.name))
    _folders.append(folder)
    # All of them now, before there is a world whose chance it would take.
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver(cache=cache)])
    for kind in KINDS:
        for variant in range(BROKEN):
            client.add_template(template(kind, variant))
    return cache


_folders: list[Any] = []
_compiled: dict[str, RegoEvaluator] = {}
_digests: dict[bytes, str] = {}


def template(kind: str, variant: int) -> Json:
    """A template; variants are generations of it, and the last one is broken."""
    rule = f'violation[{{"msg": "{variant}"}}] {{ input.parameters.word == "{variant}" }}'
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": kind.lower()},
        "spec": {
            "crd": {
                "spec": {
                    "names": {"kind": kind},
                    "validation": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"word": {"type": "string"}},
                        }
                    },
                }
            },
            "targets": [
                {
                    "target": "admission.k8s.gatekeeper.sh",
                    "rego": f"package {kind.lower()}\n{rule if variant < BROKEN else 'violation['}",
                }
            ],
        },
    }


def is_broken(spec: Mapping[str, Any]) -> bool:
    """Whether that of a template or constraint is the one that cannot be enforced."""
    if "targets" in spec:
        return bool(spec["targets"][0]["rego"].endswith("violation["))
    return "labelSelector" in spec["match"]


def constraint(kind: str, name: str, variant: int) -> Json:
    """A constraint of it; the last variant is broken, and yet what its CRD takes."""
    match: Json = {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]}
    if variant == BROKEN:
        match["labelSelector"] = {"matchExpressions": [{"key": "a", "operator": "Never"}]}
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "enforcementAction": "deny",
            "match": match,
            "parameters": {"word": str(variant)},
        },
    }


class _Driver(RegoDriver):
    """Gives one program for one text: worlds have the same few, and ask them for nothing."""

    def compile(self, template: Template, code: Code) -> RegoEvaluator:
        text: str = code.source["rego"]
        if text not in _compiled:
            _compiled[text] = super().compile(template, code)
        return _compiled[text]


def new_client() -> Client:
    """A replica's policies, with none in it."""
    return Client(targets=[AdmissionTarget()], drivers=[_Driver(cache=code_cache())])


def digest_of(items: Collection[Json]) -> str:
    """The digest of a client that is told all of it at once, templates first."""
    key = orjson.dumps([_said(item) for item in items])
    if key not in _digests:
        client = new_client()
        for item in items:
            (client.add_template if "targets" in item["spec"] else client.add_constraint)(item)
        _digests[key] = client.snapshot.digest
    return _digests[key]


def _said(item: Json) -> Json:
    """An object without what the API server adds, and without its status."""
    metadata = {key: item["metadata"].get(key) for key in ("name", "labels", "annotations")}
    return {**item, "metadata": metadata, "status": None}
