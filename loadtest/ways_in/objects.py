"""Objects that violate the shipped policies, made large, deep or odd by chance."""

import json
import random
from collections.abc import Callable
from typing import Any

from tests.behaviour.serving import thing

Json = dict[str, Any]

BODY_BYTES_MAX = 2_900_000
"""The API server's limit of one object, less the additions of a review, in bytes."""

EXPANSION = """
apiVersion: expansion.gatekeeper.sh/v1beta1
kind: ExpansionTemplate
metadata: {name: bundles}
spec:
  applyTo: [{groups: [example.com], versions: [v1], kinds: [Bundle]}]
  templateSource: spec.template
  generatedGVK: {group: "", version: v1, kind: Pod}
"""
"""Implies the template of a Bundle; no policy matches Bundles themselves."""

MUTATORS = """
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: team}
spec:
  location: metadata.labels.team
  parameters: {assign: {value: shop}}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: pull}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: spec.containers[name:*].imagePullPolicy
  parameters: {assign: {value: Always}}
"""

LISTS = ("initContainers", "containers", "ephemeralContainers")


def violating(chance: random.Random) -> tuple[str, Json]:
    """Returns a violating object, and a description of it."""
    privileged: Json = {"name": "w", "image": "b", "securityContext": {"privileged": True}}
    at = chance.choice(LISTS)
    spec: Json = {"containers": [{"name": "a", "image": "b"}], at: []}
    count = int(10 ** chance.uniform(0, 4))
    spec[at] = [{"name": f"c{number}", "image": "b"} for number in range(count)]
    spec[at].insert(chance.randrange(count + 1), privileged)
    changes = chance.sample(CHANGES, chance.randrange(3))
    how = [f"{count} {at}", *(change(chance, spec, privileged) for change in changes)]
    kind, obj = chance.choice(KINDS)(spec)
    if chance.random() < 0.2:
        levels = int(10 ** chance.uniform(1, 3.9))
        obj["metadata"]["managedFields"] = [{"fieldsV1": DEEP.format(levels)}]
        how.append(f"{levels} levels")
    return f"{kind} of {', '.join(how)}", obj


def _capabilities(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    count = int(10 ** chance.uniform(1, 4.7))
    where = chance.choice(("add", "drop"))
    privileged["securityContext"]["capabilities"] = {where: ["SYS_ADMIN"] * count}
    return f"{count} capabilities"


def _environment(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    count = int(10 ** chance.uniform(1, 4.5))
    privileged["env"] = [{"name": f"E{number}", "value": "x"} for number in range(count)]
    return f"{count} variables"


def _volumes(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    count = int(10 ** chance.uniform(1, 4.3))
    spec["volumes"] = [{"name": f"v{number}", "emptyDir": {}} for number in range(count)]
    return f"{count} volumes"


def _sysctls(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    count = int(10 ** chance.uniform(1, 4.3))
    listed = [{"name": f"kernel.n{number}", "value": "1"} for number in range(count)]
    spec["securityContext"] = {"sysctls": listed}
    return f"{count} sysctls"


def _text(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    count = int(10 ** chance.uniform(3, 6.3))
    privileged["image"] = chance.choice(("b", "/", "ä", "a:", "\\", '"', "<")) * count
    return f"an image of {count} characters"


def _numbers(chance: random.Random, spec: Json, privileged: Json) -> str:  # noqa: ARG001
    number = chance.choice((2**63 - 1, -(2**63), 10**300, 1e308, 5e-324, 10**4000))
    privileged["securityContext"]["runAsUser"] = number
    privileged["ports"] = [{"hostPort": number, "containerPort": 1}]
    return "odd numbers"


CHANGES: tuple[Callable[[random.Random, Json, Json], str], ...] = (
    _capabilities,
    _environment,
    _volumes,
    _sysctls,
    _text,
    _numbers,
)

DEEP = "@deep {}@"
"""Stands for so many levels, until the text is written: Python's own writer is recursive."""


def _pod(spec: Json) -> tuple[str, Json]:
    return "Pod", {**thing("Pod", "web", namespace="default"), "spec": spec}


def _deployment(spec: Json) -> tuple[str, Json]:
    obj = thing("Deployment", "web", "apps/v1", namespace="default")
    return "Deployment", {**obj, "spec": {"template": {"spec": spec}}}


def _cron_job(spec: Json) -> tuple[str, Json]:
    obj = thing("CronJob", "web", "batch/v1", namespace="default")
    template = {"spec": {"template": {"spec": spec}}}
    return "CronJob", {**obj, "spec": {"jobTemplate": template}}


def _bundle(spec: Json) -> tuple[str, Json]:
    obj = thing("Bundle", "web", "example.com/v1", namespace="default")
    return "Bundle", {**obj, "spec": {"template": {"spec": spec}}}


FIELDS = {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"}


def valid(obj: Json) -> Json:
    """The same, with what an API server asks of its kind."""
    obj["metadata"]["namespace"] = "attacked"
    for entry in obj["metadata"].get("managedFields", ()):
        entry |= {**FIELDS, "apiVersion": "v1", "time": "2024-01-01T00:00:00Z"}
    labels = {"app": "web"}
    if obj["kind"] == "Deployment":
        obj["spec"]["selector"] = {"matchLabels": labels}
        obj["spec"]["template"]["metadata"] = {"labels": labels}
    if obj["kind"] == "CronJob":
        obj["spec"]["schedule"] = "0 0 * * *"
        obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return obj


KINDS = (_pod, _pod, _deployment, _cron_job, _bundle)


def written(review: Json, chance: random.Random) -> bytes:
    """A review as an API server writes it, some of its texts in other spellings."""
    ordered = {
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "request": review["request"],
    }
    return encoded(ordered, chance)


def encoded(document: Json, chance: random.Random) -> bytes:
    """A document as JSON, some of its texts in other spellings."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=chance.random() < 0.5)
    begin = text.find("@deep ")
    if begin >= 0:
        end = text.index("@", begin + 1)
        levels = int(text[begin + 6 : end])
        deep = '{"f:a":' * levels + "{}" + "}" * levels
        text = text[: begin - 1] + deep + text[end + 2 :]
    if chance.random() < 0.2:
        text = text.replace('"privileged":true', '"\\u0070rivileged":true')
    return text.encode()
