"""`--webhook-rules=policies`: the API server asks about what policies in force need, and no more."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.patience import until
from tests.policies import definition
from tests.system.admission_calls import dry_run
from tests.system.condition_reading import conditions, holds, says
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
from tests.webhook.kyverno.making import LABEL, applied

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


def resources(plane: Plane, number: int, folder: str = WEBHOOKS) -> dict[str, list[str]]:
    """The core resources in the rules of an entry, with their operations."""
    entry: dict[str, Any] = plane.api.request("GET", f"{folder}/{NAME}")["webhooks"][number]
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


def start(stack: ExitStack, plane: Plane, name: str, *arguments: str) -> Replica:
    """A replica that is ready; without arguments it keeps rules and enforces Kyverno's policies."""
    stack.callback(plane.delete_pod, name)
    arguments = arguments or (*ALL_OPERATIONS, *RULES, "--kyverno-policies=enforce")
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


CHANGING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ASSIGN = "/apis/mutations.gatekeeper.sh/v1/assign"
MUTATION = (*ALL_OPERATIONS, "--operation=mutation-webhook", "--kyverno-policies=enforce")
CHANGED = f"{CHANGING}/{NAME}"
MUTATING_CRD = definition("MutatingPolicy", "mutatingpolicies", "policies.kyverno.io")
MUTATING_POLICIES = "/apis/policies.kyverno.io/v1/mutatingpolicies"
MUTATING: Json = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "MutatingPolicy",
    "metadata": {"name": "ruled"},
    "spec": {
        "matchConstraints": KYVERNO["spec"]["matchConstraints"],
        "mutations": [applied(LABEL)],
    },
}


def register_mutation(plane: Plane, port: int) -> None:
    """An entry for /v1/mutate without rules, and one of somebody else with a rule."""
    entry = {
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 30,
    }
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}
    client = {"url": f"https://127.0.0.1:{port}/v1/mutate", "caBundle": plane.bundle}
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME, "annotations": {"waddle.dev/webhook-rules-delay": "3s"}},
        "webhooks": [
            {**entry, "name": "mutate.waddle.dev", "clientConfig": client, "rules": []},
            {
                **entry,
                "name": "other.example.com",
                "clientConfig": {**client, "url": f"https://127.0.0.1:{port}/other"},
                "rules": [{**rule, "operations": ["CREATE"]}],
            },
        ],
    }
    plane.api.apply(CHANGED, body)


def assign(name: str, kind: str = "ConfigMap") -> Json:
    """A mutator that sets the field `data` of its name."""
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": name},
        "spec": {
            "applyTo": [{"groups": [""], "kinds": [kind], "versions": ["v1"]}],
            "match": {"namespaces": [WORKLOADS]},
            "location": f"data.{name}",
            "parameters": {"assign": {"value": "set"}},
        },
    }


def created_in_dry_run(plane: Plane, plural: str) -> Json:
    """The object that the API server would store."""
    path = f"/api/v1/namespaces/{WORKLOADS}/{plural}?dryRun=All"
    document: Json = plane.api.request("POST", path, {"metadata": {"name": "tried"}})
    return document


@pytest.mark.slow(60)
def test_rules_of_the_mutating_configuration_follow_mutators_and_kyvernos_policies(
    plane: Plane, proxy: Proxy, mutating_policies: None
) -> None:
    """A mutator is enforced once its rule is there; another's entry is never written."""
    register(plane, proxy.port)
    register_mutation(plane, proxy.port)
    before = plane.api.request("GET", CHANGED)["webhooks"]
    with ExitStack() as stack:
        for folder in (WEBHOOKS, CHANGING):
            stack.callback(plane.api.request, "DELETE", f"{folder}/{NAME}")
        stack.callback(plane.api.request, "DELETE", ASSIGN)
        spectator = start(stack, plane, "unruled", *MUTATION)  # it keeps no rules
        plane.api.apply(f"{ASSIGN}/first", assign("first"))
        until(
            lambda: (
                conditions(plane, f"{ASSIGN}/first").get("Enforced", {}).get("reason") == "NotAsked"
            ),
            "no rule sends its kind",
        )
        assert resources(plane, 0, CHANGING) == {}

        kept = (*MUTATION, *RULES, f"--mutating-webhook-configuration-name={NAME}")
        replicas = [start(stack, plane, f"mutating-{number}", *kept) for number in range(3)]
        proxy.replicas = [spectator, *replicas]
        until(lambda: holds(plane, f"{ASSIGN}/first", "Active", "Enforced"), "it is enforced")
        assert resources(plane, 0, CHANGING) == {"configmaps": BOTH}, "since its rule is there"
        until(
            lambda: created_in_dry_run(plane, "configmaps").get("data") == {"first": "set"},
            "it is applied",
        )
        plane.api.apply(f"{MUTATING_POLICIES}/ruled", MUTATING)
        both = {"configmaps": BOTH, "endpoints": ["CREATE"]}
        until(lambda: resources(plane, 0, CHANGING) == both, "the policy's kind is sent, too")
        until(
            lambda: (
                created_in_dry_run(plane, "endpoints")["metadata"].get("labels") == {"team": "a"}
            ),
            "Kyverno's policy is applied",
        )

        # A policy that needs no other rule is handled by all: nobody writes.
        version = plane.api.request("GET", CHANGED)["metadata"]["resourceVersion"]
        plane.api.apply(f"{ASSIGN}/second", assign("second"))
        whole = "4/4 replicas at generation 1"
        until(lambda: says(plane, f"{ASSIGN}/second", "Enforced", whole), "all enforce it")
        assert plane.api.request("GET", CHANGED)["metadata"]["resourceVersion"] == version

        for name in ("first", "second"):
            plane.api.request("DELETE", f"{ASSIGN}/{name}")
        until(
            lambda: resources(plane, 0, CHANGING) == {"endpoints": ["CREATE"]},
            "what no mutator needs is sent no longer",
        )
        plane.api.request("DELETE", f"{MUTATING_POLICIES}/ruled")
        until(lambda: resources(plane, 0, CHANGING) == {}, "nor what no policy needs")
        document = plane.api.request("GET", CHANGED)
        assert document["metadata"]["generation"] <= 5, "each change is written once"
        ours, other = document["webhooks"]
        assert not ours.pop("rules", None)
        assert ours == {name: value for name, value in before[0].items() if name != "rules"}
        assert other == before[1], "another's entry is as it was"


@pytest.fixture
def mutating_policies(plane: Plane) -> Iterator[None]:
    """Kyverno's MutatingPolicies are served."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{MUTATING_CRD['metadata']['name']}"
    plane.api.apply(path, MUTATING_CRD)
    try:
        until(lambda: try_request(plane.api, "GET", MUTATING_POLICIES) is not None, "it is served")
        yield
    finally:
        plane.api.request("DELETE", path)
