"""The formats of ``-o``: what pipelines and people read, of hostile texts too."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import click
import pytest
import yaml

from tests.policies import exception
from tests.webhook.cli.code_scanning import code_scanning
from tests.webhook.cli.commands import commands
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from webhook.cli.formats import words
from webhook.cli.formats.finding import Report, ShownFinding, level_of
from webhook.cli.formats.github import as_github
from webhook.cli.formats.junit import as_junit
from webhook.cli.formats.sarif import as_sarif
from webhook.printable import printable

HOSTILE = "100% \x1b[31m red\n::error::forged\r\u202egnirts\u2028line\u2029 <&> \x85,:"


@pytest.fixture
def found(tmp_path):
    """Policies and objects in files of their own, the second object on line 7."""
    documents = [
        template(),
        constraint(name="denies"),
        constraint(name="warns", enforcementAction="warn"),
        constraint(name="records", enforcementAction="dryrun"),
        constraint(name="clean", match={"kinds": [{"kinds": ["Node"]}]}),
    ]
    kinds = {"kinds": [{"kinds": ["Pod"]}]}
    for item in documents[1:4]:
        item["spec"]["match"] = kinds
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all(documents))
    lines = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n\n---\n# a Pod\n"
    (tmp_path / "m.yaml").write_text(lines + yaml.safe_dump(pod()))
    return tmp_path


def run(folder, *arguments, command="test"):
    return waddle(command, "-f", "p.yaml", "-f", "m.yaml", *arguments, cwd=folder)


def test_the_table_says_action_file_and_line_and_ends_with_a_summary(found):
    shown = run(found)

    assert shown.returncode == 1
    assert shown.stdout.splitlines() == [
        "m.yaml:7: v1/Pod shop/web",
        "  deny    K8sDeny/denies   no",
        "  dryrun  K8sDeny/records  no",
        "  warn    K8sDeny/warns    no",
        "",
        "3 violations (1 deny, 1 dryrun, 1 warn) in 2 reviewed objects, by 4 constraints",
    ]


def test_what_is_not_shown_is_counted_all_the_same(found):
    shown = run(found, "--deny-only").stdout

    assert "warns" not in shown
    assert "3 violations (1 deny, 1 dryrun, 1 warn)" in shown


def test_every_format_shows_what_exceptions_excuse(found):
    given = list(yaml.safe_load_all((found / "p.yaml").read_text()))
    given[1]["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    given.append(exception("for-web", "K8sDeny/denies", namespace="shop"))
    (found / "p.yaml").write_text(yaml.safe_dump_all(given))

    shown = {word: run(found, "-o", word) for word in (*words.FINDINGS, "text")}

    expected = "no (excused by PolicyException shop/for-web until"
    assert "for-web" in shown["table"].stdout
    assert expected in shown["sarif"].stdout
    assert expected in shown["junit"].stdout
    assert "<skipped" in shown["junit"].stdout
    assert (
        f"::notice file=m.yaml,line=7,title=K8sDeny/denies (excused)::v1/Pod shop/web: {expected}"
        in (shown["github"].stdout)
    )
    for word in ("text", "json", "yaml"):  # gator's fields alone
        assert "for-web" not in shown[word].stdout
        assert f"excused: v1/Pod shop/web: K8sDeny/denies: {expected}" in shown[word].stderr
    assert {item.returncode for item in shown.values()} == {0}


def test_every_format_names_the_exception_that_weakens_an_action(found):
    """A denying constraint warned, and nothing expected why; the fingerprint stays."""
    given = list(yaml.safe_load_all((found / "p.yaml").read_text()))
    given[1]["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    strict = json.loads(run(found, "-o", "sarif").stdout)["runs"][0]["results"]
    given.append(exception("for-web", "K8sDeny/denies", namespace="shop", effect="warn"))
    (found / "p.yaml").write_text(yaml.safe_dump_all(given))

    shown = {word: run(found, "-o", word).stdout for word in words.FINDINGS}

    expected = "no (PolicyException shop/for-web until"
    assert "  warn    K8sDeny/denies   no  (PolicyException shop/for-web until" in shown["table"]
    assert f'type="warn" message="{expected}' in shown["junit"]
    assert f"(warn)::v1/Pod shop/web: {expected}" in shown["github"]
    (weak,) = (
        item for item in json.loads(shown["sarif"])["runs"][0]["results"] if expected in str(item)
    )
    assert weak["level"] == "warning"
    assert weak["partialFingerprints"] in [item["partialFingerprints"] for item in strict]


def test_sarif_has_what_code_scanning_requires(found):
    document = json.loads(run(found, "-o", "sarif").stdout)

    code_scanning(document)
    (scan,) = document["runs"]
    assert [rule["id"].rpartition("/")[2] for rule in scan["tool"]["driver"]["rules"]] == [
        "clean",
        "denies",
        "records",
        "warns",
    ]
    assert {(item["ruleId"], item["level"]) for item in scan["results"]} == {
        ("K8sDeny/denies", "error"),
        ("K8sDeny/warns", "warning"),
        ("K8sDeny/records", "note"),
    }
    places = [item["locations"][0]["physicalLocation"] for item in scan["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"m.yaml"}
    assert {place["region"]["startLine"] for place in places} == {7}
    assert len({json.dumps(item["partialFingerprints"]) for item in scan["results"]}) == 3


def test_a_sarif_path_is_relative_where_it_can_be_and_a_uri_in_any_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, uri in (
        (f"{tmp_path}/a b/m.yaml", "a%20b/m.yaml"),
        ("./m.yaml", "m.yaml"),
        ("/elsewhere/m.yaml", "file:///elsewhere/m.yaml"),
    ):
        document = json.loads(as_sarif(Report([], [ShownFinding("r", "note", "x", "s", "", file)])))
        code_scanning(document)
        place = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert uri == place["artifactLocation"]["uri"]


def test_junit_has_a_suite_for_each_constraint(found):
    root = ET.fromstring(run(found, "-o", "junit").stdout)

    assert root.attrib == {"tests": "4", "failures": "3", "errors": "0"}
    assert [suite.attrib["name"] for suite in root] == [
        "K8sDeny/clean",
        "K8sDeny/denies",
        "K8sDeny/records",
        "K8sDeny/warns",
    ]
    case = root[1][0]
    assert (case.attrib["file"], case.attrib["line"]) == ("m.yaml", "7")
    assert case[0].attrib == {"type": "deny", "message": "no"}


UNCHECKED = [
    (("test", "-f", "p.yaml", "-f", "m.yaml", "-f", "none.yaml"), 'path "none.yaml"'),
    (("test", "-f", "p.yaml", "-f", "m.yaml", "-f", "unreadable.yaml"), "unreadable.yaml: line"),
    (("test", "-f", "broken.yaml", "-f", "m.yaml"), 'adding template "k8sdeny"'),
    (("test", "-f", "empty.yaml"), "no input data identified"),
    (("test", "-f", "p.yaml"), "there is no object besides"),
    (("test", "-f", "m.yaml"), "there is no constraint"),
    (("verify", "unreadable.yaml"), "unreadable.yaml"),
    (("verify", "none"), "none: No such file"),
    (("verify", "m.yaml"), "no test suite found in m.yaml"),
    (("audit", "--once", "--kubeconfig", "none"), "no cluster was read"),
]


@pytest.mark.parametrize(
    ("arguments", "reason"), UNCHECKED, ids=[" ".join(arguments) for arguments, _ in UNCHECKED]
)
def test_what_was_not_checked_is_an_error_in_each_form_that_a_pipeline_reads(
    found, arguments, reason
):
    """A report that is green, or is not there, is taken for a good one."""
    (found / "unreadable.yaml").write_text("kind: Suite\na: [")
    (found / "broken.yaml").write_text(yaml.safe_dump(template(rego="package p\nviolation[{")))
    (found / "empty.yaml").write_text("")
    forms = [f"{word}={word}.out" for word in ("sarif", "junit", "github")]

    ended = waddle(*arguments, *(f"-o{form}" for form in forms), cwd=found)

    assert ended.returncode in {1, 2}
    assert reason in ended.stderr
    document = json.loads((found / "sarif.out").read_text())
    code_scanning(document)
    (invocation,) = document["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    messages = [item["message"]["text"] for item in invocation["toolExecutionNotifications"]]
    assert any(reason in line for line in messages)
    root = ET.fromstring((found / "junit.out").read_text())
    errors = [error.attrib["message"] for error in root.iter("error")]
    assert int(root.attrib["errors"]) == len(errors)
    assert any(reason in line for line in errors)
    annotations = (found / "github.out").read_text()
    assert any(
        line.startswith("::error title=waddle::") and reason in line
        for line in annotations.splitlines()
    )


def test_annotations_are_of_files_and_lines_with_the_severest_first(found):
    assert run(found, "-o", "github").stdout.splitlines() == [
        "::error file=m.yaml,line=7,title=K8sDeny/denies (deny)::v1/Pod shop/web: no",
        "::warning file=m.yaml,line=7,title=K8sDeny/warns (warn)::v1/Pod shop/web: no",
        "::notice file=m.yaml,line=7,title=K8sDeny/records (dryrun)::v1/Pod shop/web: no",
        "3 violations (1 deny, 1 dryrun, 1 warn) in 2 reviewed objects, by 4 constraints",
    ]


def test_gators_own_lines_are_there_for_whoever_reads_them(found):
    assert run(found, "-o", "text").stdout.splitlines() == [
        'v1/Pod shop/web: ["denies"] Message: "no"',
        'v1/Pod shop/web: ["records"] Message: "no"',
        'v1/Pod shop/web: ["warns"] Message: "no"',
    ]


def test_a_hostile_message_forges_nothing_in_any_format():
    item = ShownFinding(HOSTILE, "error", "deny", HOSTILE, HOSTILE, "a,b:c.yaml", 3)
    report = Report([], [item], [HOSTILE])

    annotations = as_github(report)
    sarif, junit = as_sarif(report), as_junit(report)

    assert len(annotations.split("\n")) == 2
    assert all(line.startswith("::error ") for line in annotations.split("\n"))
    assert "file=a%2Cb%3Ac.yaml,line=3," in annotations
    for text in (annotations, sarif, junit):
        assert not re.search("[\x1b\x85\u202e\u2028\u2029]", text)
    assert json.loads(sarif)["runs"][0]["results"][0]["message"]["text"] == HOSTILE
    (failure,) = ET.fromstring(junit).iter("failure")
    assert failure.text is not None
    assert "\u202egnirts\u2028line" in failure.text
    code_scanning(json.loads(sarif))


@pytest.mark.parametrize("output", [*words.FINDINGS, "text"])
def test_no_format_turns_or_breaks_lines(tmp_path, output):
    """A message and a name with what turns the direction of writing, or ends a line."""
    rego = f'package p\nviolation[{{"msg": {json.dumps(HOSTILE)}}}] {{ print("\u202ex") }}'
    documents = [template(rego=rego), constraint(), pod("a\u202eb\u2066")]
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all(documents))

    shown = waddle("test", "-f", tmp_path / "m.yaml", "-o", output, "-v")

    assert shown.returncode == 1
    assert not re.search("[\x1b\x85\u202e\u2028\u2029\u2066]", shown.stdout + shown.stderr)
    if output != "junit":  # XML has lines within texts
        assert not any(line.startswith("::error::") for line in shown.stdout.splitlines())
    if output == "json":
        assert json.loads(shown.stdout.split("]\n\n")[0] + "]")[0]["msg"] == HOSTILE


@pytest.mark.parametrize(
    "character", ["\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066"]
)
def test_what_turns_or_breaks_lines_is_written_out(character):
    assert printable(f"a{character}b") == f"a\\u{ord(character):04x}b"
    assert printable("é 漢 \u200b \U0001f600") == "é 漢 \u200b \U0001f600"
    assert printable("a\ud800") == "a\\ud800"


def test_the_level_is_that_of_the_severest_action():
    assert level_of(("dryrun", "warn")) == "warning"
    assert level_of(("warn", "deny")) == "error"
    assert level_of(("dryrun",)) == level_of(("unknown",)) == "note"


def test_a_word_means_the_same_in_every_command():
    """Every ``-o`` has a table for people first, JSON, and no word of its own but gator's lines."""
    found = {
        path: list(option.type.choices)
        for path, command in commands()
        for option in command.params
        if "-o" in option.opts and isinstance(option.type, click.Choice)
    }
    # Commands that print objects have no table: their output is for kubectl.
    assert found.pop("expand") == ["yaml", "json"]
    assert found.pop("mutate") == ["yaml", "json", "patch"]
    for path, choices in found.items():
        assert choices[:2] == ["table", "json"], path
        assert set(choices) <= {*words.FINDINGS, "text"}, path
    for path in ("test", "verify", "audit"):
        assert tuple(choice for choice in found[path] if choice != "text") == words.FINDINGS
    flags = {opt for _, command in commands() for option in command.params for opt in option.opts}
    assert "--json" not in flags


@pytest.mark.parametrize("command", ["test", "verify"])
def test_several_forms_at_once(tmp_path, command):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all([template(), constraint(), pod()]))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(constraint()))
    case = {"name": "c", "object": "pod.yaml", "assertions": [{"violations": "no"}]}
    test = {"name": "t", "template": "p.yaml", "constraint": "c.yaml", "cases": [case]}
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [test]}
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod()))
    arguments = ["-f", "p.yaml"] if command == "test" else ["suite.yaml"]

    def run(*outputs):
        given = [part for output in outputs for part in ("-o", output)]
        return waddle(command, *arguments, *given, cwd=tmp_path)

    both = run("github", "sarif=s.json", "junit=j.xml", "table=t.txt")

    assert both.returncode == 1
    assert both.stdout == run("github").stdout
    assert json.loads((tmp_path / "s.json").read_text()) == json.loads(run("sarif").stdout)
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")
    assert run("table").stdout.split("(")[0] == (tmp_path / "t.txt").read_text().split("(")[0]
    assert run("json=all.json").stdout == ""
    for wrong, message in (
        (("json", "table"), "only one format goes to standard output"),
        (("json=",), "has no file name after the ="),
        (("jsn=x",), "is not one of"),
    ):
        refused = run(*wrong)
        assert refused.returncode == 64
        assert message in refused.stderr
    unwritten = run("json=none/x")
    assert unwritten.returncode == 74
    assert "none/x: No such file or directory" in unwritten.stderr


def test_json_of_other_commands_turns_and_breaks_no_lines_either(tmp_path):
    broken = {**template(), "metadata": {"name": "a\u202eb"}}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(broken))
    record = {"eventType": "decision", "verdict": "deny", "resourceNamespace": "\u202ex\u2028"}
    (tmp_path / "records").write_text(json.dumps(record) + "\n")
    runs = [
        waddle("check", "-f", tmp_path / "p.yaml", "-o", "json"),
        waddle("decisions", "stats", tmp_path / "records", "-o", "json"),
        waddle("decisions", "stats", tmp_path / "records"),
        waddle("decisions", "tail", tmp_path / "records"),
    ]

    for run in runs:
        assert not re.search("[\u202e\u2028]", run.stdout + run.stderr)
    assert json.loads(runs[0].stdout)["problems"][0]["name"] == "a\u202eb"
    assert json.loads(runs[1].stdout)["namespaces"][0]["namespace"] == "\u202ex\u2028"
