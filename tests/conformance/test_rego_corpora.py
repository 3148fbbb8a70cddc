"""Public repositories of Rego with their own tests: each test ends as it does in OPA."""

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
