"""`waddle conftest`: flags, files, results and codes as conftest's own."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess

import pytest
from aiohttp import web

from tests.oci_registry import digest_of, serving
from tests.sarif_schema import assert_sarif
from tests.webhook.cli.in_process import waddle

POLICY = """package main

deny contains msg if {
    input.kind == "Pod"
    msg := sprintf("%s must not be", [input.name])
}

deny_label contains {"msg": "no label", "severity": "high", "_loc": {"file": "x.yaml", "line": 3}} if {
    not input.label
}

warn contains "careful" if input.careful

exception contains ["label"] if input.excused
"""
OTHER = "package other\n\ndeny contains data.conftest.file.name if true\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "main.rego").write_text(POLICY)
    (tmp_path / "pod.yaml").write_text("kind: Pod\nname: a\nlabel: x\n---\nkind: Pod\nname: b\n")
    (tmp_path / "good.yaml").write_text("label: x\n")
    return tmp_path


def conftest(folder, *arguments, stdin=None):
    given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin.encode()))
    return waddle("conftest", *arguments, cwd=folder, stdin=given)


def test_each_document_of_a_file_is_asked_and_the_file_counts_them(folder):
    run = conftest(folder, "test", "--no-color", "pod.yaml")

    assert run.stdout.splitlines() == [
        "FAIL - pod.yaml - main - a must not be",
        "FAIL - pod.yaml - main - b must not be",
        "FAIL - pod.yaml - main - no label",
        "",
        "6 tests, 3 passed, 0 warnings, 3 failures, 0 exceptions",
    ]
    assert run.returncode == 1


def test_json_holds_places_and_metadata(folder):
    run = conftest(folder, "test", "-o", "json", "-", stdin="a: 1")

    (found,) = json.loads(run.stdout)
    assert found["filename"] == ""
    assert found["successes"] == 2
    assert found["failures"] == [
        {
            "msg": "no label",
            "loc": {"file": "x.yaml", "line": 3},
            "metadata": {"query": "data.main.deny_label", "severity": "high"},
        }
    ]


def test_an_exception_excuses_a_rule_and_is_reported(folder):
    run = conftest(folder, "test", "--no-color", "-", stdin="excused: true")

    assert 'EXCP - - main - data.main.exception[_][_] == "label"' in run.stdout
    assert "3 tests, 2 passed, 0 warnings, 0 failures, 1 exception" in run.stdout
    assert run.returncode == 0
    quiet = conftest(folder, "test", "--suppress-exceptions", "-", stdin="excused: true")
    assert "EXCP" not in quiet.stdout


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--fail-on-warn"], 1)])
def test_warnings_fail_where_that_is_asked_for(folder, flags, code):
    run = conftest(folder, "test", *flags, "-", stdin="careful: true\nlabel: x")

    assert run.returncode == code
    assert "1 warning" in run.stdout


def test_no_fail_shows_failures_and_ends_well(folder):
    run = conftest(folder, "test", "--no-fail", "pod.yaml")

    assert "3 failures" in run.stdout
    assert run.returncode == 0


def test_quiet_says_nothing_where_all_is_well(folder):
    assert conftest(folder, "test", "--quiet", "good.yaml").stdout == ""
    assert "3 failures" in conftest(folder, "test", "--quiet", "pod.yaml").stdout


def test_namespaces_are_named_by_wildcards_or_all_asked(folder):
    (folder / "policy" / "other.rego").write_text(OTHER)

    every = conftest(folder, "test", "--all-namespaces", "good.yaml").stdout
    some = conftest(folder, "test", "-n", "o*", "good.yaml").stdout

    assert "- other - good.yaml" in every
    assert "4 tests" in every
    assert "1 test," in some
    assert "0 tests" in conftest(folder, "test", "-n", "nowhere", "good.yaml").stdout


def test_combined_files_are_one_input(folder):
    rule = 'package main\ndeny contains f.path if { some f in input; f.contents.kind == "Pod" }'
    (folder / "combined.rego").write_text(rule)

    run = conftest(
        folder, "test", "--no-color", "--combine", "-p", "combined.rego", "good.yaml", "pod.yaml"
    )

    assert run.stdout.splitlines()[0] == "FAIL - Combined - main - pod.yaml"


def test_options_come_from_a_file_and_the_environment(folder, monkeypatch):
    (folder / "conftest.toml").write_text('output = "tap"\nnamespace = ["other"]\n')
    (folder / "policy" / "other.rego").write_text(OTHER)

    assert conftest(folder, "test", "good.yaml").stdout.startswith(
        "1..1\nnot ok 1 - good.yaml - other"
    )
    monkeypatch.setenv("CONFTEST_NAMESPACE", "main,other")
    monkeypatch.setenv("CONFTEST_NO_FAIL", "true")
    run = conftest(folder, "test", "-o=json", "good.yaml")
    assert [one["namespace"] for one in json.loads(run.stdout)] == ["main", "other"]
    assert run.returncode == 0


def test_flags_are_spelled_as_in_go(folder):
    run = conftest(
        folder, "test", "--no-color=true", "--fail-on-warn=false", "-p=policy,none", "good.yaml"
    )

    assert run.returncode == 1
    assert "none" in run.stderr
    assert conftest(folder, "test", "--quiet=maybe", "good.yaml").returncode == 1


def test_prints_are_shown_before_results(folder):
    (folder / "p.rego").write_text(
        'package main\ndeny contains "x" if {\n  print("seen", input.a)\n}\n'
    )

    run = conftest(folder, "test", "--no-color", "-p", "p.rego", "-", stdin="a: 1")

    assert run.stdout.splitlines()[0] == "PRNT   p.rego:3: seen 1"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "deny_a(x)",
            (
                "query rule: evaluating policy: 1 error occurred: 1:1: rego_type_error: "
                "function data.main.deny_a used as reference, not called"
            ),
        ),
        (
            "exception(x)",
            (
                "query exception: evaluating policy: 1 error occurred: 1:1: "
                "rego_type_error: function data.main.exception[_][_] used as reference, not called"
            ),
        ),
    ],
)
def test_a_function_in_the_place_of_a_rule_is_an_error_and_no_pass(folder, function, message):
    policy = f'package main\n\n{function} := "x"\n\nwarn contains "w" if input.never\n'
    (folder / "policy" / "main.rego").write_text(policy)
    run = conftest(folder, "test", "good.yaml")
    assert message in run.stderr
    assert run.returncode == 1


def test_a_trace_is_reported_on_standard_error(folder):
    run = conftest(folder, "test", "--trace", "-o", "json", "pod.yaml")

    assert "Enter data.main.deny" in run.stderr
    assert json.loads(run.stdout)


def test_configurations_are_parsed_within_policies(folder):
    (folder / "policy" / "beside.toml").write_text("a = 1")
    (folder / "policy" / "p.rego").write_text(
        "package p\n"
        'deny contains "file" if parse_config_file("beside.toml").a == 1\n'
        'deny contains "text" if parse_config("hcl2", "a = 1").a == 1\n'
        'deny contains "all" if { some c in parse_combined_config_files(["beside.toml"])'
        "; c.contents.a == 1 }\n"
    )

    assert "3 failures" in conftest(folder, "test", "-n", "p", "good.yaml").stdout


def test_one_broken_file_is_named_and_the_others_are_checked(folder):
    (folder / "bad.yaml").write_text("a: 1\nb: [\n")
    (folder / "empty.tf").write_text('a "b" {\n')

    run = conftest(folder, "test", "--no-color", "bad.yaml", "empty.tf", "none.yaml", "pod.yaml")

    assert "bad.yaml:3: " in run.stderr
    assert "empty.tf:2: " in run.stderr
    assert "none.yaml: " in run.stderr
    assert "6 tests, 3 passed" in run.stdout
    assert run.returncode == 1


def test_a_policy_that_fails_over_one_file_is_reported_and_the_others_are_checked(folder):
    rule = (
        'package main\nf(x) := 1 if x\nf(x) := 2 if x == 3\ndeny contains "x" if f(input.a) == 1\n'
    )
    (folder / "fails.rego").write_text(rule)
    (folder / "a.yaml").write_text("a: 3")
    (folder / "b.yaml").write_text("a: 1")

    run = conftest(folder, "test", "--no-color", "-p", "fails.rego", "a.yaml", "b.yaml")

    assert "eval_conflict_error" in run.stderr
    assert "a.yaml" in run.stderr
    assert "FAIL - b.yaml - main - x" in run.stdout
    assert run.returncode == 1


def test_combined_files_with_a_broken_one_are_not_judged(folder):
    (folder / "bad.yaml").write_text("a: [\n")

    run = conftest(folder, "test", "--combine", "bad.yaml", "good.yaml")

    assert run.stdout == ""
    assert "bad.yaml:2" in run.stderr
    assert run.returncode == 1


def test_folders_that_link_to_themselves_are_walked_once(folder):
    (folder / "below").mkdir()
    (folder / "below" / "a.yaml").write_text("label: x")
    (folder / "below" / "loop").symlink_to(folder / "below")
    (folder / "below" / "nowhere.yaml").symlink_to(folder / "gone.yaml")

    run = conftest(folder, "test", "--no-color", "below")

    assert "3 tests, 3 passed" in run.stdout
    assert "nowhere.yaml" in run.stderr
    assert run.returncode == 1


def test_paths_are_passed_over_by_an_expression(folder):
    run = conftest(folder, "test", "--no-color", "--ignore", "^pod", ".")

    assert "pod.yaml" not in run.stdout
    assert run.returncode in {0, 1}
    assert conftest(folder, "test", "--ignore", "(", ".").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["test"], "missing required arguments"),
        (["test", "-p", "good.yaml", "pod.yaml"], "no policies found in [good.yaml]"),
        (["test", "--rego-version", "v9", "pod.yaml"], "invalid Rego version: v9"),
        (["test", "--zork", "pod.yaml"], "--zork"),
        (["test", "-c", "none.toml", "pod.yaml"], "none.toml"),
        (["parse"], "must supply path to at least one file"),
        (["parse", "x.cue"], "CUE"),
        (["verify", "-p", "none"], "none"),
    ],
)
def test_what_cannot_be_run_says_why(folder, arguments, message):
    run = conftest(folder, *arguments)

    assert message in run.stderr
    assert run.stderr.startswith("Error: ")
    assert run.returncode == 1


@pytest.mark.parametrize(
    "output", ["stdout", "json", "tap", "table", "junit", "github", "azuredevops", "sarif"]
)
def test_a_message_of_every_format_is_whole(folder, output):
    (folder / "p.rego").write_text(
        'package main\ndeny contains "<a> & \\"b\\"\\u001b[1m é" if true\n'
    )

    run = conftest(folder, "test", "-p", "p.rego", "-o", output, "good.yaml")

    assert "é" in run.stdout
    assert run.returncode == 1
    if output in {"json", "sarif"}:
        assert '<a> & "b"\x1b[1m é' in str(json.loads(run.stdout)) or "\\x1b" in str(
            json.loads(run.stdout)
        )
    if output == "sarif":
        assert_sarif(json.loads(run.stdout))


def test_sarif_of_every_kind_of_result_is_sarif(folder):
    (folder / "a b<é>.yaml").write_text("excused: true\ncareful: true\n")

    for arguments in (["pod.yaml", "good.yaml", "a b<é>.yaml"], ["-n", "nowhere", "pod.yaml"]):
        run = conftest(folder, "test", "-o", "sarif", *arguments)
        assert_sarif(json.loads(run.stdout))


def test_verify_counts_tests_and_reports_them(folder):
    (folder / "policy" / "main_test.rego").write_text(
        "package main_test\n\nimport data.main\n\n"
        'test_good if count(main.deny) == 0 with input as {"kind": "x"}\n'
        'test_bad if { trace("a note"); count(main.deny) == 7 with input as {"kind": "x"} }\n'
        "todo_test_later if false\n"
    )

    run = conftest(folder, "verify", "--no-color")
    report = conftest(folder, "verify", "--report", "notes")

    assert "FAIL - policy/main_test.rego -  - data.main_test.test_bad" in run.stdout
    assert run.stdout.endswith(
        "3 tests, 1 passed, 0 warnings, 1 failure, 0 exceptions, 1 skipped\n"
    )
    assert run.returncode == report.returncode == 1
    assert 'Note "a note"' in report.stdout
    assert "FAIL: 1/3" in report.stdout


def test_parse_shows_one_file_or_several(folder):
    assert json.loads(conftest(folder, "parse", "good.yaml").stdout) == {"label": "x"}
    several = json.loads(conftest(folder, "parse", "good.yaml", "pod.yaml").stdout)
    assert sorted(several) == ["good.yaml", "pod.yaml"]
    combined = json.loads(conftest(folder, "parse", "--combine", "good.yaml").stdout)
    assert combined == [{"path": "good.yaml", "contents": {"label": "x"}}]


def test_parse_shows_nothing_if_a_file_cannot_be_read(folder):
    (folder / "broken.yaml").write_text("a: [")
    run = conftest(folder, "parse", "good.yaml", "broken.yaml")
    assert (run.returncode, run.stdout) == (1, "")
    assert "broken.yaml" in run.stderr


def test_a_file_that_never_ends_is_not_waited_for_in_a_folder(folder):
    os.mkfifo(folder / "policy" / "pipe.yaml")

    assert conftest(folder, "test", "--ignore", "pod", "policy", "good.yaml").returncode == 0


def test_policies_are_fetched_from_folders_and_files_before_a_run(folder):
    (folder / "remote").mkdir()
    (folder / "remote" / "r.rego").write_text(OTHER.replace("other", "main"))

    for source in ("remote", f"file://{folder}/remote", "file::remote/r.rego"):
        run = conftest(folder, "test", "-p", f"new-{len(source)}", "-u", source, "good.yaml")
        assert "1 test, 0 passed" in run.stdout, run.stderr
    for source in ("s3::https://x/y", "hg::https://x/y", "gcs::https://x/y"):
        refused = conftest(folder, "test", "-u", source, "good.yaml")
        assert f"{source.partition(':')[0]} is not supported" in refused.stderr
        assert refused.returncode == 1


def test_a_built_ins_complaint_is_reported_where_that_is_asked_for(folder):
    (folder / "policy" / "x_test.rego").write_text(
        'package x_test\ntest_x if parse_config_file("none.yaml")\n'
    )

    finished = conftest(folder, "verify", "--show-builtin-errors")

    assert "parse_config_file: " in finished.stderr
    assert "conftest.parse" not in finished.stderr
    assert "none.yaml: no such file or directory" in finished.stderr
    assert "1 failure" in conftest(folder, "verify").stdout


def test_a_path_that_begins_with_a_slash_is_beside_the_policy_as_the_real_one_s(folder):
    """A foreign bundle in a pipeline read any file by its absolute path."""
    secret = folder / "secret.toml"
    secret.write_text("a = 1")
    (folder / "policy" / "p.rego").write_text(
        "package p\n"
        f'deny contains "one" if parse_config_file("{secret}")\n'
        f'deny contains "some" if count(parse_combined_config_files(["{secret}"])) > 0\n'
        'deny contains "beside" if parse_config_file("/beside.toml").a == 1\n'
    )
    (folder / "policy" / "beside.toml").write_text("a = 1")

    run = conftest(folder, "test", "--no-color", "-n", "p", "good.yaml")

    assert "good.yaml - p - beside" in run.stdout
    assert "1 failure," in run.stdout


@pytest.mark.parametrize(
    ("shown", "expected"), [(None, "1 2"), ("FIRST", "1 -"), ("", "- -"), ("SECOND,NONE", "- 2")]
)
def test_policies_see_the_variables_that_they_may_see(folder, monkeypatch, shown, expected):
    """All of them, as OPA's do, unless somebody says which: those of a pipeline hold secrets."""
    monkeypatch.setenv("FIRST", "1")
    monkeypatch.setenv("SECOND", "2")
    if shown is not None:
        monkeypatch.setenv("WADDLE_RUNTIME_ENV", shown)
    (folder / "policy" / "p.rego").write_text(
        "package p\nimport rego.v1\n"
        "env := opa.runtime().env\n"
        'deny contains sprintf("%v %v", [object.get(env, "FIRST", "-"), object.get(env, "SECOND", "-")])\n'
    )

    run = conftest(folder, "test", "--no-color", "-n", "p", "good.yaml")

    assert f"good.yaml - p - {expected}\n" in run.stdout


# --- pull, push, doc, reformat ----------------------------------------------------------------


def test_what_is_pushed_is_pulled_and_updated(folder):
    with serving() as registry:
        pushed = conftest(folder, "push", f"{registry.host}/team/policies", "-p", "policy")
        assert pushed.returncode == 0, pushed.stderr
        assert "pushed bundle with digest: sha256:" in pushed.stdout
        (content, _) = registry.manifests["team/policies", "latest"]
        assert digest_of(content) in pushed.stdout

        pulled = conftest(folder, "pull", f"oci://{registry.host}/team/policies", "-p", "pulled")
        assert pulled.returncode == 0, pulled.stderr
        for file in (folder / "policy").rglob("*.rego"):
            assert (folder / "pulled" / file.relative_to(folder)).read_text() == file.read_text()
        (folder / "updated").mkdir()
        run = conftest(
            folder, "test", "-u", f"{registry.host}/team/policies", "-p", "updated", "good.yaml"
        )
        assert "3 tests" in run.stdout, run.stderr
        run = conftest(folder, "verify", "-u", f"{registry.host}/team/policies", "-p", "checked")
        assert "0 tests" in run.stdout, run.stderr


def test_policies_that_cannot_be_loaded_are_not_pushed(folder):
    (folder / "policy" / "broken.rego").write_text("package main\ndeny contains")
    with serving() as registry:
        run = conftest(folder, "push", f"{registry.host}/team/policies", "-p", "policy")

        assert run.returncode == 1
        assert "broken.rego" in run.stderr
        assert not registry.requests


def test_a_registry_of_another_machine_is_asked_with_tls(folder):
    with serving() as registry:
        run = conftest(folder, "pull", f"oci://{registry.host}/a/b", "--tls")

        assert run.returncode == 1
        assert "for a registry without TLS give --registry-insecure" in run.stderr


def test_a_file_from_the_web_replaces_nothing_when_it_is_pulled(folder):
    with serving() as server:

        async def file(request):
            return web.Response(text="package a\n")

        server.instead = file
        for code in (0, 1):
            run = conftest(folder, "pull", f"{server.url}/deny.rego", "-p", "pulled")
            assert run.returncode == code, run.stderr
        assert "refusing to overwrite" in run.stderr
        assert conftest(folder, "pull", f"{server.url}/a.tar.gz").returncode == 1


def test_absolute_folders_are_below_the_working_folder_unless_it_is_said(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"

    conftest(folder, "pull", "policy", "-p", str(elsewhere))
    assert not elsewhere.exists()
    assert list((folder / str(elsewhere).lstrip("/")).glob("*.rego"))
    conftest(folder, "pull", "--absolute-paths", "policy", "-p", str(elsewhere))
    assert list(elsewhere.glob("*.rego"))


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git_is_cloned_by_tag_and_folder_and_brought_up_to_date(folder, tmp_path):
    repository = tmp_path / "repository"
    (repository / "rego").mkdir(parents=True)

    def git(*arguments):
        author = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *arguments], cwd=repository, check=True)

    def commit(text):
        (repository / "rego" / "a.rego").write_text(text)
        git("add", ".")
        git("commit", "-qm", text)

    git("init", "-q")
    commit("package one\n")
    git("tag", "v1")
    commit("package two\n")
    source = f"git::file://{repository}"

    assert conftest(folder, "pull", source, "-p", "whole").returncode == 0
    assert (folder / "whole" / "rego" / "a.rego").read_text() == "package two\n"
    commit("package three\n")
    assert conftest(folder, "pull", source, "-p", "whole").returncode == 0
    assert (folder / "whole" / "rego" / "a.rego").read_text() == "package three\n"
    assert conftest(folder, "pull", f"{source}//rego?ref=v1", "-p", "part").returncode == 0
    assert (folder / "part" / "a.rego").read_text() == "package one\n"
    for wrong in (f"{source}//none", f"{source}//../x", f"{source}?ref=-x", f"{source}?sshkey=x"):
        run = conftest(folder, "pull", wrong, "-p", "wrong")
        assert run.returncode == 1, wrong
        assert "Error: download policies" in run.stderr


def test_git_runs_no_program_that_an_address_names(folder, tmp_path):
    for address in (
        f"git::ext::sh -c touch% {tmp_path}/made",
        f"git::--upload-pack=touch {tmp_path}/made",
    ):
        assert conftest(folder, "pull", address, "-p", "pulled").returncode == 1
    assert not (tmp_path / "made").exists()


DOCUMENTED = """# METADATA
# title: Labels
# description: What every object has
package shop.labels

# METADATA
# title: An owner
# related_resources:
# - ref: https://example.com/owners
#   description: Who owns what
# custom: {severity: 3}
deny contains "no owner" if not input.owner
"""


def test_a_page_is_made_of_annotations(folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "labels.rego").write_text(DOCUMENTED)
    (folder / "page.tpl").write_text(
        "{{ range . }}{{ .RegoPackageName }} {{ .Annotations.Custom.severity }};{{ end }}"
    )

    run = conftest(folder, "doc", "shop")

    assert run.returncode == 0, run.stderr
    assert (folder / "shop.md").read_text() == (
        "# shop.labels - Labels\n\nWhat every object has\n\n"
        "## shop.labels.deny - An owner\n\n\n\n"
        "Related Resources:\n\n* [Who owns what](https://example.com/owners)\n\n"
    )
    assert conftest(folder, "doc", "-t", "page.tpl", "shop").returncode == 0
    assert (folder / "shop.md").read_text() == "shop.labels <no value>;shop.labels.deny 3;"
    for wrong in (
        ["policy"],
        ["none"],
        ["pod.yaml"],
        [],
        ["-t", "none", "shop"],
        ["-o", "none", "shop"],
    ):
        assert conftest(folder, "doc", *wrong).returncode == 1


def test_results_are_written_in_another_format(folder):
    results = conftest(folder, "test", "-o", "json", "pod.yaml").stdout
    (folder / "results.json").write_text(results)

    assert conftest(folder, "reformat", "-o", "json", "results.json").stdout == results
    for output in ("tap", "junit", "table", "github", "azuredevops", "sarif"):
        direct = conftest(folder, "test", "-o", output, "pod.yaml").stdout
        again = conftest(folder, "reformat", "-o", output, stdin=results)
        assert again.returncode == 0
        assert again.stdout == direct, output
    for wrong in ("", "x", "{}", "[1]", '[{"failures": [1]}]', "[" * 100_000):
        run = conftest(folder, "reformat", stdin=wrong)
        assert run.returncode == 1
        assert "failed to parse JSON input" in run.stderr
    assert "failed to open input file" in conftest(folder, "reformat", "none.json").stderr


def test_what_is_left_out_is_refused_by_name(folder):
    run = conftest(folder, "plugin", "policy")

    assert run.returncode != 0
    assert "conftest plugin is not supported" in run.stderr


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ('deny[x] := "m" if { x := "a" }', "1 test, 1 passed"),
        ('deny[x] := true if { x := "a" }', "1 test, 1 passed"),
        ('deny.a := "m"', "1 test, 1 passed"),
        ('deny[x][y] := "m" if { x := 1; y := 2 }', "0 tests"),
        ('deny.a contains "m"', "0 tests"),
        ('deny[x] if { x := "a" }', "rule is using 'if' keyword without 'contains' keyword"),
    ],
)
def test_rules_that_make_objects_are_counted_as_by_conftest(tmp_path, rule, outcome):
    (tmp_path / "p.rego").write_text(f"package main\n\n{rule}\n")
    (tmp_path / "a.json").write_text("{}")

    run = waddle("conftest", "test", "-p", "p.rego", "a.json", cwd=tmp_path)

    assert outcome in run.stdout + run.stderr
