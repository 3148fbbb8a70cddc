"""Mutators and ExpansionTemplates of a real API server: applied, told of by pod, taken back."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until
from tests.policies import expansion_template
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import (
    CONFIG_MAPS,
    PATIENT_SECONDS,
    STATUSES,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    review_of,
    try_request,
)
from tests.webhook.cli.in_process import waddle
from tests.webhook.mutation.documents import assign, label
from webhook.constraint.rollout import ANNOTATION

MUTATORS = "/apis/mutations.gatekeeper.sh/v1"
EXPANSIONS = "/apis/expansion.gatekeeper.sh/v1alpha1/expansiontemplate"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NAME = "waddle-mutation-tests"
CONFIG_MAP = [{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]


def path_of(document: dict[str, Any]) -> str:
    """Returns the path of a mutator."""
    return f"{MUTATORS}/{document['kind'].lower()}/{document['metadata']['name']}"


@pytest.fixture
def mutating(plane: Plane, start: StartReplica) -> Iterator[Replica]:
    """A replica that the API server asks to mutate ConfigMaps; these and mutators end with the test."""
    with mutating_replica(plane, start) as replica:
        yield replica


@pytest.fixture
def fighting(plane: Plane, start: StartReplica) -> Iterator[Replica]:
    """The same, which takes a fourth change for a fight."""
    with mutating_replica(plane, start, "--mutation-fights-per-hour=3") as replica:
        yield replica


@contextmanager
def mutating_replica(plane: Plane, start: StartReplica, *flags: str) -> Iterator[Replica]:
    """A replica that the API server asks to mutate."""
    operations = (*ALL_OPERATIONS, "--operation=mutation-webhook")
    replica = start("mutating-0", *operations, *flags).wait_ready()
    webhook = {
        "name": "mutation.gatekeeper.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": f"https://127.0.0.1:{replica.ports['admission']}/v1/mutate",
            "caBundle": plane.bundle,
        },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": PATIENT_SECONDS,
        "matchConditions": [
            {"name": "own-names", "expression": "request.name.startsWith('mutated-')"}
        ],
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
            }
        ],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }
    plane.api.apply(f"{CONFIGURATIONS}/{NAME}", body)
    try:
        yield replica
    finally:
        plane.api.request("DELETE", f"{CONFIGURATIONS}/{NAME}")
        for path in (f"{MUTATORS}/assign", f"{MUTATORS}/assignmetadata", EXPANSIONS, CONFIG_MAPS):
            plane.api.request("DELETE", path)


def by_pod(plane: Plane, path: str, pod: str = "mutating-0") -> dict[str, Any]:
    """Returns the byPod entry of a replica."""
    entries = plane.by_pod(path)
    return next((entry for entry in entries if entry["id"] == pod), {})


def stored_config_map(plane: Plane, name: str) -> dict[str, Any]:
    """A ConfigMap as the API server stores it, made anew."""
    try_request(plane.api, "DELETE", f"{CONFIG_MAPS}/{name}")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
    found: dict[str, Any] = plane.api.request("POST", CONFIG_MAPS, body)
    return found


def labels(plane: Plane, name: str) -> dict[str, str]:
    """The labels that a ConfigMap is stored with."""
    found: dict[str, str] = stored_config_map(plane, name)["metadata"].get("labels") or {}
    return found


def test_a_mutator_is_applied_shown_by_pod_and_keeps_its_last_good_generation(
    plane: Plane, mutating: Replica
) -> None:
    owner = label("owner", "owner", "nobody", match={"namespaces": [WORKLOADS]})
    made_one = plane.api.apply(path_of(owner), owner)
    until(lambda: labels(plane, "mutated-a") == {"owner": "nobody"}, "the label is there")
    until(lambda: by_pod(plane, path_of(owner)).get("enforced") is True, "byPod says so")
    entry = by_pod(plane, path_of(owner))
    assert entry["mutatorUID"] == made_one["metadata"]["uid"]
    assert entry["observedGeneration"] == 1
    assert "errors" not in entry
    name = "mutating--0-assignmetadata-owner"
    status = plane.api.request("GET", f"{STATUSES}/mutatorpodstatuses/{name}")
    assert status["metadata"]["labels"] == {
        "internal.gatekeeper.sh/pod": "mutating-0",
        "internal.gatekeeper.sh/mutator-name": "owner",
        "internal.gatekeeper.sh/mutator-kind": "AssignMetadata",
    }
    assert [one["uid"] for one in status["metadata"]["ownerReferences"]] == [mutating.uid]

    owner["spec"]["location"] = "metadata..labels"
    plane.api.apply(path_of(owner), owner)
    until(lambda: by_pod(plane, path_of(owner)).get("errors"), "the fault is told")
    entry = by_pod(plane, path_of(owner))
    assert entry["enforced"] is False
    assert entry["observedGeneration"] == 2
    assert "invalid location format" in entry["errors"][0]["message"]
    assert labels(plane, "mutated-a") == {"owner": "nobody"}

    plane.api.request("DELETE", path_of(owner))
    until(lambda: labels(plane, "mutated-a") == {}, "it is gone")
    gone = f"{STATUSES}/mutatorpodstatuses/{name}"
    until(lambda: try_request(plane.api, "GET", gone) is None, "its status is gone")


def test_a_conflict_is_reported_on_every_party_and_taken_back(
    plane: Plane, mutating: Replica
) -> None:
    one = assign("one", "data.a", "2", applyTo=CONFIG_MAP)
    two = assign("two", "data.b[name: x].c", "2", applyTo=CONFIG_MAP)
    other = assign("other", "data.b.c", "2", applyTo=CONFIG_MAP)
    for document in (one, two, other):
        plane.api.apply(path_of(document), document)
    for document in (two, other):
        path = path_of(document)
        until(lambda path=path: by_pod(plane, path).get("errors"), f"the conflict is told: {path}")
        (error,) = by_pod(plane, path)["errors"]
        assert error == {
            "type": "ErrConflictingSchema",
            "message": "the following mutators have conflicting schemas: "
            "[Assign.mutations.gatekeeper.sh /other,Assign.mutations.gatekeeper.sh /two]",
        }
    until(lambda: stored_config_map(plane, "mutated-b")["data"] == {"a": "2"}, "the third goes on")
    conflicting = "gatekeeper_mutator_conflicting_count"
    until(lambda: mutating.metric(conflicting) == 2, "a metric counts both")
    plane.api.request("DELETE", path_of(other))
    until(lambda: by_pod(plane, path_of(two)).get("enforced") is True, "it is taken back")
    assert "errors" not in by_pod(plane, path_of(two))


def test_templates_of_a_circle_all_say_so_until_it_is_broken(
    plane: Plane, mutating: Replica
) -> None:
    def template(name: str, of: str, makes: str) -> dict[str, Any]:
        return expansion_template(
            name,
            applyTo=[{"groups": ["x"], "versions": ["v1"], "kinds": [of]}],
            generatedGVK={"group": "x", "version": "v1", "kind": makes},
        )

    for document in (template("a-b", "A", "B"), template("b-a", "B", "A")):
        plane.api.apply(f"{EXPANSIONS}/{document['metadata']['name']}", document)
    for name in ("a-b", "b-a"):
        path = f"{EXPANSIONS}/{name}"
        until(lambda path=path: by_pod(plane, path).get("errors"), f"the circle is told: {path}")
        (error,) = by_pod(plane, path)["errors"]
        assert error == {"message": "template forms expansion cycle"}
    plane.api.request("DELETE", f"{EXPANSIONS}/b-a")
    path = f"{EXPANSIONS}/a-b"
    until(lambda: by_pod(plane, path) and "errors" not in by_pod(plane, path), "it is taken back")
    active = 'gatekeeper_expansion_templates{status="active"}'
    until(lambda: mutating.metric(active) == 1, "a metric counts it")


def condition(plane: Plane, path: str, name: str) -> dict[str, Any]:
    """A condition of an object; empty where it has none such."""
    status = plane.api.request("GET", path).get("status") or {}
    return next((item for item in status.get("conditions", ()) if item["type"] == name), {})


def test_a_replica_that_starts_applies_the_last_good_generation_of_a_broken_mutator(
    plane: Plane, mutating: Replica, start: StartReplica
) -> None:
    owner = label("kept", "kept", "yes", match={"namespaces": [WORKLOADS]})
    plane.api.apply(path_of(owner), owner)
    until(lambda: labels(plane, "mutated-c") == {"kept": "yes"}, "the label is there")
    revisions = "/apis/policy.waddle.dev/v1alpha1/policyrevisions"

    def kept() -> list[str]:
        items = plane.api.request("GET", revisions)["items"]
        subjects = [(item["spec"]["subject"], item["metadata"]["name"]) for item in items]
        return [name for subject, name in subjects if subject["name"] == "kept"]

    until(kept, "the generation is kept")
    until(
        lambda: condition(plane, path_of(owner), "Active").get("status") == "True",
        "the condition says that all enforce it",
    )
    owner["spec"]["location"] = "metadata..labels"
    plane.api.apply(path_of(owner), owner)
    until(lambda: by_pod(plane, path_of(owner)).get("errors"), "the fault is told")
    late = start("mutating-1", *ALL_OPERATIONS, "--operation=mutation-webhook").wait_ready()

    def says_what_it_applies() -> bool:
        entry = by_pod(plane, path_of(owner), "mutating-1")
        generations = (entry.get("observedGeneration"), entry.get("activeGeneration"))
        return generations == (2, 1) and entry["activeRevision"] in kept()

    until(says_what_it_applies, "the new replica says that it applies the first")
    verdict = late.post(review_of(config_map("x")), "/v1/mutate?timeout=10s").verdict
    assert json.loads(base64.b64decode(verdict["patch"])) == [
        {"op": "add", "path": "/metadata/labels", "value": {"kept": "yes"}}
    ]
    until(
        lambda: condition(plane, path_of(owner), "Error").get("status") == "True",
        "the condition says that nobody enforces the newest generation",
    )


def test_a_fight_with_a_controller_that_writes_back_is_found_and_reported(
    plane: Plane, start: StartReplica, fighting: Replica
) -> None:
    owner = label("fought", "fought", "yes", match={"namespaces": [WORKLOADS]})
    plane.api.apply(path_of(owner), owner)
    until(lambda: labels(plane, "mutated-d") == {"fought": "yes"}, "the label is there")
    for _ in range(5):  # The controller: what it wants has no label.
        found = plane.api.request("GET", f"{CONFIG_MAPS}/mutated-d")
        assert found["metadata"].pop("labels") == {"fought": "yes"}
        plane.api.request("PUT", f"{CONFIG_MAPS}/mutated-d", found)
    until(lambda: by_pod(plane, path_of(owner)).get("fighting"), "the replica says so")
    assert by_pod(plane, path_of(owner))["fighting"] == f"ConfigMap {WORKLOADS}/mutated-d"
    until(
        lambda: condition(plane, path_of(owner), "Fighting").get("status") == "True",
        "the condition says so",
    )
    series = 'waddle_mutators_fighting{mutator_kind="AssignMetadata",mutator_name="fought"}'
    until(lambda: fighting.metric(series) == 1, "a metric says so")


def test_a_previewed_mutator_says_so_and_is_applied_once_it_is_enforced(
    plane: Plane, mutating: Replica
) -> None:
    soon = label("soon", "soon", "yes", match={"namespaces": [WORKLOADS]})
    soon["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    plane.api.apply(path_of(soon), soon)
    until(lambda: by_pod(plane, path_of(soon)).get("preview") is True, "byPod says so")
    assert labels(plane, "mutated-e") == {}
    until(
        lambda: condition(plane, path_of(soon), "Enforced").get("reason") == "Previewed",
        "so do the conditions",
    )
    soon["metadata"]["annotations"] = {}
    plane.api.apply(path_of(soon), soon)
    until(lambda: labels(plane, "mutated-e") == {"soon": "yes"}, "it is applied")
    until(
        lambda: condition(plane, path_of(soon), "Active").get("status") == "True",
        "the conditions follow",
    )


def test_a_mutator_is_previewed_for_its_time_and_then_applied_by_itself(
    plane: Plane, mutating: Replica
) -> None:
    staged = label("staged", "staged", "yes", match={"namespaces": [WORKLOADS]})
    staged["metadata"]["annotations"] = {ANNOTATION: "preview"}
    plane.api.apply(path_of(staged), staged)

    def rollout() -> dict[str, Any]:
        found: dict[str, Any] = plane.api.request("GET", path_of(staged)).get("status") or {}
        return found.get("rollout") or {}

    until(lambda: rollout().get("state") == "Holding", "it is previewed until told otherwise")
    until(lambda: by_pod(plane, path_of(staged)).get("preview") is True, "byPod says so")
    assert labels(plane, "mutated-f") == {}
    patch = {"metadata": {"annotations": {ANNOTATION: "preview after=1s"}}}
    plane.api.request("PATCH", path_of(staged), patch, content_type="application/merge-patch+json")
    until(lambda: rollout().get("state") == "Complete", "its time is over")
    until(lambda: labels(plane, "mutated-f") == {"staged": "yes"}, "it is applied")
    assert [step["action"] for step in rollout()["steps"]] == ["preview", "enforce"]
    until(lambda: by_pod(plane, path_of(staged)).get("enforced") is True, "byPod says so")
    uid = plane.api.request("GET", path_of(staged))["metadata"]["uid"]
    events = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid={uid}"
    until(
        lambda: (
            "RolloutToEnforce"
            in {item["reason"] for item in plane.api.request("GET", events)["items"]}
        ),
        "an Event tells of the step",
    )


def test_status_shows_a_previewed_mutator_and_wait_does_not_take_it_for_enforced(
    plane: Plane, mutating: Replica
) -> None:
    shown = label("shown", "shown", "yes", match={"namespaces": [WORKLOADS]})
    shown["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    plane.api.apply(path_of(shown), shown)
    until(lambda: by_pod(plane, path_of(shown)).get("preview") is True, "it is previewed")

    options = ("--kubeconfig", plane.cluster.kubeconfig)
    status = waddle("status", *options)
    line = next(line for line in status.stdout.splitlines() if "AssignMetadata/shown" in line)
    assert "preview" in line, status.stdout
    early = waddle("wait", "--for=enforced", "AssignMetadata/shown", "--timeout=1s", *options)
    assert early.returncode == 1, early.stdout + early.stderr


def test_check_says_what_mutators_would_change_in_a_cluster_and_with_whom_they_conflict(
    plane: Plane, tmp_path: Path
) -> None:
    """Neither objects nor mutators are written."""
    space = "checked-mutators"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    plane.api.apply(f"/api/v1/namespaces/{space}", body)
    for name, labels_ in (("with", {"team": "blue"}), ("without-a", {}), ("without-b", {})):
        made_one = {"metadata": {"name": name, "labels": labels_}, "data": {"a": "1"}}
        plane.api.request("POST", f"/api/v1/namespaces/{space}/configmaps", made_one)
    match = {"namespaces": [space], "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]}
    in_force = assign("taken", "data.l[name: x].y", "2", applyTo=CONFIG_MAP)
    plane.api.apply(path_of(in_force), in_force)
    before = plane.api.request("GET", f"/api/v1/namespaces/{space}/configmaps")["items"]
    teams = label("teams", "team", "none", match=match)
    options = ("--cluster", "--kubeconfig", plane.cluster.kubeconfig, "-o", "json")

    def checked(*documents: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "mutators.yaml"
        file.write_text("\n---\n".join(map(json.dumps, documents)))
        found = waddle("check", "-f", file, *options)
        return found.returncode, json.loads(found.stdout)

    try:
        code, found = checked(teams)
        assert (code, found["problems"], found["missing"]) == (0, [], [])
        [drift] = found["drift"]
        assert drift["objects"] == 2
        assert [one["object"] for one in drift["examples"]] == [
            f"ConfigMap {space}/without-a",
            f"ConfigMap {space}/without-b",
        ]
        code, found = checked(teams, assign("other", "data.l.y", "2", applyTo=CONFIG_MAP))
        assert code == 1
        [problem] = found["problems"]
        assert problem["name"] == "other"
        assert "Assign.mutations.gatekeeper.sh /taken" in problem["message"]
        assert plane.api.request("GET", f"/api/v1/namespaces/{space}/configmaps")["items"] == before
        assert try_request(plane.api, "GET", path_of(teams)) is None
    finally:
        plane.api.request("DELETE", path_of(in_force))
        plane.api.request("DELETE", f"/api/v1/namespaces/{space}")
