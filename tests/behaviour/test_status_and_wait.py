"""`waddle status` and `waddle wait` at a real API server, with Pods and statuses made by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.behaviour.stages import EXCEPTIONS, LONG, SHORT, TEMPLATES, retry
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS
from tests.policies import exception
from webhook.api.pod_status import StatusError
from webhook.controllers.status.convergence import OVERRUN


def test_wait_ends_when_the_last_replica_enforces(stage):
    """The command starts while one replica is missing, and ends with that replica's status."""
    first, second = stage.replica("a"), stage.replica("b")
    stage.say(first, stage.constraint)
    shown = f"{stage.kind}/{stage.name}"
    assert stage.wait(timeout=SHORT).returncode == 1
    program = Path(sys.executable).with_name("waddle")
    command = [program, "wait", "--for=enforced", shown, "--timeout", LONG, *stage.options()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        stage.say(second, stage.constraint)
        out, _ = waiting.communicate(timeout=PATIENCE_SECONDS)

    assert (waiting.returncode, out) == (0, f"{shown}: enforced by 2 of 2 replicas\n")


def test_wait_fails_while_a_replica_is_missing_behind_or_in_error(stage):
    first, second = stage.replica("a"), stage.replica("b")
    stage.say(first, stage.constraint)
    missing = stage.wait()
    assert missing.returncode == 1
    assert re.search(r"not enforced within \d+ s: b: no status yet", missing.stderr)

    stage.say(second, stage.constraint)
    assert stage.wait(timeout=LONG).returncode == 0

    stage.change()
    stage.say(first, stage.constraint)
    behind = stage.wait()
    assert behind.returncode == 1
    assert "b: at generation 1" in behind.stderr

    stage.say(second, stage.constraint, errors=[StatusError("", "bad \x1b[31mparameters")])
    broken = stage.wait()
    assert broken.returncode == 1
    assert "b: bad \\x1b[31mparameters" in broken.stderr


def test_wait_fails_while_a_pod_is_being_deleted(stage):
    """A finalizer holds it as a kubelet does while it drains."""
    first, second = stage.replica("a"), stage.replica("b", finalizers=["waddle.test/drain"])
    for pod in (first, second):
        stage.say(pod, stage.constraint)
    assert stage.wait(timeout=LONG).returncode == 0

    path = f"/api/v1/namespaces/{stage.name}/pods/b"
    stage.api.request("DELETE", path, {"gracePeriodSeconds": 0})
    deleting = stage.wait()
    assert deleting.returncode == 1
    assert "b: the pod is terminating" in deleting.stderr

    pod = stage.api.request("GET", path)
    stage.api.request("PUT", path, pod | {"metadata": pod["metadata"] | {"finalizers": []}})
    assert stage.wait(timeout=LONG).returncode == 0


@pytest.mark.parametrize("kind", ["template", "constraint"])
def test_wait_fails_while_a_policy_is_being_deleted(stage, kind):
    """A finalizer holds it, and every replica still says that it enforces it."""
    pod = stage.replica("a")
    made = stage.template if kind == "template" else stage.constraint
    path = f"{TEMPLATES}/{stage.kind.lower()}" if kind == "template" else stage.constraint_path
    held = made | {"metadata": made["metadata"] | {"finalizers": ["waddle.test/held"]}}
    held = stage.api.request("PUT", path, held)
    name = f"{made['kind']}/{made['metadata']['name']}"
    stage.say(pod, held)
    assert stage.wait(name, timeout=LONG).returncode == 0

    stage.api.request("DELETE", path)
    deleting = stage.api.request("GET", path)
    stage.say(pod, deleting)  # its generation grows with its deletion
    wait, status = stage.wait(name), waddle("status", *stage.options())
    stage.api.request(
        "PUT", path, deleting | {"metadata": deleting["metadata"] | {"finalizers": []}}
    )

    assert wait.returncode == 1
    message = rf"{name}: not enforced within \d+ s: it is being deleted"
    assert re.search(message, wait.stderr)
    row = next(line for line in status.stdout.splitlines() if line.startswith(f"{name} "))
    assert row.split()[1:] == [str(deleting["metadata"]["generation"]), "0/1", "-", "deleting"]
    gone = stage.wait(name)
    assert gone.returncode == 2
    assert "there is no such object" in gone.stderr


def test_wait_needs_a_replica_and_counts_no_starting_one(stage):
    nobody = stage.wait()
    assert nobody.returncode == 1
    assert "no replica is ready" in nobody.stderr

    stage.say(stage.replica("a"), stage.template)
    stage.replica("b", ready=False)
    name = f"ConstraintTemplate/{stage.kind.lower()}"
    assert stage.wait(name, timeout=LONG).returncode == 0
    both = stage.wait(name, f"{stage.kind}/{stage.name}")
    assert both.returncode == 1
    assert "a: no status yet" in both.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wait", "ConstraintTemplate/absent"], "there is no such object"),
        (["wait", "NoSuchKind/x"], "the API server serves no NoSuchKind: correct the kind"),
        (["wait", "nonsense"], "expected KIND/NAME"),
        (["wait"], "give at least one KIND/NAME"),
        (["wait", "PolicyException/x"], "expected PolicyException/NAMESPACE/NAME"),
        (["wait", "PolicyException/waddle/absent"], "there is no such object"),
        (["wait", "--for=love", "K/x"], "the only condition is enforced"),
        (["wait", "--timeout=soon", "K/x"], "invalid duration"),
    ],
)
def test_wait_says_when_it_makes_no_sense(installed, arguments, message):
    run = waddle(*arguments, "--kubeconfig", installed.kubeconfig)

    assert run.returncode == 2
    assert message in run.stderr


def test_status_shows_objects_by_replicas(stage):
    first, second = stage.replica("waddle-webhook-a"), stage.replica("waddle-webhook-b")
    warned = {"expressionWarnings": [{"fieldRef": "spec.targets", "warning": "no \x1b[31mmessage"}]}
    for pod in (first, second):
        stage.say(pod, stage.template, additions=warned)
    stage.say(first, stage.constraint)
    stage.say(second, stage.constraint, enforced=False, errors=[StatusError("", "no such field")])
    table = waddle("status", *stage.options())

    assert table.returncode == 0, table.stderr
    lines = table.stdout.splitlines()
    assert lines[:2] == ["waddle-webhook-a: ready", "waddle-webhook-b: ready"]
    rows = {line.split()[0]: line.split()[1:] for line in lines if "  " in line}
    assert rows["OBJECT"] == ["GENERATION", "ENFORCED", "SINCE", "A", "B"]
    name = f"ConstraintTemplate/{stage.kind.lower()}"
    assert rows[name] == ["1", "2/2", "2026-01-02T03:04:05Z", "yes", "yes"]
    assert rows[f"{stage.kind}/{stage.name}"] == [
        *("1", "1/2", "50%"),  # of the requests: they go to either
        *("-", "yes", "error"),
    ]
    assert f"{stage.kind}/{stage.name} on waddle-webhook-b: no such field" in lines
    assert lines.count(f"{name}: spec.targets: no \\x1b[31mmessage") == 1


def test_status_shows_which_generation_is_in_force_where_it_is_not_the_newest(stage):
    """The last good one after a fault, or that which an annotation asks for; neither is waited out."""
    broken, rolled = stage.replica("waddle-webhook-a"), stage.replica("waddle-webhook-b")
    stage.change()
    fault = StatusError("ingest_error", "does not compile")
    stage.say(broken, stage.constraint, errors=[fault], additions={"activeDigest": "d1"})
    stage.say(rolled, stage.constraint, additions={"rolledBackTo": "1"})
    table = waddle("status", *stage.options())
    lines = table.stdout.splitlines()
    row, *faults = [line for line in lines if line.startswith(f"{stage.kind}/{stage.name} ")]

    assert row.split()[1:3] == ["2", "0/2"]
    assert "error, 1 in force" in row
    assert "rolled back to 1" in row
    assert faults[-1].endswith("waddle-webhook-b: rolled back to generation 1 by annotation")
    wait = stage.wait()
    assert wait.returncode == 1
    assert "rolled back to generation 1 by annotation" in wait.stderr


def test_status_names_a_policy_whose_evaluations_exceed_their_budget(stage):
    """All replicas enforce it, and the requests that it matches are refused."""
    pod, why = stage.replica("waddle-webhook-a"), "evaluation exceeded its budget of steps"
    breaker = {"state": "closed", "message": why}
    stage.say(pod, stage.constraint, additions={"breaker": breaker})
    lines = waddle("status", *stage.options()).stdout.splitlines()
    name = f"{stage.kind}/{stage.name} on waddle-webhook-a"
    assert f"{name}: {OVERRUN}: {why}" in lines
    found = json.loads(waddle("status", "-o", "json", *stage.options()).stdout)
    mine = next(item for item in found["objects"] if item["kind"] == stage.kind)
    assert [item["overrun"] for item in mine["replicas"]] == [why]


def test_status_gives_programs_everything(stage):
    pod = stage.replica("a")
    stage.replica("b", ready=False)
    stage.say(pod, stage.constraint)
    run = waddle("status", "-o", "json", *stage.options())
    found = json.loads(run.stdout)

    assert [(item["name"], item["counted"]) for item in found["replicas"]] == [
        ("a", True),
        ("b", False),
    ]
    mine = next(item for item in found["objects"] if item["kind"] == stage.kind)
    assert (mine["enforced"], mine["generation"]) == (True, 1)
    assert mine["uid"] == stage.constraint["metadata"]["uid"]
    assert mine["replicas"][0] == {
        "name": "a",
        "uid": pod.uid,
        "counted": True,
        "state": "enforced",
        "observedGeneration": 1,
        "activeGeneration": 1,
        "activeDigest": None,
        "since": "2026-01-02T03:04:05Z",
        "errors": [],
        "overrun": None,
        "warnings": [],
    }
    assert [item["state"] for item in mine["replicas"]] == ["enforced", "missing"]


def excepted(stage, name, ends, status=None):
    """An exception of the stage's namespace, with a status as a replica writes it."""
    made = exception(name, f"{stage.kind}/{stage.name}", namespace=stage.name, expires=ends)
    path = f"{EXCEPTIONS}/{stage.name}/policyexceptions"
    made = retry(lambda: stage.api.request("POST", path, made))
    if status is not None:
        seen = {"observedGeneration": made["metadata"]["generation"], **status}
        made = stage.api.request("PUT", f"{path}/{name}/status", made | {"status": seen})
    return made


def test_status_shows_exceptions_and_those_that_end_first_before_the_others(stage):
    last = "2026-01-02T03:04:05Z"
    soon = {"state": "Active", "message": "it ends at 2098-01-01T00:00:00Z", "lastUsed": last}
    unused = {"state": "Unused", "message": "it has excused nothing for 31 days"}
    broken = {"state": "Invalid", "message": "spec.parts names \x1b[31mno containers"}
    excepted(stage, "unused", "2099-01-01T00:00:00Z", unused)
    excepted(stage, "soon", "2098-01-01T00:00:00Z", soon)
    excepted(stage, "broken", "2100-01-01T00:00:00Z", broken)
    excepted(stage, "new", "2100-02-01T00:00:00Z")
    table = waddle("status", *stage.options())
    assert table.returncode == 0, table.stderr
    mine = f"PolicyException/{stage.name}/"
    rows = [line.removeprefix(mine) for line in table.stdout.splitlines() if mine in line]
    assert [" ".join(row.split()) for row in rows] == [
        f"soon Active 2098-01-01T00:00:00Z {last}",
        "unused Unused 2099-01-01T00:00:00Z -",
        "broken Invalid 2100-01-01T00:00:00Z -",
        "new not seen yet 2100-02-01T00:00:00Z -",
        "soon: it ends at 2098-01-01T00:00:00Z",
        "unused: it has excused nothing for 31 days",
        "broken: spec.parts names \\x1b[31mno containers",
    ]
    found = json.loads(waddle("status", "-o", "json", *stage.options()).stdout)["exceptions"]
    assert {
        "kind": "PolicyException",
        "namespace": stage.name,
        "name": "soon",
        "state": "Active",
        "message": soon["message"],
        "expires": "2098-01-01T00:00:00Z",
        "lastUsed": last,
        "constraints": [f"{stage.kind}/{stage.name}"],
    } in found


def test_wait_ends_when_an_exception_is_in_force(stage):
    excepted(stage, "later", "2099-01-01T00:00:00Z")
    shown = f"PolicyException/{stage.name}/later"
    unseen = stage.wait(shown)
    assert unseen.returncode == 1
    assert "not seen yet" in unseen.stderr

    path = f"{EXCEPTIONS}/{stage.name}/policyexceptions/later"

    def says(state, message=""):
        made = stage.api.request("GET", path)
        expected = {"state": state, "observedGeneration": 1, "message": message}
        stage.api.request("PUT", f"{path}/status", made | {"status": expected})

    says("Pending", "it begins at 2098-01-01T00:00:00Z")
    pending = stage.wait(shown)
    assert pending.returncode == 1
    assert "Pending: it begins at 2098-01-01T00:00:00Z" in pending.stderr

    program = Path(sys.executable).with_name("waddle")
    command = [program, "wait", shown, "--timeout", LONG, *stage.options()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        says("Active")
        out, _ = waiting.communicate(timeout=PATIENCE_SECONDS)
    assert (waiting.returncode, out) == (0, f"{shown}: in force until 2099-01-01T00:00:00Z\n")

    stage.api.request(
        "PATCH", path, {"spec": {"effect": "warn"}}, content_type="application/merge-patch+json"
    )
    assert stage.wait(shown).returncode == 1, "the status is of what was there before"


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    status = waddle("status", "--kubeconfig", file)
    wait = waddle("wait", "K/x", "--timeout", SHORT, "--kubeconfig", file)

    assert status.returncode == 2
    assert "the API server did not answer" in status.stderr
    assert wait.returncode == 1
    first, last = wait.stderr.splitlines()
    assert first.startswith("K/x: ")
    assert first.endswith("Trying again")
    assert "not enforced within 2 s" in last
