"""The policies of others in a cluster: the API server's own beside constraints, and Kyverno's."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.manifests import ROOT
from tests.webhook.admission_policies.making import (
    binding,
    kyverno,
    mutating_binding,
    mutating_policy,
    policy,
)
from tests.webhook.kyverno.making import applied, document, patch
from webhook.console import pages
from webhook.console.assembly import ClusterObjects, picture_of
from webhook.console.foreign import ForeignRows
from webhook.console.picture import Picture, ShownPolicy
from webhook.policies.manifests import read_file
from webhook.policy_kinds import parts

LABELLED = 'Object{metadata: Object.metadata{labels: {"managed": "yes"}}}'
COSTLY = (
    "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, d == a + b + c))))"
)
OURS = read_file(ROOT / "manifests" / "base" / "webhook-configuration.yaml")


def picture(
    *documents: Any, mode: str = "off", read: Sequence[str] = ("ValidatingWebhookConfiguration",)
) -> Picture:
    """Returns the console's picture of these objects and the manifests' webhook configuration."""
    around = [one.document for one in OURS]
    objects = ClusterObjects(
        foreign=documents,
        around=around,
        around_read=read,
        namespace="waddle-system",
    )
    return picture_of(objects, ForeignRows(mode))


def shown(*documents: Any, **options: Any) -> dict[str, ShownPolicy]:
    """By kind and name."""
    found = picture(*documents, **options).policies
    return {f"{one.kind}/{one.name}": one for one in found}


def test_policies_have_the_actions_of_their_bindings():
    found = shown(
        policy("true", name="a"),
        binding("one", "a", validationActions=["Warn", "Audit"]),
        binding("two", "a"),
        mutating_policy(LABELLED),
        mutating_binding(),
    )
    assert {one.state for one in found.values()} == {"active"}
    assert {one.category for one in found.values()} == {"admission policy"}
    assert found["ValidatingAdmissionPolicy/a"].action == "warn,dryrun,deny"
    assert found["MutatingAdmissionPolicy/m"].action == ""


def test_what_nothing_is_reviewed_by_says_why():
    found = shown(
        policy("true", name="unbound"),
        policy("object.", name="broken"),
        mutating_policy(LABELLED, name="loose"),
        binding("lost", "nowhere"),
    )
    states = {name: one.state for name, one in found.items()}
    assert states == {
        "ValidatingAdmissionPolicy/unbound": "not asked",
        "ValidatingAdmissionPolicy/broken": "error",
        "MutatingAdmissionPolicy/loose": "not asked",
        "ValidatingAdmissionPolicyBinding/lost": "not asked",
    }
    (why,) = found["ValidatingAdmissionPolicy/unbound"].faults
    assert why.startswith("no binding names it")
    (why,) = found["ValidatingAdmissionPolicy/broken"].faults
    assert why.startswith("spec.validations[0].expression: ")
    (why,) = found["ValidatingAdmissionPolicyBinding/lost"].faults
    assert why.startswith("there is no ValidatingAdmissionPolicy nowhere")


def test_what_the_type_check_warns_of_is_advice_and_generated_ones_are_left_out():
    warned = policy("true", name="a")
    warning = {"fieldRef": "spec.validations[0].expression", "warning": "no such\n field"}
    warned["status"] = {"typeChecking": {"expressionWarnings": [warning]}}
    owner = {"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate"}
    made = policy("true", name="gatekeeper-x")
    made["metadata"]["ownerReferences"] = [owner]
    found = shown(warned, made, binding("one", "a"))
    assert sorted(found) == ["ValidatingAdmissionPolicy/a", "ValidatingAdmissionPolicyBinding/one"]
    advice = found["ValidatingAdmissionPolicy/a"].advice
    assert advice == ("spec.validations[0].expression: no such field",)


@pytest.mark.parametrize(
    ("mode", "document", "state", "note"),
    [
        ("enforce", kyverno(), "active", ""),
        ("enforce", kyverno(expression="object."), "error", "validations[0].expression"),
        ("enforce", kyverno(resource="leases"), "not asked", "NotAsked: the matchCondition"),
        ("audit", kyverno(), "not for admission", "admissions are not decided by it"),
    ],
)
def test_policies_of_kyverno_are_shown_as_replicas_have_them(mode, document, state, note):
    found = shown(document, mode=mode)["ValidatingPolicy/k"]
    assert (found.category, found.state) == ("Kyverno policy", state)
    assert note in " ".join((*found.faults, *found.advice))


@pytest.mark.parametrize(
    ("mode", "policy_", "state", "shown_text"),
    [
        ("enforce", document(applied(LABELLED)), "not asked", "NotAsked: "),
        ("enforce", document(applied("random()")), "error", "spec.mutations[0]"),
        ("audit", document(applied(LABELLED)), "not for admission", "not decided by it"),
        (
            "audit",
            document(
                applied(LABELLED),
                matchConditions=[{"name": "c", "expression": COSTLY}],
            ),
            "not for admission",
            "Waddle would end it where lists and maps have",
        ),
    ],
)
def test_mutating_policies_of_kyverno_have_the_same_states(mode, policy_, state, shown_text):
    read = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    found = shown(policy_, mode=mode, read=read)["MutatingPolicy/p"]
    assert (found.category, found.state) == ("Kyverno policy", state)
    assert shown_text in " ".join((*found.faults, *found.advice))


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"},
        policy(name="a", matchConstraints=7),
        {**binding("a", "b"), "spec": []},
        {**kyverno(), "spec": {"validations": "x"}},
        {**policy("true"), "status": {"typeChecking": {"expressionWarnings": [1, {}]}}},
    ],
)
def test_objects_of_any_shape_cost_nobody_the_picture(document):
    found = picture({"metadata": {"name": "x"}, **document}, mode="enforce")
    assert len(found.policies) == 1
    for view in (pages.policies, pages.overview, pages.health):
        view(found, {})


OLD_RULE = {"apiGroups": ["apps"], "apiVersions": ["v1beta1"], "resources": ["deployments"]}
OLD_MATCH = {"resourceRules": [{**OLD_RULE, "operations": ["CREATE"]}]}


@pytest.mark.parametrize(
    ("documents", "kind", "name"),
    [
        ([policy("true", rule=OLD_RULE), binding()], "ValidatingAdmissionPolicy", "p"),
        (
            [{**kyverno(), "spec": {**kyverno()["spec"], "matchConstraints": OLD_MATCH}}],
            "ValidatingPolicy",
            "k",
        ),
    ],
)
def test_the_page_of_a_policy_names_a_version_that_is_served_no_longer(documents, kind, name):
    page = pages.policy(picture(*documents, mode="enforce"), {"kind": kind, "name": name})
    [advice] = [one for one in page["policy"]["advice"] if "apps/v1beta1" in one]
    assert "its matchConstraints.resourceRules[0].apiVersions: an API server serves" in advice


def test_what_is_unchanged_is_not_compiled_again(monkeypatch):
    read = []

    def noted(document: Any) -> Any:
        read.append(document["metadata"]["name"])
        return reader(document)

    reader = parts.read_admission_policy
    monkeypatch.setattr(parts, "read_admission_policy", noted)
    known = ForeignRows()
    first, bound = policy("true", name="a"), binding("b", "a")
    for documents in ([first, bound], [first, bound], [policy("false", name="a"), bound]):
        assert len(picture_of(ClusterObjects(foreign=documents), known).policies) == 2
    assert read == ["a", "b", "a", "b"]


def test_a_mutating_policy_of_kyverno_is_shown_with_its_fault_or_what_to_know_of_it():
    def named(name: str, *mutations: Any, **spec: Any) -> Any:
        return {**document(*mutations, **spec), "metadata": {"name": name}}

    by_patch = patch("true ? [] : [JSONPatch{op: 'remove', path: '/spec'}]")
    stored = {"mutateExisting": {"enabled": True}}
    found = shown(
        named("good", applied(LABELLED)),
        named("noted", by_patch),
        named("refused", applied(LABELLED), evaluation=stored),
        mode="enforce",
    )
    states = {name: one.state for name, one in found.items()}
    assert states == {
        "MutatingPolicy/good": "active",
        "MutatingPolicy/noted": "active",
        "MutatingPolicy/refused": "error",
    }
    (note,) = found["MutatingPolicy/noted"].advice
    assert note.startswith("spec.autogen: a JSON Patch keeps the paths of a Pod")
    (why,) = found["MutatingPolicy/refused"].faults
    assert why.startswith("spec.evaluation.mutateExisting: ")
