"""ConstraintGroups on a real API server: admitted, enforced, shown, rolled out, audited, reported."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster import ApiError
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import (
    NAMESPACE,
    TEMPLATES,
    WORKLOADS,
    Plane,
    Replica,
    try_request,
    until,
)

PAGE = (ROOT / "docs" / "groups.md").read_text()
FILES = dict(re.findall(r"`(groups/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
GROUPS = "/apis/waddle.dev/v1alpha1/constraintgroups"
PODS = f"/api/v1/namespaces/{WORKLOADS}/pods"
OPERATIONS = (*ALL_OPERATIONS, "--operation=audit", "--audit-interval=1")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster with the templates of the page."""
    with control_plane(tmp_path_factory.mktemp("groups")) as made:
        yield made


@pytest.fixture(scope="module")
def replica(plane: Plane) -> Iterator[Replica]:
    """A replica that the API server asks."""
    with Replica(plane, "grouped", *OPERATIONS) as started:
        started.wait_ready()
        plane.mark_pod("grouped", ready=True)
        for name in ("allowed-registries", "image-digests"):
            file = ROOT / "policies" / "general" / name / "template.yaml"
            plane.put_template(yaml.safe_load(file.read_text()))
        plane.register(started.ports["admission"], resources=("configmaps", "pods"))
        yield started
        plane.unregister()
    plane.delete_pod("grouped")


@pytest.fixture(autouse=True)
def nothing_stays(plane: Plane) -> Iterator[None]:
    """Groups end with their test, and so does what they are tried on."""
    yield
    for path in (GROUPS, f"{PODS}/neither?gracePeriodSeconds=0"):
        try_request(plane.api, "DELETE", path)


def put(plane: Plane, document: dict[str, Any]) -> str:
    """Make or replace a group; why it is refused, or an empty text."""
    while (answer := _put(plane, document)).startswith("409"):
        pass  # its status was written meanwhile
    return answer


def _put(plane: Plane, document: dict[str, Any]) -> str:
    name = document["metadata"]["name"]
    known = try_request(plane.api, "GET", f"{GROUPS}/{name}")
    try:
        if known is None:
            plane.api.request("POST", GROUPS, document)
        else:
            version = known["metadata"]["resourceVersion"]
            body = document | {"metadata": document["metadata"] | {"resourceVersion": version}}
            plane.api.request("PUT", f"{GROUPS}/{name}", body)
    except ApiError as error:
        return f"{error.status} {error.body}"
    return ""


def refusal(plane: Plane, pod: dict[str, Any]) -> str:
    """Returns the refusal of a Pod; empty if it is admitted."""
    body = pod | {"metadata": pod["metadata"] | {"namespace": WORKLOADS}}
    try:
        plane.api.request("POST", f"{PODS}?dryRun=All", body)
    except ApiError as error:
        return f"{error.status} {error.body}"
    return ""


@pytest.mark.slow(60)
def test_a_group_lives_as_constraints_do(
    plane: Plane, replica: Replica, request: pytest.FixtureRequest
) -> None:
    group = yaml.safe_load(FILES["groups/images.yaml"])
    pods = {one["metadata"]["name"]: one for one in yaml.safe_load_all(FILES["groups/pods.yaml"])}
    reached = (
        f"--timeout={PATIENCE_SECONDS:.0f}s",
        "--kubeconfig",
        plane.cluster.kubeconfig,
        "-n",
        NAMESPACE,
    )
    templates = "ConstraintTemplate/allowregistries ConstraintTemplate/requireimagedigests"
    shown = waddle("wait", *templates.split(), *reached)
    assert shown.returncode == 0, shown.stderr
    until(lambda: put(plane, group) == "", "its templates are known, and it is admitted")
    shown = waddle("wait", "ConstraintGroup/images-we-trust", *reached)
    assert shown.returncode == 0, shown.stderr
    message = "[images-we-trust] Use an image of registry.example.com, or name its digest."
    until(lambda: message in refusal(plane, pods["neither"]), "what is neither is refused")
    assert refusal(plane, pods["ours"]) == ""
    assert refusal(plane, pods["pinned"]) == ""

    # It is shown.
    status = waddle("status", "--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    assert "ConstraintGroup/images-we-trust" in status.stdout
    path = f"{GROUPS}/images-we-trust"

    def of_status() -> dict[str, Any]:
        found: dict[str, Any] = plane.api.request("GET", path).get("status", {})
        return found

    until(lambda: any(one.get("enforced") for one in of_status().get("byPod", ())), "in byPod")
    until(
        lambda: (
            {"type": "Active", "status": "True"}.items()
            <= next(
                (one for one in of_status().get("conditions", ()) if one["type"] == "Active"), {}
            ).items()
        ),
        "its condition says Active",
    )

    # It is audited: what was let in before it.
    group["spec"]["match"]["namespaces"] = [WORKLOADS]
    group["spec"]["enforcementAction"] = "dryrun"
    assert put(plane, group) == ""
    until(lambda: refusal(plane, pods["neither"]) == "", "it only records now")
    body = pods["neither"] | {"metadata": {"name": "neither", "namespace": WORKLOADS}}
    plane.api.request("POST", PODS, body)

    def audited() -> list[tuple[str, str]]:
        listed = of_status().get("violations", ())
        return [(one["name"], one["enforcementAction"]) for one in listed]

    until(lambda: audited() == [("neither", "dryrun")], lambda: f"it is audited: {of_status()}")
    assert of_status()["totalViolations"] == 1
    plane.api.request("DELETE", f"{PODS}/neither?gracePeriodSeconds=0")

    # A constraint's stages are its own, too.
    group["spec"]["enforcementAction"] = "deny"
    group["metadata"]["annotations"] = {"waddle.dev/rollout": "warn"}
    assert put(plane, group) == ""

    def stages() -> list[Any]:
        return [one.get("enforcementAction") for one in of_status().get("byPod", ())]

    until(lambda: stages() == ["warn"], lambda: f"it is at its stage: {of_status()}")
    assert refusal(plane, pods["neither"]) == ""

    # A template that goes takes the group with it, and says so.
    del group["metadata"]["annotations"]
    assert put(plane, group) == ""
    until(lambda: message in refusal(plane, pods["neither"]), "it denies again")
    deleted = plane.api.request("GET", f"{TEMPLATES}/requireimagedigests")
    for field in ("uid", "resourceVersion", "managedFields"):
        del deleted["metadata"][field]
    plane.delete_template("requireimagedigests")
    request.addfinalizer(lambda: plane.put_template(deleted))
    until(
        lambda: (
            "there is no ConstraintTemplate of the kind RequireImageDigests"
            in str(of_status().get("byPod"))
        ),
        "its status names the member",
    )
    until(lambda: "member pinned" in refusal(plane, pods["ours"]), "what it matches is refused")
    plane.api.request("DELETE", path)
    until(lambda: refusal(plane, pods["neither"]) == "", "it is gone")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"members": {}, "expression": "a()"}, "spec.members"),
        ({"members": {"a": {"kind": "Zork"}}, "expression": "a()"}, "no ConstraintTemplate of the"),
        ({"members": {"a": {"kind": "AllowRegistries"}}, "expression": "b()"}, "names b"),
        (
            {"members": {"a": {"kind": "ConstraintGroup"}}, "expression": "a()"},
            "cannot be a member",
        ),
        ({"members": {"a": {"kind": "AllowRegistries"}}, "expression": "true"}, "calls no member"),
    ],
)
def test_a_group_that_cannot_be_used_is_refused(
    spec: dict[str, Any], why: str, plane: Plane, replica: Replica
) -> None:
    document = yaml.safe_load(FILES["groups/images.yaml"])
    document["metadata"]["name"], document["spec"] = "wrong", spec
    until(lambda: put(plane, document).startswith("4"), "the webhook is asked")
    answer = put(plane, document)
    assert answer.startswith("422"), answer
    assert why in answer
