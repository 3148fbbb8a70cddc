"""The templates and constraints of cluster worlds, small, and compiled once for all of them."""

import contextlib
import functools
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.api_server import Json
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator
from webhook.constraint.errors import MemberFault
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.template import Code, Template
from webhook.rego.code_cache import CodeCache

KINDS = ("Alpha", "Beta")

BROKEN = 3
"""The variant that cannot be enforced, after those that can."""

WITHOUT_POLICY = 2
"""The variant of templates of which no policy of the API server's own is to be made."""

BEYOND = 4
"""The variant of a template that goes beyond the bounds of a trial, in worlds that have some."""

_BEYOND_TEXT = "# beyond its bounds"
_PADDING = 40_000
"""Characters with which it is large (:data:`webhook.trials.trials.LARGE_BYTES`)."""


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


def template(kind: str, variant: int, *, number: int = 0, large: bool = False) -> Json:
    """A template; variants are generations of it, and the last ones cannot be enforced.

    Of those that are beyond their bounds each ``number`` has a text of its own.
    """
    rule = f'violation[{{"msg": "{variant}"}}] {{ input.parameters.word == "{variant}" }}'
    if variant == BROKEN:
        rule = "violation["
    elif variant == BEYOND:
        rule += f"\n#{'#' * _PADDING if large else ''} {number}\n{_BEYOND_TEXT}"
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
                    "rego": f"package {kind.lower()}\n{rule}",
                }
            ],
        },
    }


def native_template(kind: str, variant: int) -> Json:
    """A template in both languages; of some generations the API server is to have a policy."""
    made = template(kind, variant)
    (target,) = made["spec"]["targets"]
    source = {
        "generateVAP": variant != WITHOUT_POLICY,
        "validations": [{"expression": f"variables.params.word != '{variant}'", "message": "no"}],
    }
    target["code"] = [
        {"engine": "Rego", "source": {"rego": target.pop("rego")}},
        {"engine": "K8sNativeValidation", "source": source},
    ]
    return made


def is_broken(spec: Mapping[str, Any]) -> bool:
    """Whether that of a template or constraint is the one that cannot be enforced."""
    if "targets" in spec:
        target = spec["targets"][0]
        rego: str = target["rego"] if "rego" in target else target["code"][0]["source"]["rego"]
        return rego.endswith("violation[") or is_beyond(rego)
    return "labelSelector" in spec["match"]


def requests_policy(spec: Mapping[str, Any]) -> bool:
    """Whether a template is to have a policy of the API server's own."""
    return bool(spec["targets"][0]["code"][1]["source"]["generateVAP"])


def is_beyond(rego: str) -> bool:
    """Whether a trial of a template's source is ended."""
    return rego.endswith(_BEYOND_TEXT)


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


def new_driver() -> RegoDriver:
    """Returns a driver for the policies of worlds."""
    return _Driver(cache=code_cache())


def new_client() -> Client:
    """A replica's policies, with none in it."""
    return Client(targets=[AdmissionTarget()], drivers=[new_driver()])


def digest_of(items: Collection[Json]) -> str:
    """The digest of a client that is told all of it at once, templates first."""
    key = orjson.dumps([_as_written(item) for item in items])
    if key not in _digests:
        client = new_client()
        for item in items:
            with contextlib.suppress(MemberFault):
                (client.add_template if "targets" in item["spec"] else client.add_constraint)(item)
        _digests[key] = client.snapshot.digest
    return _digests[key]


def _as_written(item: Json) -> Json:
    """An object without what the API server adds, and without its status."""
    metadata = {key: item["metadata"].get(key) for key in ("name", "labels", "annotations")}
    return {**item, "metadata": metadata, "status": None}
