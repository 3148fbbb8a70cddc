"""``waddle rego``: what its subcommands print, and how they end."""

import base64
import json

from tests.webhook.cli.in_process import waddle

POLICY = """package k8s

violation contains msg if {
    some c in input.containers
    c.privileged
    msg := sprintf("%s is privileged", [c.name])
}
"""
TESTS = """package k8s_test

import data.k8s

test_privileged if count(k8s.violation) == 1 with input as {"containers": [{"name": "a", "privileged": true}]}

test_wrong if {
    print("seen", k8s.violation)
    count(k8s.violation) == 1
}
"""


def folder(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.rego").write_text(text)
    return tmp_path


def test_results_as_json_have_the_fields_of_opa(tmp_path):
    policies = folder(tmp_path, policy=POLICY, policy_test=TESTS)

    run = waddle("rego", "test", policies, "--format", "json")

    assert run.returncode == 2
    passed, failed = json.loads(run.stdout)
    assert passed.pop("duration") > 0
    assert passed == {
        "location": {"file": str(policies / "policy_test.rego"), "row": 5, "col": 1},
        "package": "data.k8s_test",
        "name": "test_privileged",
    }
    assert failed["fail"] is True
    assert base64.b64decode(failed["output"]) == b"seen set()\n"


def test_results_for_people_tell_what_failed_and_how_many(tmp_path):
    policies = folder(tmp_path, policy=POLICY, policy_test=TESTS)

    run = waddle("rego", "test", policies)

    lines = run.stdout.splitlines()
    assert lines[0] == f"{policies / 'policy_test.rego'}:7:"
    assert lines[1].startswith("data.k8s_test.test_wrong: FAIL (")
    assert lines[-2:] == ["PASS: 1/2", "FAIL: 1/2"]
    assert "test_privileged" not in run.stdout
    assert "test_privileged: PASS" in waddle("rego", "test", policies, "-v").stdout


def test_a_run_of_what_matches_passes(tmp_path):
    policies = folder(tmp_path, policy=POLICY, policy_test=TESTS)

    run = waddle("rego", "test", policies, "--run", "test_priv")

    assert (run.returncode, run.stdout) == (0, "PASS: 1/1\n")


def test_sources_that_cannot_be_used_are_no_failed_tests(tmp_path):
    policies = folder(tmp_path, policy="package a\np := x")

    run = waddle("rego", "test", policies)

    assert run.returncode == 1
    assert "policy.rego:2: rego_unsafe_var_error: var x is unsafe" in run.stderr
    assert waddle("rego", "test", tmp_path / "missing").returncode == 1


def test_documents_that_contradict_each_other_are_reported_with_their_place_as_rego_names_it(
    tmp_path,
):
    """As OPA tells it."""
    below = tmp_path / ".github"
    below.mkdir()
    (below / "a.json").write_text('{"name": 1}')
    (below / "b.yaml").write_text("name: 2")

    run = waddle("rego", "test", tmp_path)

    assert run.returncode == 1
    assert 'merge error: conflicting values at data[".github"].name, also' in run.stderr


def test_nothing_found_fails_where_that_is_asked_for(tmp_path):
    policies = folder(tmp_path, policy=POLICY)

    assert waddle("rego", "test", policies).returncode == 0
    run = waddle("rego", "test", policies, "--fail-on-empty")
    assert (run.returncode, run.stderr) == (1, "no tests were run\n")


def test_cases_have_the_fields_of_opa(tmp_path):
    """A case without a name of its own has none."""
    source = 'package t\ntest_x[case] if some case in ["", "a"]\n'
    run = waddle("rego", "test", folder(tmp_path, t=source), "--format", "json")

    (case,) = json.loads(run.stdout)
    assert case["sub_results"] == {"": {}, "a": {"name": "a"}}


def test_skipped_tests_fail_unless_configured_otherwise(tmp_path):
    policies = folder(tmp_path, policy="package a\ntodo_test_x if true")

    assert waddle("rego", "test", policies).returncode == 2
    assert waddle("rego", "test", policies, "-z").returncode == 0


def test_a_query_gives_values_and_bindings(tmp_path):
    policies = folder(tmp_path, policy=POLICY)
    (tmp_path / "input.json").write_text('{"containers": [{"name": "a", "privileged": true}]}')

    run = waddle(
        "rego",
        "eval",
        "-d",
        policies / "policy.rego",
        "-i",
        tmp_path / "input.json",
        "data.k8s.violation[x]",
    )

    assert run.returncode == 0
    (solution,) = json.loads(run.stdout)["result"]
    assert solution["bindings"] == {"x": "a is privileged"}
    assert solution["expressions"] == [
        {
            "value": "a is privileged",
            "text": "data.k8s.violation[x]",
            "location": {"row": 1, "col": 1},
        }
    ]


def test_other_formats_print_values_alone():
    assert waddle("rego", "eval", "-f", "raw", '"a"; [1]').stdout == "a [1]\n"
    assert waddle("rego", "eval", "-f", "pretty", "x := 1").stdout.splitlines() == [
        "┌───┐",
        "│ x │",
        "├───┤",
        "│ 1 │",
        "└───┘",
    ]
    assert waddle("rego", "eval", "-f", "pretty", "1 > 2").stdout == "false\n"
    assert waddle("rego", "eval", "-f", "discard", "1").stdout == (
        '{\n  "result": "discarded"\n}\n'
    )


def test_an_undefined_answer_fails_where_that_is_asked_for():
    assert waddle("rego", "eval", "input.x").returncode == 0
    assert waddle("rego", "eval", "--fail", "input.x").returncode == 1
    assert waddle("rego", "eval", "--fail-defined", "true").returncode == 1


def test_a_query_that_cannot_be_used_is_reported_in_the_result():
    run = waddle("rego", "eval", "x := 1; y")

    assert run.returncode == 2
    found = [error["message"] for error in json.loads(run.stdout)["errors"]]
    assert sorted(found) == ["var _ is unsafe", "var y is unsafe"]


def test_a_check_says_nothing_where_all_is_well(tmp_path):
    policies = folder(tmp_path, policy=POLICY)
    (tmp_path / "broken.json").write_text("{")  # only sources are read

    run = waddle("rego", "check", policies)

    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_check_tells_each_fault(tmp_path):
    policies = folder(tmp_path, a="package a\nx := y", b="package b\nimport data.unused\nz := w")

    run = waddle("rego", "check", policies, "--format", "json", "--strict")

    assert run.returncode == 1
    errors = json.loads(run.stderr)["errors"]
    assert [(error["message"], error["location"]["row"]) for error in errors] == [
        ("var y is unsafe", 2),
        ("import data.unused unused", 2),
        ("var w is unsafe", 3),
    ]


def test_faults_end_at_ten_as_opa_s_compiler_does(tmp_path):
    rules = "".join(f"p{i} if x{i} > 1\n" for i in range(12))
    policies = folder(tmp_path, **{"p.rego": f"package p\n{rules}"})
    for command in (["check"], ["test"], ["eval", "--format", "pretty", "data.p", "-d"]):
        lines = waddle("rego", *command, policies).stderr.splitlines()
        assert lines[0] == "11 errors occurred:"
        assert lines[10].endswith("rego_unsafe_var_error: var x9 is unsafe")
        assert lines[11:] == ["rego_compile_error: error limit reached"]
    for name in ("check", "test"):
        all_errors = waddle("rego", name, policies, "--max-errors", "0").stderr
        assert all_errors.startswith("12 errors occurred:")


def test_annotations_that_are_said_twice_or_wrong_are_refused_as_by_opa(tmp_path):
    noted = "# METADATA\n# title: {}\npackage p\n\n{} := 1\n"
    twice = folder(tmp_path, a=noted.format("a", "a"), b=noted.format("b", "b"))

    for command in (("test",), ("check",)):
        run = waddle("rego", *command, twice)
        assert run.returncode == 1
        assert "b.rego:1: rego_type_error: package annotation redeclared" in run.stderr

    wrong = folder(tmp_path, b=noted.format("[", "b"))
    run = waddle("rego", "test", wrong)
    assert run.returncode == 1
    assert "b.rego:2: rego_parse_error: yaml" in run.stderr
