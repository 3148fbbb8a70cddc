"""Every suite of gatekeeper-library, alone and against the real gator."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.behaviour.serving import Server
from tests.conformance.gatekeeper import library, rewritten, waddle, without_times

IMPOSSIBLE = 123456
"""A number of violations that no case has: the failure tells the messages there are."""


@pytest.mark.parametrize("cel", ["true", "false"])
def test_all_suites_pass_and_are_counted(cel):
    run = waddle("verify", f"--enable-k8s-native-validation={cel}", library())

    assert run.stdout.splitlines()[-1] == "34 suites, 52 tests, 194 cases: 194 passed, 0 failed"
    assert run.returncode == 0
    assert run.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("cel", ["true", "false"])
def test_every_message_of_every_case_is_the_one_that_gator_gives(program, tmp_path, cel):
    """Both report what an impossible assertion found: all messages, in order, by either engine."""
    gator = program("gator")
    copy = rewritten(tmp_path / "library", lambda _: [{"violations": IMPOSSIBLE}])

    theirs = subprocess.run(
        [gator, "verify", f"--enable-k8s-native-validation={cel}", f"{copy}/..."],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = waddle("verify", f"--enable-k8s-native-validation={cel}", copy)

    expected = without_times(theirs.stdout)
    found = without_times(ours.stdout)
    assert expected.pop() == "FAIL"
    assert found[-2:] == ["FAIL", "34 suites, 52 tests, 194 cases: 0 passed, 194 failed"]
    assert sum("got messages" in line for line in expected) == 194
    assert expected == found[:-2]
    assert (theirs.returncode, ours.returncode) == (1, 1)


def inverted(assertions):
    """Assertions that hold exactly where these do not: only the first, if it held, can fail."""
    first = dict(assertions[0])
    match first.get("violations", True):
        case True | "yes":
            first["violations"] = "no"
        case False | "no" | 0:
            first["violations"] = "yes"
        case count:
            first["violations"] = count + 1
    return [first]


@pytest.mark.slow
def test_inverted_every_suite_and_case_fails(tmp_path):
    """A runner that looked at nothing would pass."""
    run = waddle("verify", rewritten(tmp_path / "library", inverted), "-o", "json")

    report = json.loads(run.stdout)
    assert run.returncode == 1
    assert len(report["suites"]) == 34
    cases = [
        case for suite in report["suites"] for test in suite["tests"] for case in test["cases"]
    ]
    assert [case["name"] for case in cases if not case["error"]] == []
    assert len(cases) == 194


def test_the_library_as_it_is_can_be_served_and_a_bad_file_costs_only_itself(tmp_path):
    folder = tmp_path / "library"
    shutil.copytree(library(), folder)
    (folder / "broken.yaml").write_text("{[")

    with Server(folder).ready() as server:
        server.wait_for("policy cannot be used")
        ready = server.get("health", "/readyz?verbose")

    assert ready.status == 200
    notes = [line for line in ready.body.decode().splitlines() if line.startswith("[!]")]
    assert len(notes) == 2
    assert notes[0].startswith(f"[!]{folder}/broken.yaml: ")
    assert notes[1] == "[!]34 templates, 0 constraints: nothing is enforced"


@pytest.mark.parametrize("command", ["test", "check"])
def test_the_library_as_it_is_can_be_given_to_a_check(command, tmp_path):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    (tmp_path / "pod.json").write_text(json.dumps(pod))

    run = waddle(command, "-f", library(), "-f", tmp_path / "pod.json")

    skipped, left_out, *more = run.stderr.splitlines()
    assert skipped.startswith("skipped, because it is not a Kubernetes object: ")
    assert left_out.startswith("left out, because it is a sample of a test suite: ")
    if command == "test":
        assert more == ["nothing was checked: there is no constraint"]
        assert run.returncode == 2
    else:
        assert run.returncode == 0
