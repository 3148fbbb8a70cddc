"""`waddle audit --once` at a real cluster: policies of the cluster or of files, and nothing written."""

import json
import os
import pty
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from tests.system import audited
from tests.system.replicas import CONSTRAINTS, CRD_PATH, TEMPLATES, Plane, try_request
from tests.system.strange import deep_config_map
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.known import TARGETS

WARNING = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "Labelled",
    "metadata": {"name": "only-warns"},
    "spec": {
        "enforcementAction": "warn",
        "match": audited.match("ClusterRole", "rbac.authorization.k8s.io", name="audited-*"),
        "parameters": {"label": "owner", "suffix": ""},
    },
}


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A directory with the policies of the mixed set."""
    folder = tmp_path / "policies"
    folder.mkdir()
    write(folder, audited.TEMPLATE, *audited.constraints())
    return folder


def write(folder: Path, *documents: dict[str, Any]) -> None:
    """The policies of a directory, all of them."""
    (folder / "policies.yaml").write_text(yaml.safe_dump_all(documents))


def run(plane: Plane, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command at this cluster."""
    return waddle("audit", "--once", "--kubeconfig", str(plane.cluster.kubeconfig), *arguments)


def test_every_format_says_what_the_others_say_and_nothing_is_written(
    audited_plane: Plane, policies: Path
) -> None:
    """JSON has every violation whole; a table shows some of each constraint and all totals."""
    before = audited_plane.writes()
    found = run(audited_plane, "--policies", str(policies), "-o", "json", "--audit-chunk-size=7")
    assert (found.returncode, found.stderr) == (1, "")
    document = json.loads(found.stdout)
    totals = {item["name"]: item["totalViolations"] for item in document["totals"]}
    assert set(totals) == set(audited.SPECS)
    counted = [item["constraint"]["name"] for item in document["violations"]]
    assert {name: counted.count(name) for name in totals} == totals
    assert totals["namespaces"] == 3, "one of four is taken out by Config"
    assert totals["dry"] == audited.MANY - 1, "one has the label"
    missing = [document[name] for name in ("faults", "failed", "unreadable", "undecided")]
    assert missing == [[], {}, [], []]
    long = next(item for item in document["violations"] if item["constraint"]["name"] == "long")
    assert long["message"].endswith(audited.LONG), "not cut"
    assert long["details"] == {"missing": "owner"}
    assert long["resource"]["uid"]

    sarif = json.loads(run(audited_plane, "--policies", str(policies), "-o", "sarif").stdout)
    (sweep,) = sarif["runs"]
    assert len(sweep["results"]) == len(document["violations"])
    assert {rule["id"] for rule in sweep["tool"]["driver"]["rules"]} == {
        f"Labelled/{name}" for name in totals
    }
    assert {item["level"] for item in sweep["results"]} == {"error", "warning", "note"}

    junit = ET.fromstring(run(audited_plane, "--policies", str(policies), "-o", "junit").stdout)
    assert int(junit.attrib["failures"]) == len(document["violations"])
    assert {suite.attrib["name"] for suite in junit} == {f"Labelled/{name}" for name in totals}

    table = run(audited_plane, "--policies", str(policies), "--limit=2").stdout
    assert f"Labelled/dry (dryrun): {audited.MANY - 1} violations" in table
    assert f"… and {audited.MANY - 3} more (--limit)" in table
    assert table.count("v1/Namespace audited-") >= 2
    assert f"{len(document['violations'])} violations in " in table.splitlines()[-1]
    assert audited_plane.writes() == before


def test_the_exit_code_says_whether_anything_would_be_denied(
    audited_plane: Plane, policies: Path
) -> None:
    """Warnings are no denials; a policy that cannot be used outweighs everything."""
    write(policies, audited.TEMPLATE, WARNING)
    found = run(audited_plane, "--policies", str(policies))
    assert (found.returncode, found.stderr) == (0, "")
    assert "Labelled/only-warns (warn): 2 violations" in found.stdout
    broken = {**WARNING, "kind": "Nowhere"}
    write(policies, audited.TEMPLATE, WARNING, broken)
    found = run(audited_plane, "--policies", str(policies))
    assert found.returncode == 2
    assert "Labelled/only-warns (warn): 2 violations" in found.stdout, "what was found is shown"
    assert 'template "nowhere" not found' in found.stderr
    found = run(audited_plane)
    assert found.returncode == 2
    assert "the cluster has no ConstraintTemplates: name files with --policies" in found.stderr
    found = waddle("audit", "--kubeconfig", str(audited_plane.cluster.kubeconfig))
    assert found.returncode == 64
    assert "add --once" in found.stderr


@pytest.mark.parametrize("levels", [1_100, 9_000])
def test_an_object_of_many_levels_does_not_keep_the_rest_from_being_audited(
    audited_plane: Plane, policies: Path, levels: int
) -> None:
    """It is reviewed, or named as what was left out; all others of its kind are reviewed."""
    api = audited_plane.cluster.api
    others = {
        name: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        for name in ("audited-first", "audited-last")
    }
    path = "/api/v1/namespaces/default/configmaps"
    constraint = {
        **WARNING,
        "metadata": {"name": "maps"},
        "spec": {**WARNING["spec"], "match": audited.match("ConfigMap", "", name="audited-*")},
    }
    write(policies, audited.TEMPLATE, constraint)
    for document in others.values():
        api.request("POST", path, document)
    deep = deep_config_map("audited-deep", levels)
    deep["metadata"]["namespace"] = "default"
    api.request("POST", path, deep)
    try:
        found = run(audited_plane, "--policies", str(policies), "-o", "json")
        document = json.loads(found.stdout)
    finally:
        for name in (*others, "audited-deep"):
            api.request("DELETE", f"{path}/{name}")
    named = {item["resource"]["name"] for item in document["violations"]}
    assert others.keys() <= named
    assert ("audited-deep" in named) != ("audited-deep" in found.stderr)
    assert document["leftOut"] == ("audited-deep" not in named)


def test_a_terminal_sees_progress_and_a_pipe_does_not(audited_plane: Plane, policies: Path) -> None:
    """It is drawn on standard error, so that a report can be redirected."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "webhook", "audit", "--once", "--policies", str(policies)]
    command += ["--kubeconfig", str(audited_plane.cluster.kubeconfig), "-o", "json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    drawn: list[bytes] = []

    def look() -> None:
        """A terminal that is not read from holds up who draws on it."""
        try:
            while data := os.read(ours, 65536):
                drawn.append(data)
        except OSError:
            pass  # the other end of the terminal is closed

    terminal = threading.Thread(target=look)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        terminal.start()
        report, _ = process.communicate(timeout=PATIENCE_SECONDS)
    terminal.join()
    os.close(ours)
    shown = b"".join(drawn)
    assert process.returncode == 1, shown
    assert json.loads(report)["violations"]
    assert b"violations" in shown


def test_a_constraint_of_the_cluster_is_reported_at_its_stage_of_a_roll_out(
    audited_plane: Plane,
) -> None:
    """The first stage, and what its status says came of it; and only what is stored is audited."""
    api = audited_plane.api
    template = f"{TEMPLATES}/{audited.TEMPLATE['metadata']['name']}"
    crd = f"{CRD_PATH}/labelled.constraints.gatekeeper.sh"
    rolled_out = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Labelled",
        "metadata": {
            "name": "rolled-out",
            "annotations": {"waddle.dev/rollout": "dryrun after=24h, warn after=24h"},
        },
        "spec": {
            "match": audited.match("ClusterRole", "rbac.authorization.k8s.io", name="audited-*"),
            "parameters": {"label": "owner", "suffix": ""},
        },
    }
    client = Client(targets=TARGETS, drivers=[RegoDriver()])
    try:
        audited.apply(audited_plane, template, audited.TEMPLATE)
        audited.apply(audited_plane, crd, client.create_crd(audited.TEMPLATE))
        until(lambda: audited.is_served(audited_plane), "the constraint's kind is served")
        audited.apply(audited_plane, f"{CONSTRAINTS}/labelled/rolled-out", rolled_out)
        found = run(audited_plane, "-o", "json")
        assert found.returncode == 0, found.stderr
        document = json.loads(found.stdout)
        assert {tuple(item["enforcementActions"]) for item in document["violations"]} == {
            ("dryrun",)
        }
        assert "::error" not in run(audited_plane, "-o", "github").stdout
        api.request("PUT", f"{CONSTRAINTS}/labelled/rolled-out", _without_stages(api))
        assert run(audited_plane).returncode == 1
    finally:
        for path in (f"{CONSTRAINTS}/labelled/rolled-out", template, crd):
            try_request(api, "DELETE", path)


def _without_stages(api: Api) -> dict[str, Any]:
    document: dict[str, Any] = api.request("GET", f"{CONSTRAINTS}/labelled/rolled-out")
    document["metadata"].pop("annotations", None)
    return document


def test_policies_of_files_bring_expansions_and_mutators_with_them(
    audited_plane: Plane, policies: Path
) -> None:
    """Mutators of files change implied objects, as the cluster's mutators do."""
    implied = {
        **WARNING,
        "metadata": {"name": "implied"},
        "spec": {
            **WARNING["spec"],
            "enforcementAction": "deny",
            "match": audited.match("Pod", source="Generated", namespaces=["audited-*"]),
        },
    }
    write(policies, audited.TEMPLATE, implied, audited.EXPANSION)
    found = run(audited_plane, "--policies", str(policies), "-o", "json")
    assert found.returncode == 1, found.stderr
    messages = [item["message"] for item in json.loads(found.stdout)["violations"]]
    assert messages
    assert all(text.startswith("[Implied by deployments] ") for text in messages)
    mutator = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {"location": "metadata.labels.owner", "parameters": {"assign": {"value": "me"}}},
    }
    write(policies, audited.TEMPLATE, implied, audited.EXPANSION, mutator)
    found = run(audited_plane, "--policies", str(policies))
    assert (found.returncode, found.stderr) == (0, "")
