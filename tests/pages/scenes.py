"""The folders that the pages' commands are typed in: whatever their words name is there."""

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.programs import ROOT
from tests.webhook.kyverno.making import LABEL, applied, document
from tests.webhook.policies.old_library import LIBRARY
from tests.webhook.policies.old_library import constraint as old_constraint
from tests.webhook.policies.old_library import template as old_template

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: app, image: "app:v1"}]}
"""
BUCKET = {
    "address": "aws_s3_bucket_acl.logs",
    "mode": "managed",
    "type": "aws_s3_bucket_acl",
    "name": "logs",
    "provider_name": "registry.terraform.io/hashicorp/aws",
    "change": {"actions": ["create"], "before": None, "after": {"acl": "public-read"}},
}
PLAN = {"format_version": "1.2", "terraform_version": "1.9.0", "resource_changes": [BUCKET]}
ASSET = {"name": "//a/one", "asset_type": "t", "ancestry_path": "organizations/1", "resource": {}}
GCP = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: everyasset}
spec:
  crd: {spec: {names: {kind: EveryAsset}}}
  targets:
    - target: validation.gcp.forsetisecurity.org
      rego: |
        package everyasset
        violation[{"msg": msg}] { msg := sprintf("%v is an asset", [input.review.name]) }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: EveryAsset
metadata: {name: every}
spec: {}
"""
CONFTEST = """package main
import rego.v1
deny contains "containers must not run as root" if {
    input.kind == "Deployment"
    not input.spec.template.spec.securityContext.runAsNonRoot
}
deny contains "use a tag" if { some line in input; line.Cmd == "from"; endswith(line.Value[0], "latest") }
deny contains "a public bucket" if input.resource_changes[_].change.after.acl == "public-read"
test_denies if deny with input as {"kind": "Deployment"}
"""
RECORD = {
    "eventType": "decision",
    "enforcementPoint": "validation.gatekeeper.sh",
    "sequence": 1,
    "verdict": "deny",
    "operation": "CREATE",
    "resourceKind": "Pod",
    "resourceNamespace": "shop",
    "resourceName": "web",
    "object": yaml.safe_load(POD),
    "constraintsEvaluated": 1,
    "results": [
        {
            "constraint": {"kind": "RequiredLabel", "name": "needs-owner"},
            "enforcementAction": "deny",
            "message": "label <owner> is missing",
        }
    ],
}
SIDECAR_READY = '{"level":"info","logger":"sidecar","msg":"sidecar ready","records":0}\n'
"""A line of the sidecar's own, which kubectl gives beside its records."""
LOGGED = {
    "event_type": "violation",
    "process": "admission",
    "constraint_kind": "RequiredLabel",
    "constraint_name": "needs-owner",
    "constraint_action": "deny",
    "msg": "denied admission: label <owner> is missing",
    "request_operation": "CREATE",
    "resource_kind": "Pod",
    "resource_namespace": "shop",
    "resource_name": "web",
}


def write(folder: Path, **files: str) -> None:
    """Files by their paths."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def nothing(folder: Path) -> None:
    """A command that names no file."""
    del folder


def checkout(folder: Path) -> None:
    """Writes the files of the repository that the pages name."""
    for name in ("policies", "manifests", "docs", "loadtest"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "Dockerfile").write_text("FROM debian:latest\nCMD true\n")


def cel(folder: Path) -> None:
    """An object, and templates that have policies of the API server's own."""
    write(folder, **{"pod.yaml": POD})
    for name in ("required-labels", "replicas"):
        shutil.copytree(ROOT / "policies" / "general" / name, folder / "policies" / name)


def admission_policies(folder: Path) -> None:
    """The files of the page about ValidatingAdmissionPolicies."""
    page = (ROOT / "docs" / "admission-policies.md").read_text()
    shown = r"`([\w/.]+)`[^`\n]*(?:`[^`\n]*`[^`\n]*)?:\n\n```yaml\n(.*?)^```"
    files = dict(re.findall(shown, page, re.MULTILINE | re.DOTALL))
    (more,) = re.findall(r"for the suite:\n\n```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    files["suite.yaml"] += more
    labelled = files["deployment.yaml"].replace("shop}", "shop, labels: {team: shop}}")
    write(folder, **files, **{"labelled.yaml": labelled})


def conftest(folder: Path) -> None:
    """A policy about several formats, and files of them."""
    write(
        folder,
        **{
            "policy/main.rego": CONFTEST,
            "deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
            "Dockerfile": "FROM debian:latest\n",
            "main.tf": 'resource "aws_s3_bucket" "logs" { bucket = "logs" }\n',
            "plan.json": json.dumps(PLAN),
        },
    )


def rego(folder: Path) -> None:
    """A package with a test, and an input."""
    source = 'package k8s\n\nviolation contains "no owner" if not input.owner\n\n'
    test = "test_violation if violation with input as {}\n"
    write(folder, **{"policy/p.rego": source + test, "input.json": "{}"})
    with tarfile.open(folder / "bundle.tar.gz", "w:gz") as bundle:
        bundle.add(folder / "policy" / "p.rego", "p.rego")


def unformatted(folder: Path) -> None:
    """A policy that is not laid out."""
    write(folder, **{"policy/p.rego": "package  p\n"})


def pipelines(folder: Path) -> None:
    """Policies with their suites, for objects and for plans, and manifests."""
    for name in ("general/required-labels", "terraform-aws"):
        shutil.copytree(ROOT / "policies" / name, folder / "policies" / name)
    sample = ROOT / "policies/general/required-labels/samples/required-labels/constraint.yaml"
    shutil.copy(sample, folder / "policies" / "owners.yaml")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
    write(folder, **{"manifests/namespace.yaml": namespace, "plan.json": json.dumps(PLAN)})


def targets(folder: Path) -> None:
    """Policies about assets, of both forms."""
    old = yaml.safe_dump_all([old_template(), old_constraint()])
    write(
        folder,
        **{
            "policies/every.yaml": GCP,
            "assets.json": json.dumps([ASSET]),
            "policy-library/lib/lib.rego": LIBRARY,
            "policy-library/policies/old.yaml": old,
            "plan.json": json.dumps(PLAN),
        },
    )


def migrating(folder: Path) -> None:
    """Policies of Gatekeeper's, a recorded decision, and what Gatekeeper logged of it."""
    write(
        folder,
        **{
            "policies/template.yaml": REQUIRED_LABELS,
            "policies/constraint.yaml": constraint("needs-owner", "owner"),
            "deployment.yaml": POD,
            "decisions.jsonl": SIDECAR_READY + json.dumps(RECORD) + "\n",
            "gatekeeper.log": json.dumps(LOGGED) + "\n",
        },
    )


def kyverno(folder: Path) -> None:
    """A policy of Kyverno's in CEL, with its test."""
    rule = '{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}'
    write(
        folder,
        **{
            "kyverno-policies/policy.yaml": (
                "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\n"
                "metadata: {name: no-host-network}\nspec:\n"
                f"  matchConstraints: {{resourceRules: [{rule}]}}\n"
                '  validations: [{expression: "!object.spec.?hostNetwork.orValue(false)"}]\n'
            ),
            "kyverno-policies/pod.yaml": POD,
            "manifests/pod.yaml": POD.replace("{containers", "{hostNetwork: true, containers", 1),
            "kyverno-policies/kyverno-test.yaml": (
                "kind: Test\nmetadata: {name: one}\npolicies: [policy.yaml]\n"
                "resources: [pod.yaml]\nresults:\n- {policy: no-host-network, result: pass}\n"
            ),
        },
    )


def kyverno_mutating(folder: Path) -> None:
    """The same with a policy that changes objects."""
    kyverno(folder)
    made = {**document(applied(LABEL)), "metadata": {"name": "team"}}
    write(folder, **{"kyverno-policies/team.yaml": yaml.safe_dump(made)})


def kyverno_plan(folder: Path) -> None:
    """A policy of Kyverno's for documents, and one that it denies."""
    write(
        folder,
        **{
            "kyverno-policies/policy.yaml": (
                "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\n"
                "metadata: {name: small}\nspec:\n  evaluation: {mode: JSON}\n"
                "  validations: [{expression: object.size < 3, message: too large}]\n"
            ),
            "plan.json": '{"size": 4}',
        },
    )


def kyverno_images(folder: Path) -> None:
    """A rule of Kyverno's about signed images, and a folder for what it becomes."""
    (folder / "images").mkdir()
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "signed"},
        "spec": {
            "rules": [
                {
                    "name": "ours",
                    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                    "verifyImages": [
                        {
                            "imageReferences": ["registry.example/team/*"],
                            "attestors": [
                                {
                                    "entries": [
                                        {"keyless": {"subject": "https://a/*", "issuer": "b"}}
                                    ]
                                }
                            ],
                        }
                    ],
                }
            ]
        },
    }
    write(folder, **{"kyverno-policies/policy.yaml": yaml.safe_dump(document)})


def kubewarden(folder: Path) -> None:
    """A policy group of Kubewarden's."""
    policies = {"own": {"module": "registry://registry.example.com/my-policy:v1"}}
    document = {
        "apiVersion": "policies.kubewarden.io/v1",
        "kind": "ClusterAdmissionPolicyGroup",
        "metadata": {"name": "own"},
        "spec": {"policies": policies, "expression": "own()"},
    }
    write(folder, **{"groups.yaml": json.dumps(document), "policies/README.md": ""})


Scene = Callable[[Path], None]
