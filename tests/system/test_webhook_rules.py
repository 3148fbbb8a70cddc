"""`--webhook-rules=policies`: the API server asks about what policies in force need, and no more."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.patience import until
from tests.policies import definition
from tests.system.admission_calls import dry_run
from tests.system.condition_reading import says
from tests.system.conftest import ALL_OPERATIONS
from tests.system.load import is_denied
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONSTRAINTS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
)

Json = dict[str, Any]

NAME = "rules-of-policies"
RULES = ("--webhook-rules=policies", f"--validating-webhook-configuration-name={NAME}")
BOTH = ["CREATE", "UPDATE"]


@pytest.fixture
def plane(silent_plane: Plane) -> Plane:
    """A control plane without policies, whose API server asks nobody about everything."""
    return silent_plane


@pytest.fixture
def replicas(plane: Plane, proxy: Proxy) -> Iterator[list[Replica]]:
    """Three replicas that keep the rules of a configuration, which has none."""
    register(plane, proxy.port)
    with ExitStack() as stack:
        started = []
        stack.callback(plane.api.request, "DELETE", f"{WEBHOOKS}/{NAME}")
        for number in range(3):
            name = f"ruling-{number}"
            stack.callback(plane.delete_pod, name)
            started.append(stack.enter_context(Replica(plane, name, *ALL_OPERATIONS, *RULES)))
        for replica in started:
            replica.wait_ready()
            plane.mark_pod(replica.name, ready=True)
        proxy.replicas = list(started)
        yield started


def register(plane: Plane, port: int) -> None:
    """Two entries without rules, and one of somebody else."""
    entries = []
    for name, path, failure_policy in (
        ("ignore.waddle.dev", "/v1/admit/ignore", "Ignore"),
        ("fail.waddle.dev", "/v1/admit/fail", "Fail"),
        ("other.example.com", "/other", "Ignore"),
    ):
        own = f"!has(request.namespace) || request.namespace == '{WORKLOADS}'"
        entries.append(
            {
                "name": name,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": f"https://127.0.0.1:{port}{path}",
                    "caBundle": plane.bundle,
                },
                "failurePolicy": failure_policy,
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "matchConditions": [{"name": "own", "expression": own}],
                "rules": [],
            }
        )
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "annotations": {"waddle.dev/webhook-rules-delay": "3s"}},
        "webhooks": entries,
    }
    plane.api.apply(f"{WEBHOOKS}/{NAME}", body)


def resources(plane: Plane, number: int) -> dict[str, list[str]]:
    """The core resources in the rules of an entry, with their operations."""
    entry: dict[str, Any] = plane.api.request("GET", f"{WEBHOOKS}/{NAME}")["webhooks"][number]
    return {
        resource: rule["operations"]
        for rule in entry.get("rules") or ()
        for resource in rule["resources"]
        if "" in rule["apiGroups"]
    }


@pytest.mark.slow(40)
def test_rules_follow_policies(plane: Plane, replicas: list[Replica]) -> None:
    made = plane.put_template(template("Ruled"))
    until(lambda: plane.is_generated("ruled", made["metadata"]["uid"]), "its CRD is there")
    try:
        assert resources(plane, 0) == resources(plane, 1) == {}
        plane.put_constraint(constraint("maps", "maps", "Ruled"))
        until(lambda: resources(plane, 0) == {"configmaps": BOTH}, "its kind is sent")
        path = f"{CONSTRAINTS}/ruled/maps"
        until(lambda: says(plane, path, "Enforced", "3/3 replicas at generation 1"), "it says so")
        until(lambda: is_denied(plane.api, "maps"), "the API server asks")
        closed = constraint("secrets", "secrets", "Ruled")
        closed["spec"]["match"]["kinds"][0]["kinds"] = ["Secret"]
        closed["metadata"]["annotations"] = {"waddle.dev/failure-policy": "fail"}
        plane.put_constraint(closed)
        until(lambda: resources(plane, 1) == {"secrets": BOTH}, "the other entry has the other")
        assert resources(plane, 0) == {"configmaps": BOTH}

        plane.delete_constraint("maps", "Ruled")
        until(lambda: resources(plane, 0) == {}, "what nobody needs is sent no longer")
        assert resources(plane, 1) == {"secrets": BOTH}
        document = plane.api.request("GET", f"{WEBHOOKS}/{NAME}")
        # Policies are asked about at first, then each kind came, and one went: each written once.
        assert document["metadata"]["generation"] <= 5
        first, second, other = document["webhooks"]
        assert [rule["resources"] for rule in first["rules"]] == [["*"]]
        assert "constraints.gatekeeper.sh" in first["rules"][0]["apiGroups"]
        assert [rule["apiGroups"] for rule in second["rules"]] == [[""]]
        assert not other.get("rules")
        for kind in ("widened", "narrowed"):
            metric = f'waddle_webhook_rules_writes_total{{change="{kind}"}}'
            until(  # it counts a write after its answer
                lambda metric=metric: sum(one.metric(metric) or 0 for one in replicas) >= 1,
                f"a replica counts that it has {kind} the rules",
            )
    finally:
        plane.delete_template("ruled")


KYVERNO: Json = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "ruled"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["endpoints"],
                }
            ]
        },
        "validations": [{"expression": "false", "message": "denied by Kyverno's policy"}],
    },
}
KYVERNO_CRD = definition("ValidatingPolicy", "validatingpolicies", "policies.kyverno.io")


@pytest.mark.slow(60)
def test_rules_stand_while_nobody_runs_and_are_narrowed_by_who_starts_then(
    plane: Plane, proxy: Proxy, kyverno: None
) -> None:
    """Requests that fail closed are refused meanwhile, others admitted, and no more are sent."""
    register(plane, proxy.port)
    with ExitStack() as stack:
        stack.callback(plane.api.request, "DELETE", f"{WEBHOOKS}/{NAME}")
        replicas = [start(stack, plane, f"standing-{number}") for number in range(3)]
        proxy.replicas = list(replicas)
        made = plane.put_template(template("Ruled"))
        stack.callback(plane.delete_template, "ruled")
        until(lambda: plane.is_generated("ruled", made["metadata"]["uid"]), "its CRD is there")
        closed = constraint("closed", "closed", "Ruled")
        closed["spec"]["match"]["kinds"][0]["kinds"] = ["Secret"]
        closed["metadata"]["annotations"] = {"waddle.dev/failure-policy": "fail"}
        plane.put_constraint(closed)
        plane.put_constraint(constraint("opened", "opened", "Ruled"))
        opened = {"configmaps": BOTH, "endpoints": ["CREATE"]}
        until(
            lambda: (resources(plane, 0), resources(plane, 1)) == (opened, {"secrets": BOTH}),
            lambda: f"each entry has its rules: {resources(plane, 0)}, {resources(plane, 1)}",
        )
        until(lambda: is_denied(plane.api, "opened"), "the constraint is asked about")
        until(lambda: "by Kyverno's" in dry_run(plane, "endpoints"), "so is Kyverno's policy")
        for replica in replicas:
            replica.kill()
        assert "failed calling webhook" in dry_run(plane, "secrets")
        assert dry_run(plane, "configmaps", data={"deny": "opened"}) == "admitted"
        assert dry_run(plane, "endpoints") == "admitted"
        assert dry_run(plane, "services", spec={"ports": [{"port": 1}]}) == "admitted"
        plane.delete_constraint("closed", "Ruled")  # no replica narrows its rule
        plane.cluster.restart()
        assert "failed calling webhook" in dry_run(plane, "secrets")
        assert dry_run(plane, "configmaps", data={"deny": "opened"}) == "admitted"

        proxy.replicas = [start(stack, plane, "standing-again")]
        until(lambda: resources(plane, 1) == {}, "who starts takes away what nobody needs")
        assert dry_run(plane, "secrets") == "admitted"
        until(lambda: is_denied(plane.api, "opened"), "and all is enforced again")
        until(lambda: "by Kyverno's" in dry_run(plane, "endpoints"), "Kyverno's policy, too")


def start(stack: ExitStack, plane: Plane, name: str) -> Replica:
    """A replica that is ready, and enforces Kyverno's policies too."""
    stack.callback(plane.delete_pod, name)
    arguments = (*ALL_OPERATIONS, *RULES, "--kyverno-policies=enforce")
    replica = stack.enter_context(Replica(plane, name, *arguments))
    replica.wait_ready()
    plane.mark_pod(name, ready=True)
    return replica


@pytest.fixture
def kyverno(plane: Plane) -> Iterator[None]:
    """A policy of Kyverno, and its kind."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    policies = "/apis/policies.kyverno.io/v1/validatingpolicies"
    definition = f"{definitions}/{KYVERNO_CRD['metadata']['name']}"
    plane.api.apply(definition, KYVERNO_CRD)
    try:
        until(lambda: try_request(plane.api, "GET", policies) is not None, "its kind is served")
        plane.api.apply(f"{policies}/ruled", KYVERNO)
        yield
    finally:
        plane.api.request("DELETE", definition)
