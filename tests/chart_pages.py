"""``python -m tests.chart_pages``: what of the chart is made of other files.

That is values.schema.json and README, made of values.yaml; its copies of CRDs and dashboards; the
list of CRDs for Kustomize; and the kinds of statuses in the rights, here and for Kustomize.

The comment above a value says what it is for; its default says its type. What more a schema can
say of a value is in ``BOUNDS``. A value without a comment is an error, so that each is described.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

import yaml

from tests.programs import ROOT
from webhook.decisions.declaration import SETTING, Declared
from webhook.decisions.exporter.settings import ExporterSettings
from webhook.decisions.rules import RecordRule, RecordSelection
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sinks.sink import TYPES as SINKS
from webhook.policy_kinds.known import STATUS_KINDS

MANIFESTS = ROOT / "manifests"
CHART = MANIFESTS / "helm" / "waddle"
KUSTOMIZATION = "kustomization.yaml"
RIGHTS = tuple(
    f"{folder}/{name}"
    for folder in ("templates", "../../base")
    for name in ("rbac.yaml", "audit-rbac.yaml")
)
STATUSES = re.compile(
    r"(  - apiGroups: \[status\.gatekeeper\.sh\]\n    resources:\n)(?:      - \w+\n)+"
)

Json = dict[str, Any]

TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}

FREE = {
    *("affinity", "nodeSelector", "podAnnotations", "podLabels", "resources", "audit.resources"),
    *("webhook.annotations", "webhook.objectSelector", "serviceMonitor.labels"),
    *("dashboards.labels", "decisions.server", "decisions.sidecarResources"),
    *("decisions.exporter.resources", "console.resources", "imageProvider.resources"),
    "podSecurityContext",
    *("securityContext", "alerts.labels", "podMonitor.labels"),
}
"""Objects that are Kubernetes' or another file's: their keys are not the chart's to say."""

QUANTITY = {"type": ["string", "integer"], "pattern": r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?$"}
NAME = {"pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", "maxLength": 253}
PREFIX = {"pattern": r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$", "maxLength": 32}  # of a Service's name
SECRET = NAME | {"minLength": 1}
ADDRESS = {"pattern": "^(https://[^/?#@ ]+(/[^?# ]*)?)?$"}
POLICY = {"enum": ["Ignore", "Fail"]}
SECONDS = {"minimum": 1, "maximum": 30}  # the API server's own bounds
WORDS = {"items": {"type": "string"}}
OBJECTS = {"items": {"type": "object"}}
NAMED = {"items": {"type": "object", "required": ["name"]}}
PORT = {"minimum": 1024, "maximum": 65_535}  # below it a user of no name may not listen
INTERVAL = {"pattern": "^[0-9]+(ms|s|m|h)$"}
TEXTS = {"additionalProperties": {"type": "string"}}


def of_declared(shape: type[Any], **more: Json) -> Json:
    """The schema of a mapping in a configuration file, by the fields that it is read into."""
    root: Json = {"type": "object", "additionalProperties": False, "properties": {}}
    for item in fields(shape):
        declared = item.metadata.get(SETTING)
        if declared is None:
            continue
        *above, key = declared.key_of(item.name)
        at = root
        for part in above:
            at = at["properties"].setdefault(part, root | {"properties": {}})
        at["properties"][key] = of_setting(item, declared)
    root["properties"] |= more
    return root


def of_setting(item: Field[Any], declared: Declared) -> Json:
    """Returns the schema of a setting: its bounds, its words or the type of its default."""
    default = "" if item.default is MISSING else item.default
    if item.default_factory is not MISSING:
        default = item.default_factory()
    text: Json = {"type": "string"}
    if declared.words:
        text = {"enum": list(declared.words)}
    if isinstance(default, tuple | frozenset):
        return {"type": "array", "items": text}
    if isinstance(default, dict):
        return {"type": "object", **TEXTS}
    if isinstance(default, str):
        return text
    bounds = {"minimum": declared.least, "maximum": declared.most}
    return {
        "type": TYPES[type(default)],
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


SINK: Json = {
    "type": "object",
    "required": ["name", "type"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "type": {"enum": sorted(SINKS)},
        "format": {"enum": ["decision", "gatekeeper"]},
        "select": of_declared(RecordSelection),
        "settings": {"type": "object"},
        "batch": of_declared(DrainSettings),
        "deadLetterBytes": {"type": "integer", "minimum": 0},
    },
}
SERVER = of_declared(
    ExporterSettings,
    sidecarURL={},  # told by a template, in words of its own
    tls={},
    mask={"type": "array", "items": {"type": "string"}},
    maskKinds={
        "type": "array",
        "items": {
            "type": "object",
            "required": ["kinds", "paths"],
            "additionalProperties": False,
            "properties": {
                "kinds": {"type": "array", "items": {"type": "string"}},
                "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            },
        },
    },
    rules={"type": "array", "items": of_declared(RecordRule)},
)
QUEUE_BYTES = 4 * LogLimits().segment_bytes  # with less no sidecar starts
OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]

BOUNDS: dict[str, Json] = {
    "fullnameOverride": PREFIX,
    "nameOverride": PREFIX,
    "replicas": {"minimum": 0},
    "image.digest": {"pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
    "image.pullSecrets": OBJECTS,
    "operations": {
        "items": {"enum": ["webhook", "status", "generate"]},
        "contains": {"const": "webhook"},  # or nobody answers the webhook
        "uniqueItems": True,
    },
    "defaultWaitForVAPBGeneration": {"minimum": 0},
    "kyverno.policies": {"enum": ["off", "enforce", "audit"]},
    "vapGenerationMode": {"enum": ["template", "constraint"]},
    "shutdownDelaySeconds": {"minimum": 0},
    "shutdownGraceSeconds": {"minimum": 0},
    "exemptNamespaces": WORDS,
    "disabledBuiltins": WORDS,
    "extraArgs": WORDS,
    "audit.replicas": {"minimum": 0},
    "audit.intervalSeconds": {"minimum": 0},
    "audit.constraintViolationsLimit": {"minimum": 0},
    "audit.chunkSize": {"minimum": 0},
    "audit.extraArgs": WORDS,
    "mutation.failurePolicy": POLICY,
    "mutation.timeoutSeconds": SECONDS,
    "mutation.reinvocationPolicy": {"enum": ["Never", "IfNeeded"]},
    "mutation.excludedNamespaces": WORDS,
    "mutation.matchConditions": OBJECTS,
    "webhook.failurePolicy": POLICY,
    "webhook.timeoutSeconds": SECONDS,
    "webhook.failClosedTimeoutSeconds": SECONDS,
    "webhook.checkIgnoreFailurePolicy": POLICY,
    "webhook.rules": {"enum": ["static", "policies"]},
    "webhook.operations": {"items": {"enum": OPERATIONS}, "uniqueItems": True, "minItems": 1},
    "webhook.excludedNamespaces": WORDS,
    "webhook.failClosedExcludedNamespaces": WORDS,
    "webhook.matchConditions": OBJECTS,
    "console.allowHosts": WORDS,
    "console.extraArgs": WORDS,
    "console.oidc.issuerURL": ADDRESS,
    "console.oidc.redirectURL": ADDRESS,
    "console.oidc.secret": SECRET,
    "console.oidc.sessionMinutes": {"minimum": 1, "maximum": 10_080},
    "imageProvider.replicas": {"minimum": 0},
    "imageProvider.certificateSecret": SECRET,
    "imageProvider.caBundle": {"pattern": "^[A-Za-z0-9+/=]*$"},
    "imageProvider.keySecrets": WORDS,
    "imageProvider.registrySecrets": WORDS,
    "imageProvider.extraArgs": WORDS,
    "telemetry.endpoint": {"pattern": "^((grpcs?|https?)://[^/?#@ ]+(/[^?# ]*)?)?$"},
    "telemetry.metricInterval": {"pattern": "^[1-9][0-9]*(s|m)$"},
    "telemetry.samplesPerMillion": {"minimum": 0, "maximum": 1_000_000},
    "certificates.existingSecret": NAME,
    "resourceQuota.pods": {"minimum": 1},
    **dict.fromkeys(("ports.admission", "ports.health", "ports.metrics"), PORT),
    "dnsPolicy": {"enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default"]},
    **dict.fromkeys(("extraEnv", "extraVolumes", "extraVolumeMounts"), NAMED),
    "autoscaling.minReplicas": {"minimum": 1},
    "autoscaling.maxReplicas": {"minimum": 1},
    "autoscaling.averageCpu": QUANTITY,
    **dict.fromkeys(("serviceMonitor.interval", "podMonitor.interval"), INTERVAL),
    **dict.fromkeys(("serviceMonitor.labels", "podMonitor.labels", "alerts.labels"), TEXTS),
    "decisions.mode": {"enum": ["", "sidecar", "exporter"]},
    "decisions.format": {"enum": ["decision", "gatekeeper"]},
    "decisions.server": SERVER,
    "decisions.sinks": {"items": SINK, "minItems": 1},
    "decisions.sinksSecret": NAME,
    "externalData.trust.namespace": NAME,
    **dict.fromkeys(("decisions.exporter.serverSecret", "decisions.exporter.clientSecret"), SECRET),
    "externalData.trust.secret": SECRET,
    "decisions.queue.whenFull": {"enum": ["block", "dropOldest"]},
    "decisions.queue.maxBytes": {"minimum": QUEUE_BYTES},
    "decisions.auditReport.maxRuns": {"minimum": 1},
    "decisions.exporter.maxBytes": {"minimum": QUEUE_BYTES},
    "tolerations": OBJECTS,
    "topologySpreadConstraints": OBJECTS,
    **dict.fromkeys(("dashboards.labels", "nodeSelector", "podAnnotations", "podLabels"), TEXTS),
    **dict.fromkeys(
        (
            *("decisions.queue.storage", "decisions.queue.sizeLimit"),
            *("decisions.auditReport.storage", "decisions.exporter.storage"),
        ),
        QUANTITY,
    ),
}
"""Bounds of values beyond the type of their default, by path."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that can be set, or a group of such."""

    path: str
    default: Any
    description: str
    is_group: bool


class UndescribedError(Exception):
    """A value has no comment."""


def values(text: str) -> Iterator[Value]:
    """Every value of a values.yaml in its order, a group before what is in it."""
    lines = text.splitlines()

    def walk(node: yaml.MappingNode, above: str) -> Iterator[Value]:
        for key, value in node.value:
            path = f"{above}{key.value}"
            group = isinstance(value, yaml.MappingNode) and path not in FREE
            written = yaml.serialize(value, Dumper=yaml.CSafeDumper)
            default = yaml.load(written, yaml.CSafeLoader)
            described = comment_above(lines, key.start_mark.line)
            if not described and not group:
                raise UndescribedError(path)
            yield Value(path, default, described, group)
            if group:
                yield from walk(value, f"{path}.")

    root = yaml.compose(text, yaml.CSafeLoader)
    assert isinstance(root, yaml.MappingNode)
    yield from walk(root, "")


def comment_above(lines: list[str], line: int) -> str:
    """The comment that ends right above a line, as one text."""
    found: list[str] = []
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].lstrip().removeprefix("#").strip())
    return " ".join(found)


def schema(text: str) -> str:
    """The schema that `helm install`, `upgrade`, `template` and `lint` hold values to."""
    top = "https://json-schema.org/draft-07/schema#"
    root: Json = {"$schema": top, "title": "Values of the chart waddle", "type": "object"}
    root |= {"additionalProperties": False, "properties": {}}
    # Values of a chart that has this one as a part.
    part = "Of a chart that has this one as a part."
    root["properties"]["global"] = {"type": "object", "description": part}
    root["properties"]["enabled"] = {"type": "boolean", "description": part}
    for value in values(text):
        *above, name = value.path.split(".")
        at = root
        for part in above:
            at = at["properties"][part]
        found: Json = {"description": value.description} if value.description else {}
        found["type"] = TYPES[type(value.default)]
        if value.is_group:
            found |= {"additionalProperties": False, "properties": {}}
        else:
            found["default"] = value.default
            found |= BOUNDS.get(value.path, {})
        at["properties"][name] = found
    return json.dumps(root, indent=2) + "\n"


README = """# Chart of Waddle

<!-- Made by `python -m tests.chart_pages` of values.yaml; a test compares. -->

```console
$ helm install waddle manifests/helm/waddle --namespace waddle-system --create-namespace --set image.repository=REGISTRY/waddle
$ helm test waddle --namespace waddle-system
```

What it makes is what `manifests/base` makes: [operating](../../../docs/operating.md), [removing](../../../docs/removing.md). A value that it does not know, or of another type, fails the install.

| value | default | what it is |
|---|---|---|
"""


def readme(text: str) -> str:
    """The page of all values."""
    rows = []
    for value in values(text):
        if not value.is_group:
            shown = json.dumps(value.default)
            default = "(see values.yaml)" if len(shown) > 60 else f"`{shown}`"
            description = value.description
            if choices := BOUNDS.get(value.path, {}).get("enum"):
                description += (
                    " One of " + ", ".join(f"`{choice}`" for choice in choices if choice) + "."
                )
            escaped = description.replace("|", "\\|")
            rows.append(f"| `{value.path}` | {default} | {escaped} |\n")
    return README + "".join(rows)


def pages() -> dict[str, str]:
    """Each made file by its path from the chart."""
    text = (CHART / "values.yaml").read_text()
    copied = {
        f"{path.parent.name}/{path.name}": path.read_text()
        for pattern in ("crds/*.yaml", "dashboards/*.json")
        for path in sorted(MANIFESTS.glob(pattern))
        if path.name != KUSTOMIZATION
    }
    crds = [name.removeprefix("crds/") for name in copied if name.startswith("crds/")]
    listed = "".join(f"  - {name}\n" for name in crds)
    kustomization = (
        f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}"
    )
    statuses = "".join(f"      - {kind.plural}\n" for kind in STATUS_KINDS)
    rights = {
        name: STATUSES.sub(rf"\g<1>{statuses}", (CHART / name).read_text()) for name in RIGHTS
    }
    pages = {"values.schema.json": schema(text), "README.md": readme(text), **rights}
    return {**pages, **copied, f"../../crds/{KUSTOMIZATION}": kustomization}


def main() -> None:
    """Write them."""
    for name, page in pages().items():
        (CHART / name).write_text(page)


if __name__ == "__main__":
    main()
