"""The table of exit codes, derived from the command tree: a command without a row fails here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cli.commands import DECISION_RECORD, LOGGED, RECORD, commands
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from webhook.cli import exit_codes

NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {}}],
}


def test_every_command_has_a_row_and_every_row_a_command():
    assert sorted(exit_codes.CODES) == sorted(path for path, _ in commands())


def test_every_command_says_its_codes_in_its_help():
    for path, _ in commands():
        shown = " ".join(waddle(*path.split(), "--help").stdout.split())
        assert " ".join(exit_codes.paragraph(path).split()) in shown, path


@pytest.fixture
def folder(tmp_path):
    """Files for every end that a command can come to without a cluster."""
    pods = {"kinds": [{"kinds": ["Pod"]}]}
    warn = constraint(enforcementAction="warn", match=pods)
    none = constraint(match={"kinds": [{"kinds": ["Node"]}]})
    needs = template()
    needs["metadata"]["annotations"] = {
        "metadata.gatekeeper.sh/requires-sync-data": '[[{"groups":[""],"versions":["v1"],"kinds":["Pod"]}]]'
    }
    files = {
        "template.yaml": [template()],
        "denies.yaml": [template(), constraint()],
        "warns.yaml": [template(), warn],
        "matches_nothing.yaml": [template(), none],
        "broken.yaml": [template(rego="package p\nviolation[{")],
        "needs.yaml": [needs],
        "pod.yaml": [pod()],
        "kubeconfig": [NOWHERE],
        "nameless.yaml": [{"apiVersion": "v1", "kind": 5, "metadata": {"name": "of no kind"}}],
        "review.yaml": [
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": None}
        ],
        "list.yaml": [
            {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [pod()]}
        ],
    }
    for name, documents in files.items():
        (tmp_path / name).write_text(yaml.safe_dump_all(documents))
    fast = {"latencies": dict.fromkeys(("p50", "p95", "p99", "mean"), 1)}
    saved = [{"engine": "rego", "reviewsPerSecond": 1e9, **fast}]
    (tmp_path / "fast.json").write_text(json.dumps(saved))
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "nothing.yaml").write_text("# nothing")
    (tmp_path / "records").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "told").write_text(json.dumps(DECISION_RECORD) + "\n")
    (tmp_path / "logged").write_text(json.dumps(LOGGED) + "\n")
    (tmp_path / "passes.rego").write_text("package p\ntest_x if true")
    (tmp_path / "fails.rego").write_text("package p\ntest_x if false")
    (tmp_path / "broken.rego").write_text("package p\nx := y")
    (tmp_path / "denies.rego").write_text('package main\ndeny contains "no" if input.kind')
    (tmp_path / "warns.rego").write_text('package main\nwarn contains "hm" if input.kind')
    (tmp_path / "sidecar.yaml").write_text("x: 1")
    for name, violations in (("passes", "yes"), ("fails", "no")):
        case = {"name": "c", "object": "pod.yaml", "assertions": [{"violations": violations}]}
        test = {"name": "t", "template": "denies.yaml", "constraint": "only.yaml", "cases": [case]}
        suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [test]}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(suite))
    (tmp_path / "only.yaml").write_text(yaml.safe_dump(constraint()))
    return tmp_path


CLUSTER = ["--kubeconfig", "kubeconfig"]

ENDS = [
    ("audit", 2, ["--once", "--kubeconfig", "none"]),
    ("bench", 0, ["-n", "1", "-f", "denies.yaml", "-f", "pod.yaml"]),
    (
        *("bench", 1),
        ["-n", "1", "-f", "denies.yaml", "-f", "pod.yaml", "--compare", "fast.json"],
    ),
    ("bench", 2, ["-f", "pod.yaml"]),
    ("cel check", 0, ["1 + 1"]),
    ("cel check", 1, ["1 + 'a'"]),
    ("cel eval", 0, ["1 + 1"]),
    ("cel eval", 1, ["1 + 'a'"]),
    ("cel eval", 2, ["[1][2]"]),
    ("check", 0, ["-f", "denies.yaml"]),
    ("check", 1, ["-f", "broken.yaml"]),
    ("check", 2, ["-f", "pod.yaml"]),
    ("check", 2, ["-f", "none.yaml"]),
    ("check", 2, ["-f", "nameless.yaml", "-f", "denies.yaml"]),
    ("check", 2, ["-f", "review.yaml", "-f", "denies.yaml"]),
    ("check", 2, ["--decisions", "none", "-f", "denies.yaml"]),
    ("check", 2, ["--decisions", ".", "-f", "denies.yaml"]),
    ("conftest fmt", 0, ["warns.rego"]),
    ("conftest fmt", 1, ["--check", "passes.rego"]),
    ("conftest parse", 0, ["pod.yaml"]),
    ("conftest parse", 1, ["bad.yaml"]),
    ("conftest test", 0, ["pod.yaml", "-p", "warns.rego"]),
    ("conftest test", 1, ["pod.yaml", "-p", "warns.rego", "--fail-on-warn"]),
    ("conftest test", 1, ["pod.yaml", "-p", "denies.rego"]),
    ("conftest test", 1, ["bad.yaml", "-p", "warns.rego"]),
    ("conftest test", 1, ["pod.yaml", "-p", "none"]),
    ("conftest test", 2, ["pod.yaml", "-p", "denies.rego", "--fail-on-warn"]),
    ("conftest verify", 0, ["-p", "passes.rego"]),
    ("conftest verify", 1, ["-p", "fails.rego"]),
    ("conftest verify", 1, ["-p", "broken.rego"]),
    ("decisions replay", 0, ["records", "--policies", "matches_nothing.yaml"]),
    ("decisions replay", 1, ["records", "--policies", "denies.yaml"]),
    ("decisions replay", 2, ["records", "--policies", "broken.yaml"]),
    ("decisions replay", 2, ["records", "--policies", "bad.yaml"]),
    ("decisions replay", 2, ["empty", "--policies", "denies.yaml"]),
    ("decisions replay", 2, ["none", "--policies", "denies.yaml"]),
    ("decisions replay", 2, ["records", "--policies", "template.yaml"]),
    ("decisions stats", 0, ["records"]),
    ("decisions stats", 2, ["none"]),
    ("decisions stats", 2, ["."]),
    ("decisions compare", 0, ["told", "--gatekeeper-log", "logged"]),
    ("decisions compare", 1, ["told", "--gatekeeper-log", "empty"]),
    ("decisions compare", 2, ["empty", "--gatekeeper-log", "empty"]),
    ("decisions tail", 0, ["records"]),
    ("decisions tail", 2, ["none"]),
    ("decisions tail", 2, ["."]),
    ("except", 1, ["records", "--reason", "r"]),
    ("except", 2, ["told", "--reason", "r"]),
    ("except", 2, ["none", "--reason", "r"]),
    ("expand", 0, ["-f", "pod.yaml"]),
    ("expand", 2, ["-f", "none.yaml"]),
    ("export", 1, ["denies.yaml", "--static", "out"]),
    ("export", 2, ["broken.yaml", "--static", "out"]),
    ("export", 2, ["none.yaml", "--static", "out"]),
    ("krm", 0, ["-f", "warns.yaml", "<list.yaml"]),
    ("krm", 1, ["-f", "denies.yaml", "<list.yaml"]),
    ("krm", 1, ["-f", "denies.yaml", "<pod.yaml"]),
    ("krm", 2, ["<list.yaml"]),
    ("migrate gatekeeper", 0, ["-f", "denies.yaml"]),
    ("migrate gatekeeper", 1, ["-f", "broken.yaml"]),
    ("migrate gatekeeper", 2, ["-f", "pod.yaml"]),
    ("migrate kubewarden", 2, ["-f", "pod.yaml"]),
    ("migrate kyverno", 2, ["-f", "pod.yaml"]),
    ("mutate", 0, ["-f", "pod.yaml"]),
    ("mutate", 2, ["-f", "bad.yaml"]),
    ("rego check", 0, ["passes.rego"]),
    ("rego check", 1, ["broken.rego"]),
    ("rego check", 1, ["none"]),
    ("rego fmt", 0, ["passes.rego"]),
    ("rego fmt", 1, ["none"]),
    ("rego fmt", 2, ["--fail", "passes.rego"]),
    ("rego eval", 0, ["1"]),
    ("rego eval", 1, ["--fail", "input.x"]),
    ("rego eval", 2, ["x"]),
    ("rego eval", 2, ["-d", "none", "1"]),
    ("rego parse", 0, ["passes.rego"]),
    ("rego parse", 1, ["none"]),
    ("rego test", 0, ["passes.rego"]),
    ("rego test", 1, ["broken.rego"]),
    ("rego test", 2, ["fails.rego"]),
    ("report", 2, ["--kubeconfig", "none"]),
    ("console", 1, ["--policies=.", "--host=203.0.113.1"]),
    ("serve", 1, ["--policies=.", "--log-file=none/x"]),
    ("sidecar", 1, ["--config", "sidecar.yaml"]),
    ("sidecar", 1, ["--config", "none"]),
    ("simulate", 0, []),
    ("simulate", 2, ["--measured", "pod.yaml"]),
    ("size", 0, ["--rate", "10", "--constraints", "1", "--p99", "100"]),
    ("size", 1, ["--rate", "10", "--constraints", "1", "--p99", "0.000001"]),
    ("status", 2, ["--kubeconfig", "none"]),
    ("sync test", 0, ["-f", "template.yaml", "--force-omit-gvk-manifest"]),
    ("sync test", 1, ["-f", "needs.yaml", "--force-omit-gvk-manifest"]),
    ("sync test", 2, ["-f", "pod.yaml"]),
    ("test", 0, ["-f", "warns.yaml", "-f", "pod.yaml"]),
    ("test", 1, ["-f", "denies.yaml", "-f", "pod.yaml"]),
    ("test", 1, ["-f", "none.yaml"]),
    ("test", 1, ["-f", "bad.yaml"]),
    ("test", 1, ["-f", "broken.yaml", "-f", "pod.yaml"]),
    ("test", 1, ["-f", "nothing.yaml"]),
    ("test", 2, ["-f", "template.yaml", "-f", "pod.yaml"]),
    ("test", 2, ["-f", "pod.yaml"]),
    ("test", 2, ["-f", "warns.yaml"]),
    ("test", 2, ["-f", "warns.yaml", "--target=json"]),
    ("verify", 0, ["passes.yaml"]),
    ("verify", 1, ["fails.yaml"]),
    ("verify", 1, ["bad.yaml"]),
    ("verify", 1, ["none.yaml"]),
    ("verify", 1, ["records"]),
    ("verify", 2, ["pod.yaml"]),
    ("verify", 2, ["passes.yaml", "--run", "typo"]),
    ("wait", 1, ["K/x", "--timeout", "1ms", *CLUSTER]),
    ("uninstall", 2, ["--webhooks", "--kubeconfig", "none"]),
    ("version", 0, []),
    ("completion", 0, ["bash"]),
    ("init", 0, ["shop"]),
    ("init", 1, ["pod.yaml/shop"]),
    ("new constraint", 0, ["Kind"]),
    ("new constraint", 1, ["Kind", "-d", "pod.yaml/shop"]),
    ("new mutator", 0, ["name"]),
    ("new mutator", 1, ["name", "-d", "pod.yaml/shop"]),
    ("new suite", 0, ["Kind"]),
    ("new suite", 1, ["Kind", "-d", "pod.yaml/shop"]),
    ("new template", 0, ["Kind"]),
    ("new template", 1, ["Kind", "-d", "pod.yaml/shop"]),
    ("man", 0, ["rego", "eval"]),
    ("man", 1, ["--directory", "/dev/null/man1"]),
    ("wait", 2, ["K/x", "--kubeconfig", "none"]),
    ("wait", 2, ["nonsense"]),
]
"""Command, exit code and arguments; what begins with < is standard input."""

ELSEWHERE = {
    ("provider images", 0): "tests/webhook/images/test_provider_process.py",
    ("provider images", 1): "tests/webhook/images/test_provider_process.py",
    ("verify-image", 0): "tests/webhook/cli/test_verify_image.py",
    ("verify-image", 1): "tests/webhook/cli/test_verify_image.py",
    ("verify-image", 2): "tests/webhook/cli/test_verify_image.py",
    ("audit", 0): "tests/system/test_audit_once.py",
    ("audit", 1): "tests/system/test_audit_once.py",
    ("export", 0): "tests/webhook/cli/test_export.py",
    ("except", 0): "tests/webhook/cli/test_except.py",
    ("migrate kubewarden", 0): "tests/webhook/cli/test_migrate_kubewarden.py",
    ("migrate kubewarden", 1): "tests/webhook/cli/test_migrate_kubewarden.py",
    ("migrate kyverno", 0): "tests/webhook/cli/test_migrate_kyverno.py",
    ("migrate kyverno", 1): "tests/webhook/cli/test_migrate_kyverno.py",
    **{
        (f"conftest {command}", code): "tests/webhook/cli/test_conftest.py"
        for command in ("doc", "pull", "push", "reformat")
        for code in (0, 1)
    },
    **{
        (f"policy {command}", code): "tests/webhook/cli/test_policy.py"
        for command in ("pull", "push")
        for code in (0, 1, 2)
    },
    ("policy list", 0): "tests/webhook/cli/test_policy_sources.py",
    ("policy list", 1): "tests/webhook/cli/test_policy_sources.py",
    **{
        (f"policy {command}", code): "tests/system/test_policies_from_registries.py"
        for command in ("install", "upgrade")
        for code in (0, 1, 2)
    },
    ("report", 0): "tests/system/test_reports_of_the_audit.py",
    ("demo", 0): "tests/behaviour/test_the_demonstration.py",
    ("demo", 1): "tests/behaviour/test_the_demonstration.py",
    ("console", 0): "tests/behaviour/test_the_console_shows_files.py",
    ("serve", 0): "tests/behaviour/test_shutdown_loses_no_request.py",
    ("sidecar", 0): "tests/behaviour/test_decisions_sidecar.py",
    ("status", 0): "tests/behaviour/test_status_and_wait.py",
    ("uninstall", 0): "tests/system/test_installed_by_helm.py",
    ("uninstall", 1): "tests/webhook/cli/test_uninstall.py",
    ("wait", 0): "tests/behaviour/test_status_and_wait.py",
}
"""Exit codes that need a cluster or a signal, with the test that shows them."""


@pytest.mark.parametrize(
    ("command", "code", "arguments"), ENDS, ids=[f"{c}-{n}-{a[:3]}" for c, n, a in ENDS]
)
def test_the_command_ends_as_its_row_says(folder, command, code, arguments):
    given = [argument[1:] for argument in arguments if argument.startswith("<")]
    arguments = [argument for argument in arguments if not argument.startswith("<")]
    with contextlib.ExitStack() as stack:
        stdin = stack.enter_context((folder / given[0]).open()) if given else None
        run = waddle(*command.split(), *arguments, cwd=folder, stdin=stdin)

    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    assert code in exit_codes.CODES[command]
    if code:
        assert run.stderr or run.stdout or "--fail" in arguments
    as_original = command.startswith(("rego", "conftest"))  # as opa and conftest tell it
    if code == exit_codes.UNKNOWN and not as_original:
        assert run.stderr or "replayed" in run.stdout
        assert "PASS" not in run.stdout


def test_every_code_of_every_row_is_shown_by_a_test():
    rows = {(command, code) for command, codes in exit_codes.CODES.items() for code in codes}

    assert rows == {(command, code) for command, code, _ in ENDS} | ELSEWHERE.keys()
    root = Path(__file__).parents[3]
    assert all((root / file).is_file() for file in ELSEWHERE.values())


@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_a_command_line_that_cannot_be_understood_is_64_or_as_conftest_has_it(path):
    code = exit_codes.NO if path.startswith("conftest ") else exit_codes.USAGE

    assert waddle(*path.split(), "--zork").returncode == code


def test_an_interrupted_command_is_130(tmp_path):
    script = (
        "import signal, sys\n"
        "from webhook.cli.main import main\n"
        # A shell's background job ignores SIGINT, and so would what it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()\n"
    )
    records = tmp_path / "records"
    os.mkfifo(records)
    process = subprocess.Popen(
        [sys.executable, "-c", script, "decisions", "stats", str(records)],
    )
    with records.open("w"):  # opened once the command has: it reads, and nothing comes
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_SECONDS) == exit_codes.INTERRUPTED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["test", "-f", "warns.yaml", "-f", "pod.yaml"],
        ["verify", "passes.yaml"],
        ["conftest", "test", "pod.yaml", "-p", "warns.rego"],
        ["decisions", "tail", "records"],
        ["--help"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_cannot_be_written_is_reported_and_is_74(folder, arguments):
    """Half a report on a full disk would be taken for the whole."""
    program = Path(sys.executable).with_name("waddle")
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [program, *arguments], cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert run.stderr == b"standard output: No space left on device\n"
    assert run.returncode == exit_codes.IO_ERROR


@pytest.mark.parametrize(
    "arguments", [["test", "-f", "warns.yaml", "-f", "pod.yaml"], ["decisions", "tail", "records"]]
)
def test_a_pipe_that_nobody_reads_is_reported_and_is_74(folder, arguments):
    """1 would say that something is denied."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        program = Path(sys.executable).with_name("waddle")
        run = subprocess.run(
            [program, *arguments], cwd=folder, stdout=theirs, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(theirs)

    assert run.stderr == b"standard output: Broken pipe\n"
    assert run.returncode == exit_codes.IO_ERROR


@pytest.mark.parametrize("arguments", [["bad.yaml"], ["pod.yaml"], ["passes.yaml", "-r", "typo"]])
@pytest.mark.parametrize("output", ["table", "json", "github"])
def test_verify_never_says_that_nothing_passed(folder, arguments, output):
    run = waddle("verify", *arguments, "-o", output, cwd=folder)

    assert run.returncode != 0
    assert "PASS" not in run.stdout
    assert "ok\t" not in run.stdout
    if output == "json" and run.stdout:
        assert json.loads(run.stdout)["summary"]["ok"] is False
