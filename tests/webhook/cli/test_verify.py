"""``waddle verify`` as a user meets it: exit codes, filters and the three reports."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET

import pytest
import yaml

from tests.policies import exception
from tests.webhook.cli.in_process import waddle
from tests.webhook.cli.pipes import substituted
from tests.webhook.constraint.policies import constraint, pod, template

NO_LABEL = "object.metadata.labels.none == 'x'"


@pytest.fixture
def folder(tmp_path):
    """A suite with a case that passes and, in ``bad``, one that fails."""
    rego = 'package p\nviolation[{"msg": "no \\u001b[31m<&>"}] { print("hello") }'
    for name, violations in (("good", "yes"), ("bad", "no")):
        path = tmp_path / name
        path.mkdir()
        (path / "template.yaml").write_text(yaml.safe_dump(template(rego=rego)))
        (path / "constraint.yaml").write_text(yaml.safe_dump(constraint()))
        (path / "pod.yaml").write_text(yaml.safe_dump(pod()))
        case = {"name": "case", "object": "pod.yaml", "assertions": [{"violations": violations}]}
        test = {
            "name": f"{name} test",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
            "cases": [case, {**case, "name": "later", "skip": True}],
        }
        suite = {"kind": "Suite", "apiVersion": "test.gatekeeper.sh/v1alpha1", "tests": [test]}
        (path / "suite.yaml").write_text(yaml.safe_dump(suite))
    return tmp_path


def test_suites_that_pass_exit_0_and_are_counted(folder):
    run = waddle("verify", folder / "good")

    assert run.returncode == 0
    assert run.stdout.startswith(f"ok\t{folder}/good/suite.yaml\t")
    assert run.stdout.endswith("PASS\n1 suite, 1 test, 2 cases: 1 passed, 0 failed, 1 skipped\n")


@pytest.mark.parametrize("path", [".", "...", "./...", "bad/../...", "bad/suite.yaml"])
def test_a_suite_that_fails_exits_1_with_what_was_found(folder, path):
    run = waddle("verify", path, cwd=folder)

    assert run.returncode == 1
    assert "--- FAIL: case" in run.stdout
    assert "got 1 violations but want none: got messages [no \\x1b[31m<&>]" in run.stdout
    assert "\x1b" not in run.stdout


def test_paths_given_twice_are_run_once(folder):
    run = waddle("verify", folder, folder / "good", folder / "good" / "suite.yaml")

    assert "2 suites, 2 tests, 4 cases" in run.stdout


@pytest.mark.parametrize("nothing", ["empty", "nothing-matches"])
def test_nothing_to_run_exits_2_and_says_so(folder, nothing):
    (folder / "empty").mkdir()
    arguments = ["empty"] if nothing == "empty" else [".", "--run", "zork"]

    run = waddle("verify", *arguments, cwd=folder)

    assert run.returncode == 2
    expected = "no test suite found in empty" if nothing == "empty" else 'matches "zork"'
    assert expected in run.stderr


def test_a_path_that_is_not_there_exits_1(folder):
    run = waddle("verify", folder / "none")

    assert run.returncode == 1
    assert "No such file or directory" in run.stderr


def test_in_a_pipe_a_missing_file_is_named_with_its_line(folder):
    good = (folder / "good" / "suite.yaml").read_text()
    suite = f"# one line\n---\n{good}"
    line = next(n for n, text in enumerate(suite.splitlines(), 1) if "template: " in text)
    with substituted(suite) as path:
        run = waddle("verify", path, cwd=folder)

    assert run.returncode == 1
    assert f"{path}:{line}: tests[0].template: " in run.stdout


def test_a_broken_suite_exits_1_with_its_place(folder):
    (folder / "good" / "suite.yaml").write_text(
        "kind: Suite\napiVersion: test.gatekeeper.sh/v1alpha1\ntests: 3\n"
    )
    run = waddle("verify", folder)

    assert run.returncode == 1
    assert "suite.yaml:3: tests must be an array" in run.stderr


def test_a_filter_selects_and_verbose_shows_what_runs_and_prints(folder):
    run = waddle("verify", folder, "-r", "good test//case", "-v")

    assert run.returncode == 0
    assert "=== SKIP  bad test" in run.stdout
    assert "    === SKIP  later" in run.stdout
    assert "        === PRINT ===\n        hello\n" in run.stdout
    assert "    --- PASS: case" in run.stdout


def test_a_filter_that_is_none_is_a_usage_error(folder):
    run = waddle("verify", folder, "-r", "(")

    assert run.returncode == 64
    assert "--run" in run.stderr
    assert "error parsing regexp: missing closing ): `(`" in run.stderr


def test_json_tells_everything(folder):
    run = waddle("verify", folder, "-o", "json")

    report = json.loads(run.stdout)
    assert run.returncode == 1
    assert report["summary"] == {
        "suites": 2,
        "tests": 2,
        "passed": 1,
        "failed": 1,
        "skipped": 2,
        "tests_failed": 0,
        "ok": False,
    }
    bad = report["suites"][0]
    assert f"{folder}/bad/suite.yaml" == bad["path"]
    assert "got 1 violations" in bad["tests"][0]["cases"][0]["error"]


def test_junit_is_xml_that_names_each_failure(folder):
    run = waddle("verify", folder, "-o", "junit")

    root = ET.fromstring(run.stdout)
    assert root.attrib == {"tests": "4", "failures": "1", "errors": "0", "skipped": "2"}
    (failure,) = root.iter("failure")
    assert "got messages [no �[31m<&>]" in failure.attrib["message"]
    assert [item.attrib["name"] for item in root.iter("testcase")] == [
        "case",
        "later",
        "case",
        "later",
    ]


def test_a_built_in_can_be_taken_away(folder):
    rego = 'package p\nviolation[{"msg": "x"}] { http.send({"url": "u"}) }'
    (folder / "good" / "template.yaml").write_text(yaml.safe_dump(template(rego=rego)))

    run = waddle("verify", folder / "good", "--disable-opa-builtin", "http.send")

    assert run.returncode == 1
    assert "undefined function http.send" in run.stdout


def test_a_template_for_documents_is_asked_about_the_document_and_nothing_else(tmp_path):
    rego = """package plan
violation[{"msg": sprintf("%v is public", [name])}] {
  input.review[_].acl == "public-read"
  name := input.review[_].name
}"""
    files = {
        "template.yaml": yaml.safe_dump(template(rego=rego, target={"target": "json"})),
        "constraint.yaml": yaml.safe_dump(constraint(match={"names": ["*.json"]})),
        "public.json": json.dumps([{"name": "logs", "acl": "public-read"}]),
        "private.json": json.dumps([{"name": "logs", "acl": "private"}]),
        "two.yaml": "a: 1\n---\nb: 2\n",
    }
    expected = {"public.json": 1, "private.json": 0, "two.yaml": "no"}
    cases = [
        {"name": name, "object": name, "assertions": [{"violations": number}]}
        for name, number in expected.items()
    ]
    test = {"name": "t", "template": "template.yaml", "constraint": "constraint.yaml"}
    suite = {"kind": "Suite", "apiVersion": "test.gatekeeper.sh/v1alpha1"}
    files["suite.yaml"] = yaml.safe_dump({**suite, "tests": [{**test, "cases": cases}]})
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    run = waddle("verify", tmp_path / "suite.yaml", "-o", "json")

    found = json.loads(run.stdout)["suites"][0]["tests"][0]["cases"]
    assert [case["error"] for case in found[:2]] == ["", ""]
    assert "must contain exactly one object" in found[2]["error"]


def test_a_test_without_cases_fails(folder):
    """It would pass in silence."""
    file = folder / "good" / "suite.yaml"
    suite = yaml.safe_load(file.read_text())
    suite["tests"].append({**suite["tests"][0], "name": "none", "cases": []})
    file.write_text(yaml.safe_dump(suite))

    run = waddle("verify", folder / "good")

    assert run.returncode == 1
    assert "--- FAIL: none" in run.stdout
    assert "invalid Test: cases must be non-empty" in run.stdout


@pytest.mark.parametrize("name", ["pod.yaml", "pod.json", "template.yaml", "suite.yaml"])
def test_a_key_that_occurs_twice_fails_as_in_gator(folder, name, program):
    """Of two values the last would count in silence, and the case be about another object."""
    good = folder / "good"
    file, suite = good / name, good / "suite.yaml"
    if name == "pod.json":
        file.write_text(json.dumps(pod()))
        suite.write_text(suite.read_text().replace("pod.yaml", name))
    assert waddle("verify", suite).returncode == 0
    text = file.read_text()
    twice = text.replace("{", '{"kind": "x", ', 1) if name == "pod.json" else f"kind: x\n{text}"
    file.write_text(twice)

    ours = waddle("verify", suite)
    theirs = subprocess.run(
        [program("gator"), "verify", str(suite)], capture_output=True, text=True, check=False
    )

    for run in (ours, theirs):
        assert run.returncode == 1
        assert 'mapping key "kind" already defined' in run.stdout + run.stderr


def test_a_suite_without_tests_is_named_beside_others(folder):
    text = "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n"
    (folder / "good" / "z.yaml").write_text(text)

    run = waddle("verify", folder / "good")

    assert run.returncode == 0
    assert run.stderr == f"WARNING - {folder}/good/z.yaml: the suite has no tests\n"


@pytest.mark.parametrize(
    ("of", "spec", "warning"),
    [
        ("c", {"expires": "2020-01-01T00:00:00Z"}, "it ended at 2020-01-01T00:00:00Z"),
        ("gone", {}, "there is no constraint K8sDeny/gone"),
        (
            "c",
            {"matchConditions": [{"name": "n", "expression": NO_LABEL}]},
            "could not be evaluated",
        ),
    ],
)
def test_exceptions_of_a_test_that_excuse_less_than_they_say_are_named(folder, of, spec, warning):
    """The case failed for a number of violations, and nothing said why they were not excused."""
    suite = folder / "good" / "suite.yaml"
    document = yaml.safe_load(suite.read_text())
    document["tests"][0]["exceptions"] = "e.yaml"
    suite.write_text(yaml.safe_dump(document))
    excuses = exception("e", f"K8sDeny/{of}", match={"scope": "Namespaced"}, **spec)
    (folder / "good" / "e.yaml").write_text(yaml.safe_dump(excuses))
    run = waddle("verify", folder / "good")
    assert "WARNING - ClusterPolicyException e: " in run.stderr
    assert warning in run.stderr
