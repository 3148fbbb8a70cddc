"""Warnings about types, for kinds that a real API server describes: kube-controller-manager's own."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Cluster
from tests.conformance.gatekeeper import library
from tests.differential.oracle import Oracle
from tests.programs import Programs
from tests.webhook.cli.in_process import waddle
from webhook.api.gvk import GroupVersionKind
from webhook.cel.check.objects import ObjectType
from webhook.cel.check.types import Type
from webhook.constraint.drivers.cel_source import CelSource, read_source
from webhook.controllers.apply.openapi import kind_type, schema_name
from webhook.generation.type_warnings import policy_type_warnings, type_warnings

KINDS = {
    GroupVersionKind("", "v1", "Pod"): "pods",
    GroupVersionKind("", "v1", "ConfigMap"): "configmaps",
    GroupVersionKind("", "v1", "Service"): "services",
    GroupVersionKind("apps", "v1", "Deployment"): "deployments",
    GroupVersionKind("networking.k8s.io", "v1", "Ingress"): "ingresses",
    GroupVersionKind(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
    ): "customresourcedefinitions",
}
Described = dict[GroupVersionKind, tuple[dict[str, Any], ObjectType]]


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[Oracle]:
    """The type checker of kube-controller-manager."""
    with Oracle(program("tests/oracles/typecheck")) as running:
        yield running


@pytest.fixture(scope="module")
def described(cluster: Cluster) -> Described:
    """Each kind as the API server describes it: for the oracle, and its type here."""
    found = {}
    for gvk in KINDS:
        group = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
        document = cluster.api.request("GET", f"/openapi/v3/{group}")
        definitions = document["components"]["schemas"]
        made = kind_type(document, gvk)
        assert made is not None
        request = {"ref": schema_name(definitions, gvk), "definitions": definitions}
        found[gvk] = request, made
    return found


def theirs(oracle: Oracle, source: CelSource, kinds: Described) -> list[dict[str, str]]:
    """Returns the warnings that the controller would write into ``status.typeChecking``."""
    rules = [
        {
            "apiGroups": [gvk.group],
            "apiVersions": [gvk.version],
            "resources": [KINDS[gvk]],
            "operations": ["*"],
        }
        for gvk in kinds
    ]
    variables = [("anyObject", "object"), ("params", "dyn(null)")]
    variables += [(one.name, one.expression) for one in source.variables]
    policy = {
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "variables": [{"name": name, "expression": text} for name, text in variables],
            "validations": [
                {"expression": one.expression, "messageExpression": one.message_expression}
                for one in source.validations
            ],
        }
    }
    schemas = {str(gvk): schema for gvk, (schema, _) in kinds.items()}
    found: list[dict[str, str]] = json.loads(oracle.line({"policy": policy, "schemas": schemas}))
    for one in found:  # types are named after the kind and a time there
        for gvk in kinds:
            one["warning"] = re.sub(rf"\b{gvk.kind}\d+\b", gvk.kind, one["warning"])
    return found


def check(oracle: Oracle, source: CelSource, kinds: Described) -> list[dict[str, str]]:
    """Asserts that both give the same warnings, and returns them."""
    mine = type_warnings(source, {gvk: made for gvk, (_, made) in kinds.items()})
    assert mine == theirs(oracle, source, kinds)
    return mine


def expressions(chance: random.Random, of: ObjectType, count: int) -> Iterator[str]:
    """Yields expressions about existing and missing fields."""
    forms = ("{} == 1", "{} == 'a'", "has({})", "{}.x == 1", "size({}) > 0", "!{}", "{} == null",
             "{}.all(x, x == 'a')", "{}.exists(x, x.name == 'a')", "{} > 1.5", "{}[0] == 'a'",
             "{}['a'] == 1", "{}.startsWith('a')", "quantity({}).sign() == 1", "{}.orValue(1) == 1",
             "{} < timestamp('2024-01-01T00:00:00Z')", "type({}) == string", "dyn({}) == 1")  # fmt: skip
    for _ in range(count):
        path, at = chance.choice(("object", "oldObject")), of.type
        for _ in range(chance.randint(1, 6)):
            path, at = step(chance, of, path, at)
        yield chance.choice(forms).format(path)


def step(chance: random.Random, of: ObjectType, path: str, at: Type) -> tuple[str, Type]:
    """A field, item or entry further."""
    if at.name == "list":
        return f"{path}[0]", at.parts[0]
    if at.name == "map":
        return (f"{path}['k']" if chance.random() < 0.5 else f"{path}.k"), at.parts[1]
    if not at.message or not of.messages[at.name]:
        return path, at
    name, found = chance.choice(sorted(of.messages[at.name].items()))
    if chance.random() < 0.08:
        name = name[:-1] + "z"
    return f"{path}{'.?' if chance.random() < 0.04 else '.'}{name}", found


def test_fields_of_real_kinds_by_chance(oracle: Oracle, described: Described) -> None:
    chance, warned, silent = random.Random(21), 0, 0
    for gvk, (_, made) in described.items():
        every = [{"expression": text} for text in expressions(chance, made, 150)]
        found = check(oracle, read_source({"validations": every}), {gvk: described[gvk]})
        warned += len(found)
        silent += len(every) - len(found)
    assert warned > 100
    assert silent > 100


def test_several_kinds_and_messages_and_variables(oracle: Oracle, described: Described) -> None:
    source = read_source(
        {
            "variables": [
                {"name": "all", "expression": "object.spec.containers"},
                {"name": "n", "expression": "object.spec.replicas"},
                {"name": "bad", "expression": "object.nope"},
            ],
            "validations": [
                {"expression": "variables.all.all(c, c.image == 'a')"},
                {"expression": "variables.n == 'a'", "messageExpression": "object.spec.replicas"},
                {"expression": "variables.bad.x", "messageExpression": "'a' + object.kind"},
                {"expression": "has(object.spec.template) || has(object.data)"},
                {"expression": "object.metadata.namespace == 'a' && authorized"},
            ],
        }
    )
    found = check(oracle, source, described)
    assert found[0]["fieldRef"] == "spec.validations[1].expression"
    assert len(found) == 4


def test_templates_of_the_public_library(oracle: Oracle, described: Described) -> None:
    """Their objects are read as ``variables.anyObject``, of which Kubernetes knows no type."""
    tried = 0
    for path in sorted(library().rglob("template.yaml")):
        (target,) = yaml.safe_load(path.read_text())["spec"]["targets"]
        for code in target.get("code", ()):
            if code["engine"] == "K8sNativeValidation":
                tried += 1
                check(oracle, read_source(code["source"]), described)
    assert tried >= 10


def test_check_shows_what_the_controller_writes_into_a_status(
    oracle: Oracle, described: Described, tmp_path: Path
) -> None:
    gvk = GroupVersionKind("apps", "v1", "Deployment")
    rule = {"apiGroups": [gvk.group], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "typed"},
        "spec": {
            "matchConstraints": {"resourceRules": [{**rule, "resources": [KINDS[gvk]]}]},
            "validations": [
                {"expression": "object.spec.replicas > 'one'"},
                {
                    "expression": "object.spec.copies == 1",
                    "messageExpression": "string(object.nope)",
                },
            ],
        },
    }
    schemas = {str(gvk): described[gvk][0]}
    found = json.loads(oracle.line({"policy": policy, "schemas": schemas}))
    assert len(found) == 3
    made = policy_type_warnings(policy, {gvk: described[gvk][1]})
    assert [one["fieldRef"] for one in made] == [one["fieldRef"] for one in found]
    policy["status"] = {"typeChecking": {"expressionWarnings": found}}
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy))
    done = waddle("check", "-f", file)
    output = done.stdout + done.stderr
    for one in found:
        begun = f"{file}:1: ValidatingAdmissionPolicy/typed: {one['fieldRef']}: "
        (line,) = [text for text in output.splitlines() if begun in text]
        assert one["warning"].splitlines()[1].removeprefix("ERROR: <input>:") in line


TYPED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: typed}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
    - {apiGroups: ["*"], apiVersions: [v1], operations: [CREATE], resources: [services]}
    - {apiGroups: [batch], apiVersions: [v1beta1], operations: [CREATE], resources: [jobs]}
  variables: [{name: copies, expression: object.spec.replicas}]
  validations:
  - expression: variables.copies > 'one'
  - expression: object.spec.replicas > 1 && authorizer.group('').resource('pods').check('get').allowed()
  - {expression: string(params.data.x) == '1', messageExpression: string(object.spec.nope)}
"""


def test_check_with_a_cluster_says_what_its_controller_would_write(
    oracle: Oracle, described: Described, cluster: Cluster, tmp_path: Path
) -> None:
    """By the schemas of the cluster, for a policy that it does not have."""
    policy = yaml.safe_load(TYPED)
    schemas = {str(gvk): schema for gvk, (schema, _) in described.items()}
    found = json.loads(oracle.line({"policy": policy, "schemas": schemas}))
    assert [one["fieldRef"] for one in found] == [
        "spec.validations[0].expression",
        "spec.validations[2].messageExpression",
    ]
    file = tmp_path / "policy.yaml"
    file.write_text(TYPED)
    done = waddle("check", "-f", file, "--cluster", "--kubeconfig", cluster.kubeconfig)
    lines = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if f"{file}:1: ValidatingAdmissionPolicy/typed: spec.validations" in line
    ]
    assert len(lines) == len(found), done
    for one, line in zip(found, lines, strict=True):
        assert f"typed: {one['fieldRef']}: apps/v1, Kind=Deployment: ERROR" in line
        assert one["warning"].splitlines()[1].removeprefix("ERROR: <input>:") in line
