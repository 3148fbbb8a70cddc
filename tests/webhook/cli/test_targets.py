"""``waddle test`` and ``verify`` by targets other than admission."""

from __future__ import annotations

import json

import pytest
import yaml

from tests import policies
from tests.webhook.cli.in_process import waddle
from tests.webhook.policies.old_library import LIBRARY
from tests.webhook.policies.old_library import constraint as old_constraint
from tests.webhook.policies.old_library import template as old_template

TARGET = """apiVersion: targets.waddle.dev/v1alpha1
kind: Target
metadata: {name: compose.example.com}
spec:
  reviews: services.*
  match:
    images: {path: image, separator: "/"}
"""


def template(target, rego):
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "found"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "Found"}}},
            "targets": [{"target": target, "rego": f"package p\n{rego}"}],
        },
    }


def constraint(**match):
    return policies.constraint("Found", "every", match=match, severity="high")


def write(path, *documents):
    path.write_text(yaml.safe_dump_all(documents))
    return path


def change(address, acl):
    change = {"actions": ["create"], "after": {"acl": acl}}
    return {"name": "x", "address": address, "type": "aws_s3_bucket", "change": change}


@pytest.fixture
def plans(tmp_path):
    """Policies about buckets, and a plan that makes two."""
    rego = """violation[{"msg": msg}] {
  input.review.change.after.acl == "public-read"
  msg := sprintf("%v is public", [input.review.address])
}"""
    target = "validation.resourcechange.terraform.cloud.google.com"
    match = {"excludedAddresses": ["module.spared.**"]}
    write(tmp_path / "p.yaml", template(target, rego), constraint(**match))
    changes = [
        change("aws_s3_bucket.a", "public-read"),
        change("module.spared.aws_s3_bucket.b", "public-read"),
        change("aws_s3_bucket.c", "private"),
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"resource_changes": changes}))
    return tmp_path


@pytest.mark.parametrize(
    "name", ["terraform", "validation.resourcechange.terraform.cloud.google.com"]
)
def test_a_plan_is_reviewed_change_by_change(plans, name):
    run = waddle("test", f"--target={name}", "-f", "p.yaml", "-f", "plan.json", cwd=plans)

    assert run.returncode == 1
    assert run.stdout.count("is public") == 1
    assert "aws_s3_bucket.a is public" in run.stdout
    assert "3 reviewed documents" in run.stdout


def test_a_file_that_is_no_plan_hides_nothing_of_the_others(plans):
    (plans / "other.json").write_text('{"a": 1}')

    run = waddle(
        "test",
        "--target=terraform",
        "-f",
        "p.yaml",
        "-f",
        "other.json",
        "-f",
        "plan.json",
        cwd=plans,
    )

    assert run.returncode == 1
    assert "aws_s3_bucket.a is public" in run.stdout
    assert "reading: other.json: no Terraform plan" in run.stderr
    alone = waddle("test", "--target=terraform", "-f", "p.yaml", "-f", "other.json", cwd=plans)
    assert alone.returncode == 1
    assert "reading: other.json: no Terraform plan" in alone.stderr


def test_a_target_that_nobody_knows_is_reported_with_those_there_are(plans):
    (plans / "target.yaml").write_text(TARGET)

    run = waddle(
        "test", "--target=tf", "-f", "p.yaml", "-f", "plan.json", "-f", "target.yaml", cwd=plans
    )

    assert run.returncode == 1
    assert (
        'there is no target "tf": the targets are admission, json, terraform, gcp, compose.example.com'
        in run.stderr
    )


def test_a_target_is_declared_beside_its_policies(tmp_path):
    rego = 'violation[{"msg": msg}] { msg := sprintf("%v is not ours", [input.review.image]) }'
    (tmp_path / "target.yaml").write_text(TARGET)
    match = {"excludedImages": ["ours/**"]}
    write(tmp_path / "p.yaml", template("compose.example.com", rego), constraint(**match))
    services = {"a": {"image": "ours/a"}, "b": {"image": "theirs/b"}}
    write(tmp_path / "compose.yaml", {"services": services})

    run = waddle("test", "--target=compose.example.com", "-f", ".", cwd=tmp_path)

    assert run.returncode == 1
    assert run.stdout.count("is not ours") == 1
    assert "compose.yaml.services.b" in run.stdout
    # Policies for other targets are no fault where objects of Kubernetes are reviewed.
    write(tmp_path / "pod.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    (tmp_path / "compose.yaml").unlink()
    assert waddle("test", "-f", ".", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TARGET.replace("reviews", "review"), "adding target: invalid Target compose.example.com"),
        (f"{TARGET}---\n{TARGET}", "adding target: compose.example.com is declared twice"),
        (TARGET.replace("compose.example.com", "json"), "json is declared twice, or is built in"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_reported_with_its_place(tmp_path, text, message):
    (tmp_path / "target.yaml").write_text(text)

    run = waddle("test", "--target=json", "-f", "target.yaml", cwd=tmp_path)

    assert run.returncode == 1
    assert message in run.stderr
    assert "(target.yaml:" in run.stderr


def test_config_validators_older_policies_run_with_their_library(tmp_path):
    write(tmp_path / "p.yaml", old_template(), old_constraint(target=["organization/*"]))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "l.rego").write_text(LIBRARY)
    (tmp_path / "lib" / "l_test.rego").write_text("package validator.gcp.lib\nnonsense")
    assets = [
        {"name": "a", "asset_type": "t", "ancestry_path": "organization/1", "resource": {}},
        {"name": "b", "asset_type": "u", "ancestry_path": "organization/1", "resource": {}},
        {"name": "c", "asset_type": "t", "ancestry_path": "folders/1", "resource": {}},
    ]
    (tmp_path / "assets.json").write_text(json.dumps(assets))
    arguments = ("test", "--target=gcp", "-f", "p.yaml", "-f", "assets.json", "-o", "json")

    run = waddle(*arguments, "--library", "lib", cwd=tmp_path)

    (result,) = json.loads(run.stdout)
    assert result["msg"] == "data.validator is only text"
    assert result["constraint"]["metadata"]["name"] == "old-one"
    missing = waddle(*arguments, "--library", "nowhere", cwd=tmp_path)
    assert missing.returncode == 1
    assert 'reading: path "nowhere": No such file or directory' in missing.stderr
    without = waddle(*arguments, cwd=tmp_path)
    assert without.returncode == 1
    assert "undefined function" in without.stderr


def test_suites_are_about_documents_where_their_template_is(plans):
    (plans / "target.yaml").write_text(TARGET)
    image = 'violation[{"msg": input.review.image}] { true }'
    write(plans / "compose-template.yaml", template("compose.example.com", image))
    write(plans / "compose-constraint.yaml", constraint(images=["theirs/*"]))
    services = {"a": {"image": "ours/a"}, "b": {"image": "theirs/b"}}
    write(plans / "compose.yaml", {"services": services})
    policies = list(yaml.safe_load_all((plans / "p.yaml").read_text()))
    write(plans / "template.yaml", policies[0])
    write(plans / "constraint.yaml", policies[1])

    def case(name, violations):
        return {"name": name, "object": name, "assertions": [{"violations": violations}]}

    tests = [
        {
            "name": "plan",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
            "cases": [case("plan.json", 1)],
        },
        {
            "name": "declared",
            "target": "target.yaml",
            "template": "compose-template.yaml",
            "constraint": "compose-constraint.yaml",
            "cases": [case("compose.yaml", 1), case("plan.json", 0)],
        },
        {
            "name": "wrong file",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
            "cases": [case("compose.yaml", 0)],
        },
        {
            "name": "no target",
            "target": "template.yaml",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
        },
    ]
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": tests}
    write(plans / "suite.yaml", suite)

    run = waddle("verify", "suite.yaml", "-o", "json", cwd=plans)

    assert run.returncode == 1, run.stderr
    assert "compose.yaml: no Terraform plan" in run.stdout
    assert "not a Target" in run.stdout
    for name in ("plan", "declared"):
        alone = waddle("verify", "suite.yaml", "--run", f"{name}//", cwd=plans)
        assert alone.returncode == 0, (name, alone.stdout)


BOTH = "validation.resourcechange.terraform.cloud.google.com"


def test_one_template_is_about_plans_and_about_a_cluster(plans):
    policy, match = template(BOTH, 'violation[{"msg": "of a plan"}] { true }'), {"kinds": []}
    policy["spec"]["targets"].insert(
        0,
        {
            "target": "admission.k8s.gatekeeper.sh",
            "rego": 'package p\nviolation[{"msg": "of a cluster"}] { true }',
        },
    )
    write(plans / "p.yaml", policy, constraint(**match, addresses=["aws_s3_bucket.a"]))
    write(plans / "pod.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})

    cluster = waddle("test", "-f", "p.yaml", "-f", "pod.yaml", cwd=plans)
    plan = waddle("test", "--target=terraform", "-f", "p.yaml", "-f", "plan.json", cwd=plans)

    assert "of a cluster" in cluster.stdout
    assert "of a plan" not in cluster.stdout
    assert plan.stdout.count("of a plan") == 1
    assert "of a cluster" not in plan.stdout


def test_a_check_knows_declared_targets_and_what_is_wrong_with_policies_for_them(tmp_path):
    write(tmp_path / "p.yaml", template("compose.example.com", 'violation[{"msg": "x"}] { true }'))
    write(tmp_path / "c.yaml", constraint(images=["a"]))
    (tmp_path / "target.yaml").write_text(TARGET)

    good = waddle("check", "-f", ".", cwd=tmp_path)
    write(tmp_path / "c.yaml", constraint(image=["a"]))
    bad = waddle("check", "-f", ".", cwd=tmp_path)
    (tmp_path / "target.yaml").write_text(TARGET.replace("reviews", "review"))
    worse = waddle("check", "-f", ".", cwd=tmp_path)

    assert good.returncode == 0, good.stdout + good.stderr
    assert "enforces nothing here: it is for compose.example.com alone" in good.stdout
    assert bad.returncode == 1
    assert "compose.example.com matches by images" in bad.stdout
    assert worse.returncode == 1
    assert "(target.yaml:1)" in worse.stderr


def test_a_file_of_any_format_is_a_document_by_its_name(tmp_path):
    rego = (
        'violation[{"msg": msg}] { input.review[i].Cmd == "from"; msg := input.review[i].Value[0] }'
    )
    write(tmp_path / "p.yaml", template("json", rego), constraint())
    (tmp_path / "Dockerfile").write_text("FROM a:latest\n")
    (tmp_path / "Dockerfile.bad").write_text("FROM a\nZORK b\n")
    arguments = ("test", "--target=json", "-f", "p.yaml")

    run = waddle(*arguments, "-f", "Dockerfile.bad", "-f", "Dockerfile", cwd=tmp_path)

    assert run.returncode == 1
    assert "a:latest" in run.stdout
    assert "Dockerfile.bad:2: " in run.stderr
    other = waddle(*arguments, "-f", "p.rego", cwd=tmp_path)
    assert 'path "p.rego": No such file' in other.stderr
    (tmp_path / "p.rego").write_text("package p")
    assert "must be of extensions" in waddle(*arguments, "-f", "p.rego", cwd=tmp_path).stderr


@pytest.mark.parametrize("target", ["admission", "json"])
def test_one_bad_file_or_review_hides_no_others_results(tmp_path, target):
    rego = """f(x) := 1 { x }
f(x) := 2 { x == "bad" }
name := object.get(input.review, "name", "")
violation[{"msg": msg}] { f(name) == 1; msg := sprintf("found %v", [name]) }"""
    name = {"admission": "admission.k8s.gatekeeper.sh"}.get(target, target)
    policy = constraint()
    del policy["spec"]["severity"]
    write(tmp_path / "p.yaml", template(name, rego), policy)
    for number, one in enumerate(("good", "bad", "fine")):
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": one}, "name": one}
        write(tmp_path / f"{number}.yaml", document)
    (tmp_path / "broken.yaml").write_text("a: 1\nb: [\n")

    run = waddle("test", f"--target={target}", "-f", ".", cwd=tmp_path)

    assert run.returncode == 1
    assert "found good" in run.stdout
    assert "found fine" in run.stdout
    assert "broken.yaml: line 3" in run.stderr
    assert "eval_conflict_error" in run.stdout + run.stderr
