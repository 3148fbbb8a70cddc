"""Times and steps of policies: ``waddle bench``, ``--stats`` and ``--trace``, as gator has them."""

import json
import subprocess

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.policies import FREE, constraint, template
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import pod
from webhook.cli.bench.report import compare
from webhook.cli.bench.run import latencies

DENIES = 'package p\nviolation[{"msg": "no"}] { true }'
CEL = {"validations": [{"expression": "false", "message": "no"}]}


@pytest.fixture
def folder(tmp_path):
    documents = {
        "rego": [template("InRego", DENIES), constraint("InRego", "a")],
        "cel": [template("InCel", cel=CEL), constraint("InCel", "b")],
        "pods": [pod(), pod("other")],
    }
    for name, of in documents.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(of))
    return tmp_path


def measured(folder, *arguments):
    run = waddle("bench", "-n", "3", "--warmup", "1", "-o", "json", *arguments, cwd=folder)
    return run, json.loads(run.stdout)


def test_each_engine_is_measured_by_its_own_templates(folder):
    run, (rego, cel) = measured(folder, "rego.yaml", "cel.yaml", "pods.yaml", "--stats")

    assert (run.returncode, run.stderr) == (0, "")
    assert (rego["engine"], rego["skippedTemplates"], rego["skippedConstraints"]) == (
        "rego",
        ["incel"],
        ["b"],
    )
    assert (cel["engine"], cel["templateCount"], cel["constraintCount"]) == ("cel", 1, 1)
    for one in (rego, cel):
        assert (one["objectCount"], one["totalReviews"], one["violationCount"]) == (2, 6, 6)
        assert one["latencies"].keys() == {"min", "max", "mean", "p50", "p95", "p99"}
        (entry,) = one["statsEntries"]
        taken, evaluations = entry["stats"]
        assert taken["value"] > 0
        assert evaluations["value"] == 2, "the first iteration alone"


def test_people_read_a_table(folder):
    run = waddle("bench", "-n", "2", "rego.yaml", "cel.yaml", "pods.yaml", cwd=folder)

    assert "rego: 1 template, 1 constraint, 2 objects, 4 reviews, 4 violations" in run.stdout
    assert "skipped, because another engine evaluates them: 1 template: incel" in run.stdout
    assert "template compilation" in run.stdout


def test_an_engine_without_templates_is_named_and_the_other_is_measured(folder):
    run, results = measured(folder, "rego.yaml", "pods.yaml")

    assert [one["engine"] for one in results] == ["rego"]
    assert run.stderr == "cel: no template has code for this engine\n"
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pods.yaml",), "have no ConstraintTemplate"),
        (("rego.yaml",), "have no object to review"),
        (("rego.yaml", "pods.yaml", "-e", "cel"), "cel: no template has code for this engine"),
        (("none.yaml",), "none.yaml"),
        (("rego.yaml", "pods.yaml", "--compare", "pods.yaml"), "not results of --save"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments, message, folder):
    run = waddle("bench", *arguments, cwd=folder)

    assert message in run.stderr
    assert run.returncode == 2


@pytest.mark.parametrize("file", ["before.json", "before.yaml"])
def test_saved_results_are_compared(file, folder):
    waddle("bench", "-n", "2", "rego.yaml", "pods.yaml", "--save", file, cwd=folder)
    given = ("bench", "-n", "2", "rego.yaml", "pods.yaml", "--compare", file)
    # Even on a busy machine, no time grows by an hour.
    again = waddle(*given, "--min-threshold", "1h", cwd=folder)
    assert "no regression (threshold 10%)" in again.stdout
    assert again.returncode == 0

    saved = yaml.safe_load((folder / file).read_text())
    for name in saved[0]["latencies"]:
        saved[0]["latencies"][name] = 1
    (folder / file).write_text(json.dumps(saved))
    worse = waddle(*given, cwd=folder)
    assert "REGRESSION" in worse.stdout
    assert worse.returncode == 1

    saved[0]["engine"] = "cel"
    (folder / file).write_text(json.dumps(saved))
    other = waddle(*given, cwd=folder)
    assert "has results of other engines only" in other.stderr
    assert other.returncode == 2


def test_what_got_worse_is_beyond_both_thresholds():
    def result(time, rate):
        return {
            "engine": "rego",
            "latencies": dict.fromkeys(("p50", "p95", "p99", "mean"), time),
            "reviewsPerSecond": rate,
        }

    def passed(threshold, least):
        compared = compare([result(100, 10.0)], [result(150, 6.0)], threshold, least)
        return {one.metric: one.passed for one in compared}

    assert set(passed(10, 0).values()) == {False}
    assert set(passed(50, 0).values()) == {True}
    assert set(passed(10, 51).values()) == {True}
    assert passed(10, 30)["latency p50"] is False
    assert compare([result(0, 0)], [result(0, 0)], 0, 0)[0].change == 0


def test_percentiles_lie_between_the_nearest_ranks():
    assert latencies([5]) == dict.fromkeys(("min", "max", "mean", "p50", "p95", "p99"), 5)
    assert latencies([40, 10, 20, 30])["p50"] == 25
    assert latencies(range(101))["p95"] == 95


def test_gator_and_waddle_compare_each_other_s_results(program, folder):
    gator = program("gator")
    files = [f"--filename={folder / name}.yaml" for name in ("rego", "pods")]

    def theirs(*arguments):
        return subprocess.run(
            [gator, "bench", "-e", "rego", "-n", "2", *files, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    assert theirs("--save=theirs.json").returncode == 0
    ours = ("bench", "-n", "2", "-e", "rego", *files, "--min-threshold=1h")
    compared = waddle(*ours, "--compare=theirs.json", "--save=ours.json", cwd=folder)
    assert (compared.returncode, compared.stderr) == (0, "")
    done = theirs("--compare=ours.json", "--min-threshold=1h")
    assert "No significant regressions" in done.stdout, done.stderr


def test_a_check_says_how_long_each_constraint_took(folder):
    given = ("test", "--stats", "rego.yaml", "cel.yaml", "pods.yaml")
    table = waddle(*given, cwd=folder)
    assert table.returncode == 1
    (line,) = [line for line in table.stdout.splitlines() if line.endswith("  InRego/a")]
    assert line.split()[2:] == ["6", "Rego", "InRego/a"], "policies are objects, too"
    document = json.loads(waddle(*given, "-o", "json", cwd=folder).stdout)
    assert document.keys() == {"results", "stats"}
    durations = {one["statsFor"]: one["stats"][0]["source"]["value"] for one in document["stats"]}
    assert durations == {"InRego/a": "Rego", "InCel/b": "K8sNativeValidation"}
    as_yaml = yaml.safe_load(waddle(*given, "-o", "yaml", cwd=folder).stdout)
    assert as_yaml.keys() == {"results", "stats"}


LABELS = """
package p
violation[{"msg": "no owner"}] {
  not input.review.object.metadata.labels[input.parameters.label]
}
"""


@pytest.fixture
def labelled(tmp_path):
    documents = [
        template("NeedsLabel", LABELS, schema=FREE),
        constraint("NeedsLabel", "owner", kinds=["Pod"], parameters={"label": "owner"}),
        pod(),
        pod("good", labels={"owner": "ada"}),
    ]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(documents))
    return tmp_path


def test_a_trace_shows_why_a_rule_holds_and_why_it_does_not(labelled):
    run = waddle("test", "--trace", "all.yaml", cwd=labelled)

    assert 'trace of NeedsLabel {"label":"owner"} on Pod web:' in run.stderr
    assert 'trace of NeedsLabel {"label":"owner"} on Pod good:' in run.stderr
    fails = "Fail input.review.object.metadata.labels[__local"
    assert run.stderr.count(fails) == 1, "the one Pod has the label"
    (result,) = json.loads(waddle("test", "-t", "all.yaml", "-o", "json", cwd=labelled).stdout)
    assert fails in result["trace"]
    (untraced,) = json.loads(waddle("test", "all.yaml", "-o", "json", cwd=labelled).stdout)
    assert untraced.pop("trace") is None
    assert untraced == {name: value for name, value in result.items() if name != "trace"}


def test_an_evaluation_that_fails_is_traced_up_to_its_end(labelled):
    text = (labelled / "all.yaml").read_text()
    failing = text.replace('"msg": "no owner"', '"msg": msg').replace(
        "not input.review.object.metadata.labels[input.parameters.label]",
        "x = {1: 2, 1: input.review.object.metadata.name}; msg := x[1]",
    )
    (labelled / "all.yaml").write_text(failing)
    run = waddle("test", "--trace", "all.yaml", cwd=labelled)

    assert run.returncode == 1
    assert "trace of NeedsLabel" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_suite_s_cases_are_traced(labelled):
    suite = {
        "apiVersion": "test.gatekeeper.sh/v1alpha1",
        "kind": "Suite",
        "tests": [
            {
                "name": "labels",
                "template": "template.yaml",
                "constraint": "constraint.yaml",
                "cases": [{"name": "none", "object": "pod.yaml", "assertions": [{}]}],
            }
        ],
    }
    of, owner, bad, _ = yaml.safe_load_all((labelled / "all.yaml").read_text())
    for name, document in (
        ("template", of),
        ("constraint", owner),
        ("pod", bad),
        ("suite", suite),
    ):
        (labelled / f"{name}.yaml").write_text(yaml.safe_dump(document))
    run = waddle("verify", "suite.yaml", "--trace", cwd=labelled)

    assert run.returncode == 0, run.stdout
    assert "trace of NeedsLabel" in run.stderr
