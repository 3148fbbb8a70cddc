"""Coverage of policies by webhook configurations as users write them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests import ROOT
from webhook.webhook_rules.coverage import (
    WHOLLY,
    CoverageState,
    WebhookContext,
    coverage_of,
    generators_of,
)
from webhook.webhook_rules.entries import MUTATING_PATH, VALIDATING_PATH, entries_of
from webhook.webhook_rules.needs import need_of

OURS = ROOT / "manifests" / "base" / "webhook-configuration.yaml"
MUTATING = ROOT / "manifests" / "components" / "mutation" / "webhook-configuration.yaml"
LISTS = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]


def configuration(*webhooks: dict[str, Any], name: str = "mesh") -> dict[str, Any]:
    """A configuration of webhooks that call Waddle; each is sent all main resources but what it says."""
    service = {"namespace": "waddle-system", "name": "w", "path": "/v1/admit"}
    base = {"name": "w", "clientConfig": {"service": service}, "rules": LISTS}
    return {"metadata": {"name": name}, "webhooks": [{**base, **one} for one in webhooks]}


def extent_and_text(
    match: dict[str, Any],
    *configurations: Any,
    operations: tuple[str, ...] = (),
    **around: Any,
) -> tuple[str, str]:
    """CoverageExtent and text of a constraint with a match; by the manifests where nothing else is given."""
    known = configurations or (yaml.safe_load(OURS.read_text()),)
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Alpha",
        "metadata": {"name": "a"},
        "spec": {"match": match},
    }
    need = need_of(document, lambda _: frozenset(operations))
    assert need is not None
    entries = {"webhook": entries_of(known, VALIDATING_PATH, "waddle-system")}
    asking = coverage_of(need, WebhookContext(entries, **around))
    return asking.extent, asking.text


def kinds(group: str, *names: str) -> dict[str, Any]:
    """A match of kinds."""
    return {"kinds": [{"apiGroups": [group], "kinds": list(names)}]}


ADD = "add one with apiGroups"


@pytest.mark.parametrize(
    ("match", "operations", "extent", "text"),
    [
        ({}, (), "wholly", ""),
        (kinds("", "Pod"), (), "wholly", ""),
        (kinds("*", "*"), (), "wholly", ""),
        (kinds("autoscaling", "Scale"), (), "wholly", ""),
        (kinds("example.com", "Widget"), (), "wholly", ""),
        # Of pairs that are no kind nothing is missing.
        (
            {"kinds": [{"apiGroups": ["", "apps"], "kinds": ["Pod", "Deployment"]}]},
            (),
            "wholly",
            "",
        ),
        (kinds("coordination.k8s.io", "Lease"), (), "not at all", "matchCondition exclude-leases"),
        (kinds("", "Event"), (), "not at all", "matchCondition exclude-events"),
        (kinds("*", "Event"), (), "not at all", "leaves out events.events.k8s.io"),
        (kinds("authorization.k8s.io", "SubjectAccessReview"), (), "not at all", "whatever"),
        (
            kinds("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            (),
            "not at all",
            "API servers ask no webhook about",
        ),
        (kinds("", "PodExecOptions"), (), "not at all", f'CONNECT of pods/exec: {ADD} [""]'),
        (kinds("policy", "Eviction"), (), "not at all", "resources [pods/eviction]"),
        (kinds("", "Pod"), ("DELETE",), "not at all", "sends DELETE of pods"),
        ({}, ("DELETE",), "not at all", f"DELETE of any resource: {ADD} [*], resources [*]"),
        (kinds("", "Pod"), ("CREATE", "DELETE"), "partly", "operations [DELETE]"),
        (kinds("", "Pod", "Event"), (), "partly", "matchCondition exclude-events"),
        (
            kinds("", "Pod") | {"namespaces": ["kube-system"]},
            (),
            "not at all",
            "leaves out namespace kube-system",
        ),
        # Of all kinds those in no namespace are sent.
        ({"namespaces": ["kube-system"]}, (), "partly", "leaves out namespace kube-system"),
        ({"namespaces": ["kube-*"]}, (), "wholly", ""),
        ({"namespaces": ["kube-system", "a"]}, (), "partly", "leaves out namespace kube-system"),
        (
            kinds("", "Pod")
            | {"namespaceSelector": {"matchLabels": {"admission.gatekeeper.sh/ignore": "x"}}},
            (),
            "not at all",
            "the policy's namespaces",
        ),
        # A cluster-scoped object is in no namespace, whichever are named.
        (kinds("", "Node") | {"namespaces": ["kube-system"]}, (), "wholly", ""),
    ],
)
def test_by_the_manifests(
    match: dict[str, Any], operations: tuple[str, ...], extent: str, text: str
) -> None:
    found = extent_and_text(match, operations=operations)
    assert found[0] == extent, found
    assert text in found[1]


@pytest.mark.parametrize(
    ("versions", "extent"),
    [(["v1beta1", "v1beta2"], "not at all"), (["v1beta1", "v1"], "wholly"), (["*"], "wholly")],
)
def test_a_rule_for_versions_that_are_served_no_longer_sends_nothing(
    versions: list[str], extent: str
) -> None:
    rules = [{**LISTS[0], "apiGroups": ["apps"], "apiVersions": versions}]
    found = extent_and_text(kinds("apps", "Deployment"), configuration({"rules": rules}))
    assert found[0] == extent
    assert ("no rule of mesh sends CREATE" in found[1]) == (extent == "not at all")


def test_several_configurations_ask_together() -> None:
    pods = [{**LISTS[0], "apiGroups": [""]}]
    apps = [{**LISTS[0], "apiGroups": ["apps"], "operations": ["CREATE"]}]
    mesh = (configuration({"rules": pods}), configuration({"rules": apps}, name="second"))
    match = {"kinds": [{"apiGroups": ["", "apps"], "kinds": ["Pod", "Deployment"]}]}
    assert extent_and_text(match, *mesh, operations=("CREATE",)) == ("wholly", "")
    found = extent_and_text(match, *mesh)
    assert found[0] == "partly"
    assert "no rule of mesh, second sends UPDATE of deployments.apps" in found[1]


def test_what_calls_somebody_else_does_not_count() -> None:
    other = configuration({"clientConfig": {"service": {"namespace": "x", "path": "/v1/admit"}}})
    label = configuration({"clientConfig": {"url": "https://w/v1/admitlabel"}})
    assert extent_and_text({}, other, label)[0] == "not at all"
    assert extent_and_text(
        {}, other, configuration({"clientConfig": {"url": "https://w/v1/admit"}})
    ) == (
        "wholly",
        "",
    )


def test_labels_of_namespaces_count_where_they_are_known() -> None:
    ignored = {"admission.gatekeeper.sh/ignore": "x", "kubernetes.io/metadata.name": "a"}
    match = kinds("", "Pod") | {"namespaces": ["a"]}
    assert extent_and_text(match)[0] == "wholly"
    assert extent_and_text(match, labels={"a": ignored}.get)[0] == "not at all"


def test_an_object_selector_leaves_updates_that_change_labels() -> None:
    """The old object may be selected, and the new one be what the constraint is about."""
    only = configuration({"objectSelector": {"matchLabels": {"a": "1"}}})
    match = {"labelSelector": {"matchLabels": {"a": "2"}}}
    assert extent_and_text(match, only)[0] == "partly"
    assert extent_and_text(match, only, operations=("CREATE",))[0] == "not at all"


def test_what_is_generated_of_something_that_is_sent_is_asked() -> None:
    deployments = configuration({"rules": [{**LISTS[0], "apiGroups": ["apps"]}]})
    template = {
        "spec": {
            "applyTo": [{"groups": ["apps"], "kinds": ["Deployment"], "versions": ["v1"]}],
            "generatedGVK": {"group": "", "version": "v1", "kind": "Pod"},
        }
    }
    made = generators_of([template])
    assert extent_and_text(kinds("", "Pod"), deployments)[0] == "not at all"
    assert extent_and_text(kinds("", "Pod"), deployments, generators=made) == ("wholly", "")
    original = kinds("", "Pod") | {"source": "Original"}
    assert extent_and_text(original, deployments, generators=made)[0] == "not at all"
    generated = kinds("", "Pod") | {"source": "Generated"}
    assert extent_and_text(generated, generators=made) == ("wholly", "")
    assert extent_and_text(generated)[0] == "not at all"


def test_namespaces_that_config_excludes() -> None:
    found = extent_and_text(
        kinds("", "Pod") | {"namespaces": ["dev-1"]}, excluded={"webhook": ("dev-*",)}
    )
    assert found == ("not at all", "Config excludes namespace dev-1 from the webhook")


def test_mutators_are_asked_by_the_mutating_configuration() -> None:
    entries = entries_of([yaml.safe_load(Path(MUTATING).read_text())], MUTATING_PATH, "")
    around = WebhookContext({"mutation-webhook": entries})

    def extent(kind: str, spec: dict[str, Any]) -> str:
        document = {"apiVersion": "mutations.gatekeeper.sh/v1", "kind": kind, "spec": spec}
        need = need_of(document, lambda _: frozenset())
        assert need is not None
        return coverage_of(need, around).extent

    pods = {"applyTo": [{"groups": [""], "kinds": ["Pod"], "versions": ["v1"]}]}
    leases = {"applyTo": [{"groups": ["coordination.k8s.io"], "kinds": ["Lease"]}]}
    assert extent("Assign", pods) == "wholly"
    assert extent("Assign", leases) == "not at all"
    assert extent("AssignMetadata", {"match": kinds("", "Event")}) == "not at all"


def test_who_is_not_for_admissions_needs_none() -> None:
    spec = {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [
            {"action": "deny", "enforcementPoints": [{"name": "audit.gatekeeper.sh"}]}
        ],
    }
    document = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "A", "spec": spec}
    assert need_of(document, lambda _: frozenset()) is None
    assert WHOLLY.text == ""


def entry(part: str, failure_policy: str, **more: Any) -> dict[str, Any]:
    """A webhook for constraints of a failure policy; for all of them where there is none."""
    path = f"/v1/admit/{part}" if part else "/v1/admit"
    service = {"namespace": "waddle-system", "name": "w", "path": path}
    return {
        "name": part or "all",
        "clientConfig": {"service": service},
        "failurePolicy": failure_policy,
        **more,
    }


PODS_ELSEWHERE = {
    "rules": [{**LISTS[0], "apiGroups": [""], "resources": ["pods"]}],
    "namespaceSelector": {
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["waddle-system", "kube-system"],
            }
        ]
    },
}


def coverage_by(annotation: str, match: dict[str, Any], *webhooks: dict[str, Any]) -> CoverageState:
    """Returns the coverage of a constraint with a failure policy by these webhooks."""
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Alpha",
        "metadata": {"name": "a", "annotations": {"waddle.dev/failure-policy": annotation}},
        "spec": {"match": match},
    }
    need = need_of(document, lambda _: frozenset())
    assert need is not None
    entries = entries_of([configuration(*webhooks)], VALIDATING_PATH, "waddle-system")
    return coverage_of(need, WebhookContext({"webhook": entries}))


def test_an_entry_of_a_failure_policy_leaves_out_the_others_constraints() -> None:
    pods = kinds("", "Pod")
    both = (entry("ignore", "Ignore"), entry("fail", "Fail", **PODS_ELSEWHERE))
    assert coverage_by("fail", pods, *both) == WHOLLY
    assert coverage_by("ignore", pods, *both) == WHOLLY
    services = coverage_by("fail", kinds("", "Service"), *both)
    assert services.extent == "not at all"
    assert "no rule of mesh sends CREATE, UPDATE of services" in services.text
    assert coverage_by("ignore", kinds("", "Service"), *both) == WHOLLY
    alone = coverage_by("fail", pods, both[0])
    assert alone.extent == "not at all"
    assert alone.text.startswith("no webhook of mesh calls /v1/admit/fail: add one")


def test_a_constraint_that_should_fail_closed_and_fails_open_is_reported() -> None:
    found = coverage_by("fail", kinds("", "Pod"), entry("", "Ignore"))
    assert (found.extent, found.missing) == ("wholly", ())
    assert len(found.notes) == 1
    assert "requests are let in while no replica answers the webhook all of mesh" in found.notes[0]
    closed = entry("fail", "Fail", **PODS_ELSEWHERE)
    assert coverage_by("fail", kinds("", "Pod"), entry("", "Ignore"), closed) == WHOLLY
    assert coverage_by("ignore", kinds("", "Pod"), entry("", "Ignore")) == WHOLLY


def test_an_entry_that_would_lock_the_cluster_out_is_reported() -> None:
    found = coverage_by("fail", kinds("", "Pod"), entry("fail", "Fail"))
    assert found.extent == "wholly"
    names = [note.split(",")[0].rpartition(" closed for ")[2] for note in found.notes]
    assert names == [
        "pods of namespace waddle-system",
        "pods of namespace kube-system",
        "leases.coordination.k8s.io of namespace kube-node-lease",
        "nodes",
    ]


def kyverno_policy(*rules: dict[str, Any], kind: str = "ValidatingPolicy", **spec: Any) -> Any:
    """A policy of Kyverno on the resources of rules."""
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "k", "namespace": "here"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [{"apiVersions": ["v1"], **one} for one in rules]
            },
            "validations": [{"expression": "true"}],
            **spec,
        },
    }


def rule(group: str, *resources: str, operations: tuple[str, ...] = ("CREATE",)) -> dict[str, Any]:
    """A rule of such a policy."""
    return {"apiGroups": [group], "resources": list(resources), "operations": list(operations)}


@pytest.mark.parametrize(
    ("policy", "extent", "text"),
    [
        (kyverno_policy(rule("", "pods")), "wholly", ""),
        (kyverno_policy(rule("", "pods", operations=("*",))), "partly", "sends DELETE of pods"),
        (kyverno_policy(rule("*", "*")), "wholly", ""),
        (kyverno_policy(rule("example.com", "widgets")), "wholly", ""),
        (
            kyverno_policy(rule("coordination.k8s.io", "leases")),
            "not at all",
            "matchCondition exclude-leases",
        ),
        (
            kyverno_policy(rule("", "pods/exec", operations=("CONNECT",))),
            "not at all",
            f'CONNECT of pods/exec: {ADD} [""], resources [pods/exec]',
        ),
        (
            kyverno_policy(rule("", "pods/exec", operations=("*",))),
            "not at all",
            "sends CONNECT of pods/exec",
        ),
        (
            kyverno_policy(rule("authorization.k8s.io", "subjectaccessreviews")),
            "not at all",
            "API servers ask no webhook",
        ),
        (
            kyverno_policy(rule("", "pods"), kind="NamespacedValidatingPolicy")
            | {"metadata": {"name": "k", "namespace": "kube-system"}},
            "not at all",
            "leaves out namespace kube-system",
        ),
    ],
)
def test_policies_of_kyverno_are_asked_by_the_resources_that_they_name(
    policy: dict[str, Any], extent: str, text: str
) -> None:
    need = need_of(policy, lambda _: frozenset())
    assert need is not None
    entries = entries_of([yaml.safe_load(OURS.read_text())], VALIDATING_PATH, "waddle-system")
    found = coverage_of(need, WebhookContext({"webhook": entries}))
    assert found.extent == extent, found
    assert text in found.text


@pytest.mark.parametrize(
    "policy",
    [
        kyverno_policy(rule("", "pods"), evaluation={"admission": {"enabled": False}}),
        kyverno_policy(rule("", "pods"), evaluation={"mode": "JSON"}),
        kyverno_policy(),
        kyverno_policy(rule("", "pods"), kind="PolicyException"),
    ],
)
def test_policies_of_kyverno_that_no_admission_is_about_need_none(policy: dict[str, Any]) -> None:
    assert need_of(policy, lambda _: frozenset()) is None


def test_policies_of_kyverno_are_asked_of_the_entry_that_fails_open() -> None:
    need = need_of(kyverno_policy(rule("", "pods"), failurePolicy="Fail"), lambda _: frozenset())
    assert need is not None
    alone = entries_of([configuration(entry("fail", "Fail"))], VALIDATING_PATH, "waddle-system")
    found = coverage_of(need, WebhookContext({"webhook": alone}))
    assert found.text.startswith("no webhook of mesh calls /v1/admit/ignore: add one")


GATEKEEPERS = {
    "metadata": {"name": "gatekeeper-validating-webhook-configuration"},
    "webhooks": [
        {
            "name": "validation.gatekeeper.sh",
            "clientConfig": {
                "service": {"namespace": "gatekeeper-system", "name": "g", "path": "/v1/admit"}
            },
            "failurePolicy": "Ignore",
            "matchPolicy": "Exact",
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": "admission.gatekeeper.sh/ignore", "operator": "DoesNotExist"},
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "NotIn",
                        "values": ["gatekeeper-system"],
                    },
                ]
            },
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["*", "pods/ephemeralcontainers", "services/status"],
                }
            ],
        },
        {
            "name": "check-ignore-label.gatekeeper.sh",
            "clientConfig": {
                "service": {"namespace": "gatekeeper-system", "name": "g", "path": "/v1/admitlabel"}
            },
            "rules": [{**LISTS[0], "apiGroups": [""], "resources": ["namespaces"]}],
        },
    ],
}
"""The configuration of Gatekeeper's manifests."""


@pytest.mark.parametrize(
    ("match", "operations", "extent", "text"),
    [
        (kinds("coordination.k8s.io", "Lease"), (), "wholly", ""),
        (kinds("", "Pod"), (), "wholly", ""),
        (kinds("", "Pod"), ("DELETE",), "not at all", "sends DELETE of pods"),
        (kinds("", "PodExecOptions"), (), "not at all", "CONNECT of pods/exec"),
        (kinds("policy", "Eviction"), (), "not at all", "resources [pods/eviction]"),
        (
            kinds("authorization.k8s.io", "SubjectAccessReview"),
            (),
            "not at all",
            "API servers ask no webhook",
        ),
        (
            kinds("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            (),
            "not at all",
            "API servers ask no webhook",
        ),
        (
            kinds("", "Pod") | {"namespaces": ["gatekeeper-system"]},
            (),
            "not at all",
            "leaves out namespace gatekeeper-system",
        ),
    ],
)
def test_by_gatekeepers_configuration(
    match: dict[str, Any], operations: tuple[str, ...], extent: str, text: str
) -> None:
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Alpha",
        "metadata": {"name": "a"},
        "spec": {"match": match},
    }
    need = need_of(document, lambda _: frozenset(operations))
    assert need is not None
    entries = {"webhook": entries_of([GATEKEEPERS], VALIDATING_PATH, "gatekeeper-system")}
    asking = coverage_of(need, WebhookContext(entries))
    assert asking.extent == extent, asking
    assert text in asking.text


def test_a_mesh_of_entries_says_what_each_leaves_out() -> None:
    """The entries: Pods of some namespaces, Secrets with failurePolicy Fail, a condition."""
    pods = {**LISTS[0], "apiGroups": [""], "resources": ["pods"]}
    secrets = {**LISTS[0], "apiGroups": [""], "resources": ["secrets"]}
    elsewhere = {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}
        ]
    }
    mesh = (
        configuration({"rules": [pods], "namespaceSelector": elsewhere}, name="one"),
        configuration({"rules": [secrets], "failurePolicy": "Fail"}, name="two"),
        configuration(
            {
                "rules": [pods],
                "matchConditions": [
                    {"name": "none", "expression": "request.resource.resource != 'pods'"}
                ],
            },
            name="three",
        ),
    )
    assert extent_and_text(kinds("", "Pod", "Secret"), *mesh) == ("wholly", "")
    found = extent_and_text(kinds("", "Pod") | {"namespaces": ["shop"]}, *mesh)
    assert found == (
        "not at all",
        "the matchCondition none of three leaves out pods in namespace shop",
    )
    found = extent_and_text(kinds("", "Secret", "Service"), *mesh)
    assert found[0] == "partly"
    assert "no rule of one, two, three sends CREATE, UPDATE of services" in found[1]
