"""Public repositories of Rego with their own tests: each test ends as it does in OPA."""

import contextlib
import json
import subprocess
import sys

import pytest

from tests.conformance.gatekeeper import CONFORMANCE

CORPORA = {"ec": (), "regula": ("--v0-compatible",)}


def corpora():
    folder = CONFORMANCE / "rego-corpora"
    if not folder.is_dir():
        pytest.skip(f"no corpora of Rego in {folder}")
    return folder


def run(name, *command):
    finished = subprocess.run(
        [*command, "test", name, *CORPORA[name], "--format", "json", "--timeout", "10m"],
        cwd=corpora(),
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.returncode, json.loads(finished.stdout)


def outcome(result):
    return "fail" if result.get("fail") or result.get("error") else "pass"


def waddle(name):
    return run(name, sys.executable, "-m", "webhook", "rego")


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_every_test_of_a_corpus_ends_as_in_opa(name):
    expected = json.loads((corpora() / "expected.json").read_text())[name]

    _, results = waddle(name)

    assert {f"{one['package']}.{one['name']}": outcome(one) for one in results} == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_every_field_of_a_result_is_the_one_that_opa_gives(program, name):
    theirs = run(name, program("opa"))
    ours = waddle(name)

    assert ours[0] == theirs[0]
    assert by_name(ours[1]) == by_name(theirs[1])


def by_name(results):
    """Results by package and name, without what differs from run to run."""
    return {
        (one["package"], one["name"]): {k: v for k, v in one.items() if k != "duration"}
        for one in results
    }


def configurations(folder):
    """Regula's plans and templates, which its repository keeps in modules too."""
    tests = corpora() / "regula" / "tests"
    for module in sorted(tests.rglob("inputs/*.rego")):
        text = module.read_text().partition("\nmock_config := ")[2]
        with contextlib.suppress(ValueError):  # some are no JSON: Rego has commas at ends
            json.loads(text)
            name = str(module.relative_to(tests)).replace("/", "-")
            (folder / f"{name}.json").write_text(text)
            yield f"{name}.json"


@pytest.mark.slow
def test_what_regula_finds_in_its_plans_is_what_it_finds_under_conftest(program, tmp_path):
    policies = [corpora() / "regula" / part for part in ("conftest", "lib", "rules")]
    files = list(configurations(tmp_path))
    arguments = ["test", "--rego-version", "v0", "--output", "json", *files]
    for policy in policies:
        arguments += ["--policy", policy]

    theirs, ours = (
        subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        for command in ([program("conftest")], [sys.executable, "-m", "webhook", "conftest"])
    )

    assert len(files) > 200
    assert ours.returncode == theirs.returncode == 1
    assert sorted_by_file(ours.stdout) == sorted_by_file(theirs.stdout)


def sorted_by_file(text):
    return sorted(json.loads(text), key=lambda one: one["filename"])
