"""``waddle test`` as a user meets it, and beside the real ``gator test``."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from tests.programs import program
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, deployment, expands, pod, template

REGO = """package p
violation[{"msg": msg, "details": {"a": [1], "b": {2, 1}}}] {
  msg := sprintf("a \\"quoted\\" \\u00e9 <b> & \\t %v", [input.review.object.metadata.name])
}"""
PODS = {"kinds": [{"kinds": ["Pod"]}]}
SCOPED = [
    {"action": "deny", "enforcementPoints": [{"name": "*"}]},
    {"action": "warn", "enforcementPoints": [{"name": "audit.gatekeeper.sh"}]},
]


@pytest.fixture
def policies(tmp_path):
    """A folder with a template and three constraints: deny by scope, warn, and an autoreject."""
    folder = tmp_path / "policies"
    folder.mkdir()
    selector = {"matchLabels": {"a": "b"}}
    documents = [
        template(rego=REGO),
        constraint(
            name="scoped",
            match=PODS,
            enforcementAction="scoped",
            scopedEnforcementActions=SCOPED,
        ),
        constraint(name="warned", match=PODS, enforcementAction="warn"),
        constraint(name="auto", match={**PODS, "namespaceSelector": selector}),
    ]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(documents))
    return folder


def manifest(folder, *documents, name="m.yaml"):
    path = folder / name
    path.write_text(yaml.safe_dump_all(documents, allow_unicode=True))
    return path


AUTO = (
    "unable to match constraints: error matching the requested object: web :failed to run Match "
    "criteria: namespace selector for namespace-scoped object but missing Namespace"
)


def test_a_line_for_each_violation_and_exit_1_when_denied(policies, tmp_path):
    run = waddle("test", "-f", policies, "-f", manifest(tmp_path, pod()))

    assert run.returncode == 1
    assert [
        f'v1/Pod shop/web: ["auto"] Message: "{AUTO}"',
        'v1/Pod shop/web: ["scoped"] Message: "a \\"quoted\\" é <b> & \\t web"',
        'v1/Pod shop/web: ["warned"] Message: "a \\"quoted\\" é <b> & \\t web"',
    ] == run.stdout.splitlines()


def test_warnings_alone_exit_0_and_deny_only_hides_them(policies, tmp_path):
    documents = yaml.safe_load_all((policies / "all.yaml").read_text())
    kept = [item for item in documents if item["metadata"]["name"] in {"k8sdeny", "warned"}]
    manifest(policies, *kept, name="all.yaml")
    thing = manifest(tmp_path, pod())

    run = waddle("test", "-f", policies, "-f", thing)
    assert (run.returncode, len(run.stdout.splitlines())) == (0, 1)
    assert waddle("test", "-f", policies, "-f", thing, "--deny-only").stdout == ""


def test_standard_input_is_read_where_asked_and_where_nothing_else_is_given(policies, tmp_path):
    thing = manifest(tmp_path, pod())
    with thing.open() as stream:
        asked = waddle("test", "-f", policies, "-f", "-", stdin=stream)
    everything = manifest(
        tmp_path, *yaml.safe_load_all((policies / "all.yaml").read_text()), pod(), name="all.yaml"
    )
    with everything.open() as stream:
        alone = waddle("test", stdin=stream)

    assert len(asked.stdout.splitlines()) == 3
    assert asked.stdout == alone.stdout


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_gator_reports_the_same(policies, tmp_path, output):
    thing = manifest(tmp_path, pod(), pod("b", "default"), {**pod("d"), "spec": {"n": 1.5}})
    namespace = manifest(
        tmp_path,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        name="n.yaml",
    )
    arguments = ["-f", policies, "-f", thing, "-f", namespace]
    flags = [] if output == "text" else ["-o", output]

    theirs = subprocess.run(
        [program("gator"), "test", *arguments, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    ours = waddle("test", *arguments, *flags)

    read = {"text": str.splitlines, "json": json.loads, "yaml": yaml.safe_load}[output]
    assert read(theirs.stdout) == read(ours.stdout)
    assert theirs.returncode == ours.returncode


@pytest.mark.slow
def test_gator_expands_the_same(policies, tmp_path):
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}},
    }
    jobs = {"groups": ["batch"], "versions": ["v1"], "kinds": ["CronJob"]}
    thing = manifest(
        tmp_path,
        expands(),
        expands("jobs", "spec.jobTemplate.spec.template", applies=jobs, enforcementAction="warn"),
        deployment(),
        cron,
    )
    arguments = ["test", "-f", policies, "-f", thing, "-o", "json"]

    theirs = subprocess.run(
        [program("gator"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    ours = waddle(*arguments)

    assert "[Implied by jobs] " in theirs.stdout
    assert json.loads(ours.stdout) == json.loads(theirs.stdout)
    assert ours.returncode == theirs.returncode == 1


def test_mutators_beside_expansion_are_refused_not_left_out(tmp_path):
    mutator = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": "m"},
    }
    run = waddle("test", "-f", manifest(tmp_path, expands(), mutator))

    assert run.returncode == 1
    assert "mutators are not applied to expanded resources" in run.stderr


def test_a_cluster_scoped_object_is_decided_as_admission_does(tmp_path):
    """Gator gives it an empty Namespace, so that it is namespaced for scope and selectors."""
    role = {"apiVersion": "rbac/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    selector = {"matchLabels": {"a": "b"}}
    kinds = [{"kinds": ["ClusterRole"]}]
    path = manifest(
        tmp_path,
        template(),
        constraint(name="cluster", match={"kinds": kinds, "scope": "Cluster"}),
        constraint(name="namespaced", match={"kinds": kinds, "scope": "Namespaced"}),
        constraint(name="selected", match={"kinds": kinds, "namespaceSelector": selector}),
        constraint(name="named", match={"kinds": kinds, "namespaces": ["shop"]}),
        role,
    )

    run = waddle("test", "-f", path)

    assert [line.split('"')[1] for line in run.stdout.splitlines()] == [
        "cluster",
        "named",
        "selected",
    ]


def test_no_violation_is_an_empty_report_in_each_format(tmp_path):
    thing = manifest(tmp_path, pod())

    assert [
        waddle("test", "-f", thing, "-o", output).stdout for output in ("text", "json", "yaml")
    ] == ["", "null\n", "[]\n"]


def test_any_document_is_checked_by_the_json_target(tmp_path):
    rego = """package plan
violation[{"msg": msg}] {
  change := input.review.resource_changes[_]
  change.change.after.acl == "public-read"
  msg := sprintf("%v is public", [change.address])
}"""
    policies = manifest(
        tmp_path, template(rego=rego, target={"target": "json"}), constraint(), name="p.yaml"
    )
    changes = [{"address": "aws_s3_bucket.logs", "change": {"after": {"acl": "public-read"}}}]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"resource_changes": changes}))
    (tmp_path / "list.json").write_text("[1, 2]")

    run = waddle("test", "--target=json", "-f", policies, "-f", plan, "-f", tmp_path / "list.json")

    assert f'{plan}: ["c"] Message: "aws_s3_bucket.logs is public"\n' == run.stdout
    assert run.returncode == 1


def test_objects_are_one_anothers_data(tmp_path):
    rego = """package p
violation[{"msg": n}] {
  data.inventory.namespace[_]["v1"].Pod[n]
  n != input.review.object.metadata.name
}"""
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod("a"), pod("b"))

    run = waddle("test", "-f", path)

    assert run.stdout.splitlines() == [
        'v1/Pod shop/b: ["c"] Message: "a"',
        'v1/Pod shop/a: ["c"] Message: "b"',
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.yaml", "a: [", "x.yaml: line "),
        ("x.yaml", "- 1", "line 1: expected an object"),
        ("x.yaml", "# nothing", "no input data identified"),
        ("x.txt", "a: b", "must be of extensions: [.yaml .yml .json]"),
        ("x.json", "{", "x.json: "),
        (None, "", "No such file or directory"),
        ("x.yaml", "a: b", "resource  has no version"),
        ("x.yaml", yaml.safe_dump(constraint()), 'adding constraint "c": missing ConstraintTemp'),
        (
            "x.yaml",
            yaml.safe_dump(template(rego="package p")),
            'auditing objects: adding template "k8sdeny": invalid ConstraintTemplate: invalid rego',
        ),
    ],
)
def test_what_cannot_be_checked_exits_1_and_says_why(tmp_path, name, content, message):
    path = tmp_path / (name or "none.yaml")
    if name:
        path.write_text(content)

    run = waddle("test", "-f", path)

    assert run.returncode == 1
    assert message in run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr


def test_every_bad_policy_is_named_not_the_first_alone(tmp_path):
    path = manifest(
        tmp_path, template("K8sA", "package p"), template("K8sB", "package p"), template()
    )

    run = waddle("test", "-f", path)

    assert [line.split('"')[1] for line in run.stderr.splitlines()] == ["k8sa", "k8sb"]


def test_an_object_defined_twice_is_warned_about(tmp_path):
    run = waddle("test", "-f", manifest(tmp_path, pod(), pod()))

    assert 'WARNING - Resource named "web"' in run.stderr
    assert run.returncode == 0


def test_what_policies_print_is_shown_when_verbose(tmp_path):
    rego = 'package p\nviolation[{"msg": "x"}] { print("hello"); false }'
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod())

    assert waddle("test", "-f", path).stdout == ""
    assert waddle("test", "-f", path, "-v").stdout == "\nhello\n"
