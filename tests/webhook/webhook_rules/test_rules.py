"""The rules that policies need: never less than is needed, and written the same for the same needs."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.manifests import ROOT
from webhook.policy_kinds.known import GROUPS
from webhook.webhook_rules.coverage import WebhookContext, coverage_of, generators_of
from webhook.webhook_rules.entries import VALIDATING_PATH, entries_of
from webhook.webhook_rules.kinds import RuleTarget
from webhook.webhook_rules.needs import need_of
from webhook.webhook_rules.rules import (
    EVERYTHING,
    RulePart,
    parts_of,
    read_rules,
    simplified,
    written,
)
from webhook.webhook_rules.upkeep import is_kept, lock_outs, needed_parts, replaced, with_rules


def need(match: dict[str, Any], operations: tuple[str, ...] = (), annotation: str = "") -> Any:
    """Returns the webhook rules that a constraint with this match needs."""
    annotations = {"waddle.dev/failure-policy": annotation} if annotation else {}
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Alpha",
        "metadata": {"name": "a", "annotations": annotations},
        "spec": {"match": match},
    }
    return need_of(document, lambda _: frozenset(operations))


def kinds(group: str, *names: str) -> dict[str, Any]:
    """A match of kinds."""
    return {"kinds": [{"apiGroups": [group], "kinds": list(names)}]}


def rules(*needs: Any, **around: Any) -> list[tuple[str, str, str]]:
    """The rules of needs, in short."""
    return [
        (
            ",".join(one["apiGroups"]),
            ",".join(one["resources"]),
            ",".join(one["operations"]) + ("" if one["scope"] == "*" else f" {one['scope']}"),
        )
        for one in written(parts_of(needs, around.get("generators", {}), *around.get("served", ())))
    ]


BOTH = "CREATE,UPDATE"
PODS = ("", "pods,pods/ephemeralcontainers,pods/resize", BOTH)


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([], []),
        ([need(kinds("", "Pod"))], [PODS]),
        ([need(kinds("", "Pod")), need(kinds("", "Pod"), ("DELETE",))], [
            ("", "pods,pods/ephemeralcontainers,pods/resize", "CREATE,DELETE,UPDATE"),
        ]),
        ([need(kinds("", "PodExecOptions"))], [("", "pods/exec", "CONNECT")]),
        ([need(kinds("apps", "Deployment", "StatefulSet"))], [("apps", "deployments,statefulsets", BOTH)]),
        ([need(kinds("apps", "*")), need(kinds("apps", "Deployment"))], [("apps", "*", BOTH)]),
        ([need({})], [("*", ",".join(sorted(EVERYTHING)), BOTH)]),
        ([need({}), need(kinds("apps", "Deployment")), need(kinds("", "Pod"))], [("*", ",".join(sorted(EVERYTHING)), BOTH)]),
        ([need({"scope": "Namespaced"})], [("*", ",".join(sorted(EVERYTHING)), f"{BOTH} Namespaced")]),
        ([need(kinds("*", "Ingress"))], [("*", "ingresses", BOTH)]),
        ([need(kinds("example.com", "Widget"))], [("example.com", "widgets", BOTH)]),
        ([need(kinds("authentication.k8s.io", "TokenReview"))], []),
        ([need(kinds("authorization.k8s.io", "SubjectAccessReview"))], []),
        ([need(kinds("", "Pod") | {"scope": "Cluster"})], []),
        ([need(kinds("autoscaling", "Scale"))], [
            ("", "replicationcontrollers/scale", "UPDATE"),
            ("apps", "deployments/scale,replicasets/scale,statefulsets/scale", "UPDATE"),
        ]),
    ],
)  # fmt: skip
def test_policies_need_rules(needs: list[Any], expected: list[Any]) -> None:
    assert rules(*needs) == expected


def test_served_kinds_have_the_plurals_that_are_served() -> None:
    def served(group: str, kind: str) -> tuple[RuleTarget, ...]:
        return (RuleTarget(group, "widgetry", (group, kind), namespaced=False),)

    assert rules(need(kinds("example.com", "Widget")), served=(served,)) == [
        ("example.com", "widgetry", BOTH)
    ]


def test_what_generates_a_kind_is_needed_too() -> None:
    made = generators_of(
        [
            {
                "spec": {
                    "applyTo": [{"groups": [group], "kinds": [kind], "versions": ["v1"]}],
                    "generatedGVK": {"group": to[0], "version": "v1", "kind": to[1]},
                }
            }
            for group, kind, to in (
                ("apps", "ReplicaSet", ("", "Pod")),
                ("apps", "Deployment", ("apps", "ReplicaSet")),
            )
        ]
    )
    assert rules(need(kinds("", "Pod")), generators=made) == [
        PODS,
        ("apps", "deployments,replicasets", BOTH),
    ]
    original = need(kinds("", "Pod") | {"source": "Original"})
    assert rules(original, generators=made) == [PODS]
    generated = need(kinds("", "Pod") | {"source": "Generated"})
    assert rules(generated, generators=made) == [("apps", "deployments,replicasets", BOTH)]


def test_who_is_about_every_kind_is_asked_what_the_manifests_ask() -> None:
    base = yaml.safe_load((ROOT / "manifests/base/webhook-configuration.yaml").read_text())
    assert read_rules(base["webhooks"][0]["rules"]) == parts_of([need({})], {})


PARTS = st.builds(
    RulePart,
    st.sampled_from(["", "apps", "*"]),
    st.sampled_from(["pods", "pods/exec", "deployments", "*", "*/*", "pods/*", "*/scale"]),
    st.sampled_from(["CREATE", "UPDATE", "*"]),
    st.sampled_from(["*", "Namespaced", "Cluster"]),
)


@given(st.frozensets(PARTS, max_size=8))
def test_what_is_simplified_or_written_sends_the_same(parts: frozenset[RulePart]) -> None:
    shorter = simplified(parts)
    assert shorter <= parts
    assert all(any(one.covers(part) for one in shorter) for part in parts)
    assert read_rules(written(parts)) == parts
    assert written(sorted(parts)) == written(sorted(parts, reverse=True))


MATCHES = st.sampled_from(
    [
        {},
        kinds("", "Pod"),
        kinds("", "Service", "Pod"),
        kinds("apps", "*"),
        kinds("*", "Deployment"),
        kinds("example.com", "Widget"),
        {"scope": "Cluster"},
        kinds("", "Namespace") | {"namespaces": ["a"]},
        kinds("autoscaling", "Scale"),
    ]
)
OPERATIONS = st.sampled_from([(), ("CREATE",), ("DELETE",), ("CREATE", "UPDATE", "DELETE")])


@given(st.lists(st.tuples(MATCHES, OPERATIONS), max_size=4))
def test_by_the_rules_that_they_need_all_policies_are_asked(drawn: list[Any]) -> None:
    """The inversion of what says NotAsked: by its rules nothing is missing."""
    needs = [need(match, operations) for match, operations in drawn]
    client = {"clientConfig": {"url": "https://w/v1/admit"}, "name": "w"}
    rules_ = written(parts_of(needs, {}))
    made = {"metadata": {"name": "ours"}, "webhooks": [{**client, "rules": rules_}]}
    around = WebhookContext({"webhook": entries_of([made], VALIDATING_PATH, "")})
    for one in needs:
        assert not [text for text in coverage_of(one, around).missing if "no rule" in text]


# --- entries --------------------------------------------------------------------------------------


def entry(path: str, failure_policy: str = "Ignore") -> Any:
    """A webhook of a configuration."""
    document = {
        "metadata": {"name": "ours"},
        "webhooks": [
            {
                "name": path,
                "clientConfig": {"service": {"namespace": "waddle-system", "path": path}},
                "failurePolicy": failure_policy,
                "rules": [],
            },
            {"name": "other", "clientConfig": {"url": "https://other/"}, "rules": [{"a": "b"}]},
        ],
    }
    (made,) = entries_of([document], VALIDATING_PATH, "waddle-system")
    return made, document


def test_an_entry_has_the_rules_of_its_constraints_and_never_policies_where_it_fails_closed() -> (
    None
):
    needs = [need(kinds("", "Pod"), annotation="fail"), need(kinds("", "Service"))]
    own = ("templates.gatekeeper.sh",)

    def resources(path: str, failure_policy: str = "Ignore") -> set[str]:
        made, _ = entry(path, failure_policy)
        return {one.resource for one in needed_parts(made, needs, {}, lambda *_: None, own)}

    pods, services = set(PODS[1].split(",")), {"services", "services/status"}
    assert resources("/v1/admit") == pods | services | {"*"}
    assert resources("/v1/admit/ignore") == services | {"*"}
    assert resources("/v1/admit/fail", "Fail") == pods
    assert is_kept(entry("/v1/admit")[0])
    assert is_kept(entry("/v1/admit/fail", "Fail")[0])
    assert not is_kept(entry("/v1/admit", "Fail")[0]), "nobody was asked about its constraints"


MUTATOR = {
    "apiVersion": "mutations.gatekeeper.sh/v1",
    "kind": "AssignMetadata",
    "metadata": {"name": "m"},
    "spec": {"match": kinds("constraints.gatekeeper.sh", "Alpha")},
}


def test_no_policy_adds_a_rule_that_names_our_own_groups() -> None:
    """The open entry has its own; a rule of every group cannot leave ours out."""
    own = sorted(GROUPS)
    of_all = [
        *(need(kinds(group, "*"), ("CREATE", "DELETE")) for group in own),
        need(kinds("templates.gatekeeper.sh", "ConstraintTemplate"), annotation="fail"),
        need(kinds("constraints.gatekeeper.sh", "Alpha"), annotation="ignore"),
        kyverno_need(
            {"apiGroups": own, "resources": ["*"], "operations": ["*"]},
        ),
        need_of(MUTATOR, lambda _: frozenset()),
    ]
    assert {part.group for part in parts_of(of_all, {})} == set(own), "each of them asks for it"

    def groups(path: str, failure_policy: str = "Ignore", **more: bool) -> set[tuple[str, str]]:
        made, _ = entry(path, failure_policy)
        parts = needed_parts(made, of_all, {}, lambda *_: None, own, **more)
        return {(part.group, part.operation) for part in parts}

    stated = {(group, operation) for group in own for operation in ("CREATE", "UPDATE")}
    for path in ("/v1/admit", "/v1/admit/ignore"):
        assert groups(path) == stated
        assert groups(path, validates=False) == set()
    assert groups("/v1/admit/fail", "Fail") == set()


def test_rules_that_would_lock_the_cluster_out_are_reported() -> None:
    closed, _ = entry("/v1/admit/fail", "Fail")
    every = parts_of([need({})], {})
    assert len(list(lock_outs(closed, every))) >= 4
    assert not list(lock_outs(entry("/v1/admit")[0], every))
    services = parts_of([need(kinds("", "Service"))], {})
    assert not list(lock_outs(closed, services))
    assert with_rules(closed, services).document["rules"] == written(services)


def test_nothing_of_a_configuration_changes_but_the_rules_of_our_entries() -> None:
    _, document = entry("/v1/admit")
    parts = parts_of([need(kinds("", "Service"))], {})
    made = replaced(document, {"/v1/admit": parts})
    assert made["webhooks"][1] == document["webhooks"][1]
    assert made["webhooks"][0] == document["webhooks"][0] | {"rules": written(parts)}
    assert made["metadata"] == document["metadata"]


def kyverno_need(*listed: dict[str, Any], **spec: Any) -> Any:
    """Returns the webhook rules that a policy of Kyverno with these resource rules needs."""
    matched = {"resourceRules": [{"apiVersions": ["v1"], **one} for one in listed]}
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "k"},
        "spec": {"matchConstraints": matched, "validations": [{"expression": "true"}], **spec},
    }
    return need_of(document, lambda _: frozenset())


def test_policies_of_kyverno_need_what_they_match_and_its_controllers() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE", "UPDATE"]}
    assert rules(kyverno_need(pods)) == [
        ("", "pods", BOTH),
        ("apps", "daemonsets,deployments,replicasets,statefulsets", BOTH),
        ("batch", "cronjobs,jobs", BOTH),
    ]
    alone = kyverno_need(pods, autogen={"podControllers": {"controllers": []}})
    assert rules(alone) == [("", "pods", BOTH)]
    listed = (
        {"apiGroups": [""], "resources": ["pods/exec"], "operations": ["*"]},
        {"apiGroups": ["a.b"], "resources": ["xs"], "operations": ["DELETE"], "scope": "Cluster"},
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["tokenreviews"],
            "operations": ["*"],
        },
    )
    assert rules(kyverno_need(*listed)) == [
        ("", "pods/exec", "CONNECT"),
        ("a.b", "xs", "DELETE Cluster"),
    ]


def test_what_changes_objects_needs_the_mutating_webhook_where_objects_are_written() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"], "operations": ["*"]}
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedMutatingPolicy",
        "metadata": {"name": "k", "namespace": "shop"},
        "spec": {"matchConstraints": {"resourceRules": [pods]}, "mutations": [{}]},
    }
    made = need_of(document, lambda _: frozenset())
    assert made is not None
    assert (made.process, made.places, made.failure_policy) == ("mutation-webhook", ("shop",), None)
    assert rules(made)[0] == ("", "pods", f"{BOTH} Namespaced")
    pods["operations"] = ["DELETE"]
    assert need_of(document, lambda _: frozenset()) is None


def test_what_fails_closed_has_no_rules_of_kyvernos_policies() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}
    service = {"namespace": "waddle-system", "name": "w", "path": "/v1/admit/fail"}
    webhook = {"name": "w", "failurePolicy": "Fail", "clientConfig": {"service": service}}
    configuration = {"metadata": {"name": "c"}, "webhooks": [webhook]}
    (entry,) = entries_of([configuration], VALIDATING_PATH, "waddle-system")
    needed = [kyverno_need(pods, failurePolicy="Fail")]
    assert needed_parts(entry, needed, {}, lambda *_: None, ()) == frozenset()
