"""``waddle test`` as a user meets it, and beside the real ``gator test``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.cli.in_process import waddle
from tests.webhook.cli.manifest_lines import gators_lines, manifest
from tests.webhook.constraint.policies import constraint, deployment, expands, pod, template
from webhook.policies.lists import expand_lists
from webhook.policies.manifests import Manifest

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


AUTO = (
    "unable to match constraints: error matching the requested object: web :failed to run Match "
    "criteria: namespace selector for namespace-scoped object but missing Namespace"
)


def test_a_line_for_each_violation_and_exit_1_when_denied(policies, tmp_path):
    run = gators_lines("-f", policies, "-f", manifest(tmp_path, pod()))

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

    run = gators_lines("-f", policies, "-f", thing)
    assert (run.returncode, len(run.stdout.splitlines())) == (0, 1)
    assert gators_lines("-f", policies, "-f", thing, "--deny-only").stdout == ""


def test_standard_input_is_read_where_asked_and_where_nothing_else_is_given(policies, tmp_path):
    thing = manifest(tmp_path, pod())
    with thing.open() as stream:
        lines = gators_lines("-f", policies, "-f", "-", stdin=stream)
    everything = manifest(
        tmp_path, *yaml.safe_load_all((policies / "all.yaml").read_text()), pod(), name="all.yaml"
    )
    with everything.open() as stream:
        alone = gators_lines(stdin=stream)

    assert len(lines.stdout.splitlines()) == 3
    assert lines.stdout == alone.stdout


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_gator_reports_the_same(program, policies, tmp_path, output):
    thing = manifest(tmp_path, pod(), pod("b", "default"), {**pod("d"), "spec": {"n": 1.5}})
    namespace = manifest(
        tmp_path,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        name="n.yaml",
    )
    arguments = ["-f", policies, "-f", thing, "-f", namespace]
    flags = [] if output == "text" else ["-o", output]  # without one it writes text

    theirs = subprocess.run(
        [program("gator"), "test", *arguments, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    ours = waddle("test", *arguments, "-o", output)

    read: Any = {
        "text": str.splitlines,
        "json": json.loads,
        "yaml": yaml.safe_load,
    }[output]
    assert read(theirs.stdout) == read(ours.stdout)
    assert theirs.returncode == ours.returncode


@pytest.mark.slow
def test_gator_expands_the_same(program, policies, tmp_path):
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


def test_a_cluster_scoped_object_is_decided_as_admission_does(tmp_path):
    """Gator gives it an empty Namespace, so that it is namespaced for scope and selectors."""
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
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

    run = gators_lines("-f", path)

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

    run = gators_lines("--target=json", "-f", policies, "-f", plan, "-f", tmp_path / "list.json")

    assert f'{plan}: ["c"] Message: "aws_s3_bucket.logs is public"\n' == run.stdout
    assert run.returncode == 1


def test_objects_are_one_anothers_data(tmp_path):
    rego = """package p
violation[{"msg": n}] {
  data.inventory.namespace[_]["v1"].Pod[n]
  n != input.review.object.metadata.name
}"""
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod("a"), pod("b"))

    run = gators_lines("-f", path)

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
        ("x.yaml", "a: b", "skipped, because it is not a Kubernetes object"),
        ("x.yaml", "metadata: {}", "resource  has no version"),
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

    run = gators_lines("-f", path)

    assert run.returncode == 1
    assert message in run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr


def test_every_bad_policy_is_named_not_the_first_alone(tmp_path):
    path = manifest(
        tmp_path, template("K8sA", "package p"), template("K8sB", "package p"), template()
    )

    run = gators_lines("-f", path)

    assert [line.split('"')[1] for line in run.stderr.splitlines()] == ["k8sa", "k8sb"]


def test_a_check_names_every_file_that_cannot_be_read(tmp_path):
    manifest(tmp_path, template(), constraint())
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "binary.yaml").write_bytes(b"\x00\x01")
    (tmp_path / "list.yaml").write_text("- {apiVersion: v1, kind: Pod}")

    run = waddle("check", "-f", tmp_path, "-f", tmp_path / "none.yaml")

    assert run.returncode == 2
    lines = [line for line in run.stderr.splitlines() if line.startswith("reading")]
    for name in ("broken.yaml", "binary.yaml", "list.yaml", "none.yaml"):
        assert sum(name in line for line in lines) == 1, name


def test_an_object_defined_twice_is_warned_about(tmp_path):
    run = gators_lines(
        "-f",
        manifest(
            tmp_path, template(), constraint(match={"kinds": [{"kinds": ["X"]}]}), pod(), pod()
        ),
    )

    assert 'WARNING - Resource named "web"' in run.stderr
    assert run.returncode == 0


def test_an_unknown_action_fails_a_check_with_its_file_and_line(tmp_path):
    documents = template(), constraint(match=PODS, enforcementAction="enforce"), pod()
    path = manifest(tmp_path, *documents)

    run = waddle("test", "-f", path)

    assert run.returncode == 1
    line = path.read_text().split("---")[0].count("\n") + 2
    (fault,) = (line for line in run.stderr.splitlines() if "unrecognized" in line)
    assert fault.startswith(f"{path}:{line}: ")


def test_a_policy_that_cannot_be_used_is_named_with_its_file_and_line(tmp_path):
    path = manifest(tmp_path, constraint(match=PODS), pod())

    faults = waddle("test", "-f", path).stderr.splitlines()

    assert any(f"{path}:1: " in one and "missing ConstraintTemplate" in one for one in faults)


def test_items_of_a_typed_list_have_its_kind(tmp_path):
    item = {"metadata": pod()["metadata"]}
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [item, None]}
    path = manifest(tmp_path, template(rego=REGO), constraint(match=PODS), listed)

    run = waddle("test", "-f", path)

    assert "v1/Pod shop/web" in run.stdout
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ({}, "items: expected a list, got an object"),
        ([pod(), 5], "items[1]: expected an object, got a number"),
    ],
)
def test_what_a_list_holds_beside_objects_is_named(tmp_path, items, reason):
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    path = manifest(tmp_path, template(), constraint(match=PODS), listed)
    line = path.read_text().rsplit("---\n", 1)[0].count("\n") + 2

    for command in ("test", "check"):
        run = waddle(command, "-f", path)
        assert f"{path}:{line}: List: {reason}" in run.stderr, command
        assert run.returncode


def test_of_many_objects_defined_twice_three_are_named_and_all_are_counted(tmp_path):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([template(), constraint(match=PODS)]))
    for overlay in range(4):
        pods = [pod(name=f"pod-{number}") for number in range(5)]
        (tmp_path / f"overlay-{overlay}.yaml").write_text(yaml.safe_dump_all(pods))

    warnings = waddle("test", "-f", tmp_path).stderr.splitlines()

    assert warnings[0].startswith(
        "WARNING - 5 resources are defined more than once, 20 times together."
    )
    assert f'"{tmp_path}/overlay-1.yaml:1"' in warnings[1]
    assert warnings[1].endswith(f'"{tmp_path}/overlay-0.yaml:1", and 2 times more')
    assert len(warnings) == 4


def test_of_a_policy_defined_twice_the_definition_that_counts_is_named(tmp_path):
    first, second = template(rego=REGO), template(rego=REGO.replace("quoted", "other"))
    path = manifest(tmp_path, first, second, constraint(match=PODS), pod())

    run = waddle("test", "-f", path)

    line = path.read_text().split("---")[0].count("\n") + 2
    assert run.stderr.splitlines()[0].endswith(f": Waddle uses the one in {path}:{line}")
    assert "other" in run.stdout


def test_what_policies_print_is_shown_when_verbose(tmp_path):
    rego = 'package p\nviolation[{"msg": "x"}] { print("hello"); false }'
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod())

    assert gators_lines("-f", path).stdout == ""
    assert gators_lines("-f", path, "-v").stdout == "\nhello\n"


# --- which sources are read -----------------------------------------------------------------------


def piped(arguments, text, folder=None):
    """The command in a process of its own, with a pipe as its standard input."""
    return subprocess.run(
        [Path(sys.executable).with_name("waddle"), *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_what_is_piped_in_beside_files_is_checked_too(policies, tmp_path):
    piece = yaml.safe_dump(pod())

    run = piped(["test", "-f", policies, "-o", "text"], piece)
    checked = piped(["check", "-f", policies, "-o", "json"], piece)

    assert len(run.stdout.splitlines()) == 3
    assert run.returncode == 1
    assert json.loads(checked.stdout)["manifests"]["objects"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("stdin", ["pipe", "file", "nothing"])
def test_gator_reads_standard_input_the_same(program, policies, tmp_path, stdin):
    thing = manifest(tmp_path, pod())
    found = []
    for gator in (program("gator"), Path(sys.executable).with_name("waddle")):
        with thing.open() if stdin == "file" else Path(os.devnull).open() as stream:
            given = {"input": thing.read_text()} if stdin == "pipe" else {"stdin": stream}
            run = subprocess.run(
                [gator, "test", "-f", policies, "-o", "json"],
                capture_output=True,
                text=True,
                check=False,
                **given,
            )
            found.append((run.returncode, json.loads(run.stdout)))

    theirs, ours = found
    assert ours[1] == theirs[1]
    assert theirs[0] == (0 if stdin == "nothing" else 1)


def test_files_that_are_no_objects_are_named_once_and_skipped(policies, tmp_path):
    for number in range(7):
        (tmp_path / f"values{number}.yaml").write_text("replicas: 3\n---\nimage: x\n")
    (tmp_path / "kustomization.yaml").write_text("resources: [m.yaml]")
    manifest(tmp_path, pod())

    for command in ("test", "check"):
        run = waddle(command, "-f", tmp_path)
        (line,) = (line for line in run.stderr.splitlines() if "not a Kubernetes object" in line)
        assert line.count(".yaml") == 3
        assert f"{tmp_path}/kustomization.yaml, " in line
        assert line.endswith(" and 5 more")
        assert "Traceback" not in run.stderr
    assert gators_lines("-f", tmp_path).returncode == 1


PATCHES = "- op: add\n  path: /metadata/labels/a\n  value: b\n"


@pytest.mark.parametrize("command", ["test", "check", "mutate", "migrate gatekeeper"])
def test_a_list_of_patches_in_a_folder_is_skipped_and_named(policies, tmp_path, command):
    """A list of objects is no such file: they must not be lost."""
    patches = tmp_path / "patches.yaml"
    patches.write_text(PATCHES)
    manifest(tmp_path, template(), pod())

    run = waddle(*command.split(), tmp_path)

    (line,) = (line for line in run.stderr.splitlines() if "not a Kubernetes object" in line)
    assert line.endswith(f"{tmp_path}/patches.yaml")
    assert "expected an object" not in run.stderr + run.stdout
    named = waddle("test", "-f", policies, "-f", patches)
    assert f'"{patches}": line 1: expected an object, got a list' in named.stderr
    patches.write_text(f"- {json.dumps(pod())}")
    assert "expected an object, got a list" in waddle(*command.split(), tmp_path).stderr


def test_a_file_of_a_chart_is_known_by_what_it_takes_of_values(policies, tmp_path):
    file = manifest(tmp_path, pod())
    file.write_text("a: {{- toYaml .Values.zone | nindent 8 }}\n")

    assert "Helm template: render it first" in waddle("test", "-f", policies, "-f", file).stderr


def test_samples_and_inputs_of_suites_are_neither_policies_nor_objects(policies, tmp_path):
    case = {"name": "c", "object": "pod.yaml", "assertions": [{"violations": "yes"}]}
    suite: dict[str, Any] = {"kind": "Suite", "apiVersion": "test.gatekeeper.sh/v1alpha1"}
    suite["tests"] = [{"template": "all.yaml", "constraint": "all.yaml", "cases": [case]}]
    manifest(policies, suite, name="suite.yaml")
    manifest(policies, pod("tried"), name="pod.yaml")
    (policies / "samples").mkdir()
    manifest(policies / "samples", constraint(name="sample"), pod("sample"), name="x.yaml")
    thing = manifest(tmp_path, pod())

    run = gators_lines("-f", policies, "-f", thing)

    assert len(run.stdout.splitlines()) == 3
    assert "tried" not in run.stdout
    assert "sample" not in run.stdout
    assert f"{policies}/samples, {policies}/pod.yaml" in run.stderr
    named = gators_lines("-f", policies, "-f", policies / "pod.yaml")
    assert "v1/Pod shop/tried" in named.stdout


def test_items_of_a_list_are_checked_one_by_one(policies, tmp_path):
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}

    run = gators_lines("-f", policies, "-f", manifest(tmp_path, listed))

    assert len(run.stdout.splitlines()) == 6


def test_check_names_a_mistyped_object_and_goes_on(policies, tmp_path):
    typo = {"apVersion": "v1", "kind": "Pod", "metadata": {"name": "typo"}}

    run = waddle("check", "-f", policies, "-f", manifest(tmp_path, typo, pod()))

    assert "Traceback" not in run.stderr
    assert f"{tmp_path}/m.yaml:1: Pod typo: " in run.stderr
    assert "resource typo has no version" in run.stderr
    assert "1 object of the manifests:" in run.stdout
    assert run.returncode == 2


# --- http.send ------------------------------------------------------------------------------------


class Answer(BaseHTTPRequestHandler):
    """Says yes to whoever asks."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"answer": "yes"}')

    def log_message(self, *_):
        """Standard error is the test's."""


@pytest.fixture
def answering():
    """The port of a server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("hosts", "messages"),
    [
        (["127.0.0.1"], ["yes"]),
        (["elsewhere"], []),
        (["elsewhere", "127.0.0.1"], ["yes"]),
    ],
)
def test_http_send_reaches_the_hosts_that_are_named_and_no_others(
    tmp_path, answering, hosts, messages
):
    rego = f"""package p
violation[{{"msg": found.body.answer}}] {{
  found := http.send({{"method": "GET", "url": "http://127.0.0.1:{answering}/"}})
}}"""
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod())
    flags = [f"--http-send-host={host}" for host in hosts]

    run = waddle("test", "-f", path, *flags, "-o", "json")

    assert [item["msg"] for item in json.loads(run.stdout) or []] == messages
    assert run.returncode == (1 if messages else 0)


def test_a_policy_that_asks_the_network_is_refused_where_no_host_is_named(tmp_path):
    """It would find nothing and deny nobody, and nothing would say so."""
    rego = 'package p\nviolation[{"msg": "x"}] { http.send({"method": "GET", "url": "u"}).body }'
    path = manifest(tmp_path, template(rego=rego), constraint(match=PODS), pod())

    for command in ("test", "check"):
        run = waddle(command, "-f", path)
        assert run.returncode == 1
        assert "undefined function http.send" in run.stdout + run.stderr


def test_what_was_joined_without_a_line_of_dashes_is_reported(tmp_path):
    """The last object alone is left, as for gator and kubectl: nothing said that one was lost."""
    policies = manifest(tmp_path, template(), constraint(match=PODS))
    joined = tmp_path / "joined.yaml"
    joined.write_text(yaml.safe_dump(pod()) + yaml.safe_dump(pod(labels={"owner": "me"})))
    merged = tmp_path / "merged.yaml"
    merged.write_text("x: &x {kind: Pod}\n" + "metadata: {name: n}\n<<: *x\nkind: Thing\n")

    for command in ("test", "check"):
        run = waddle(command, "-f", policies, "-f", joined)
        twice = [line for line in run.stderr.splitlines() if "occurs twice" in line]
        place = f"{joined}:{len(yaml.safe_dump(pod()).splitlines()) + 1}"
        lost = '"apiVersion" occurs twice, and the last value counts: is a --- missing?'
        assert twice == [f"{place}: {lost}"]
    assert "occurs twice" not in waddle("test", "-f", policies, "-f", merged).stderr


def test_a_list_within_a_list_is_reviewed(tmp_path):
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod()]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner]}
    path = manifest(tmp_path, template(), constraint(match=PODS), outer)

    assert waddle("test", "-f", path).returncode == 1


def test_lists_within_lists_end_at_any_depth():
    """The depth is the author's choice, so Python's stack does not bound it."""
    item = pod()
    for _ in range(5_000):
        item = {"apiVersion": "v1", "kind": "List", "items": [item]}
    (found,) = expand_lists([Manifest(item, "f.yaml", 1)])
    assert found.gvk.kind == "Pod"
