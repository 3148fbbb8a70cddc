"""Policies of the API server's own under names that ours would have: left alone, told, bound by none.

Who may write ValidatingAdmissionPolicies can refuse anything anyway. What is asked is that such a
policy never decides in our name, nor keeps the webhook from deciding.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.patience import until
from tests.system.conftest import control_plane
from tests.system.generated import (
    BINDINGS,
    POLICIES,
    UNLIKE,
    constraint,
    refusal,
    running,
    template,
)
from tests.system.replicas import CONSTRAINTS, TEMPLATES, Plane, config_map, try_request
from tests.webhook.admission_policies.making import binding, policy

GROUP = "admissionregistration.k8s.io/v1"


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of its own: policies of the API server are about everything in it."""
    with control_plane(tmp_path_factory.mktemp("colliding")) as made:
        yield made


def foreign_policy(kind: str) -> dict[str, Any]:
    """A policy that somebody made under our name, and that lets everything in."""
    rule = {"operations": ["CREATE"], "resources": ["secrets"]}
    return policy("true", name=f"gatekeeper-{kind.lower()}", rule=rule)


def by_pod(plane: Plane, path: str) -> str:
    """Return ``status.byPod`` of a policy as text."""
    return str(plane.by_pod(path))


def test_a_policy_of_our_name_that_is_another_s_decides_nothing_for_us(plane: Plane) -> None:
    foreign = plane.api.request("POST", POLICIES, foreign_policy("Collided"))
    with ExitStack() as stack:
        replicas = [running(plane, stack, f"collided-{number}") for number in range(2)]
        plane.put_template(template("Collided", UNLIKE))
        plane.put_constraint(constraint("one", "Collided", "bad"))
        path = f"{TEMPLATES}/collided"
        until(
            lambda: by_pod(plane, path).count("is there, and is not ours") == len(replicas),
            "each says that it is another's",
        )
        for replica in replicas:
            until(lambda replica=replica: replica.denies("bad"), "the webhook decides as before")
        kept = plane.api.request("GET", f"{POLICIES}/gatekeeper-collided")
        assert kept["spec"] == foreign["spec"]
        assert kept["metadata"]["uid"] == foreign["metadata"]["uid"]
        assert "ownerReferences" not in kept["metadata"]
        assert not try_request(plane.api, "GET", f"{BINDINGS}/gatekeeper-collided-one")

        # Once it is gone, ours takes its name.
        plane.api.request("DELETE", f"{POLICIES}/gatekeeper-collided")
        until(lambda: "denied: bad" in refusal(plane, config_map("bad")), "the API server refuses")
        until(lambda: "not ours" not in by_pod(plane, path), "nothing is wrong any more")
        plane.delete_templates()


def test_a_binding_of_our_name_that_is_another_s_is_left_alone(plane: Plane) -> None:
    other = binding("gatekeeper-bound-one", "somebodys", validationActions=["Audit"])
    foreign = plane.api.request("POST", BINDINGS, other)
    with ExitStack() as stack:
        replica = running(plane, stack, "bound-0")
        plane.put_template(template("Bound", UNLIKE))
        plane.put_constraint(constraint("one", "Bound", "bad"))
        path = f"{CONSTRAINTS}/bound/one"
        until(lambda: "is there, and is not ours" in by_pod(plane, path), "it is told")
        until(lambda: replica.denies("bad"), "the webhook decides as before")
        kept = plane.api.request("GET", f"{BINDINGS}/gatekeeper-bound-one")
        assert (kept["spec"], kept["metadata"]["uid"]) == (
            foreign["spec"],
            foreign["metadata"]["uid"],
        )
        plane.delete_templates()
        until(lambda: not try_request(plane.api, "GET", f"{POLICIES}/gatekeeper-bound"), "gone")
        assert plane.api.request("GET", f"{BINDINGS}/gatekeeper-bound-one")


def test_a_policy_that_claims_to_be_of_our_template_is_put_right(plane: Plane) -> None:
    """Its owner is forged: it says that our template controls it."""
    with ExitStack() as stack:
        running(plane, stack, "claimed-0")
        made = plane.put_template(template("Claimedpolicy", UNLIKE))
        plane.put_constraint(constraint("one", "Claimedpolicy", "bad"))
        until(lambda: "denied: bad" in refusal(plane, config_map("bad")), "the API server refuses")
        owner = {
            "apiVersion": made["apiVersion"],
            "kind": "ConstraintTemplate",
            "name": "claimedpolicy",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        forged = foreign_policy("Claimedpolicy")
        forged["metadata"]["ownerReferences"] = [owner]
        path = f"{POLICIES}/gatekeeper-claimedpolicy"
        plane.api.request("DELETE", path)
        try_request(plane.api, "POST", POLICIES, forged)  # a replica may be faster
        until(
            lambda: (
                "matchConditions" in (try_request(plane.api, "GET", path) or {}).get("spec", {})
                or "paramKind" in (try_request(plane.api, "GET", path) or {}).get("spec", {})
            ),
            "it is ours again",
        )
        until(lambda: "denied: bad" in refusal(plane, config_map("bad")), "and refuses")
        plane.delete_templates()
