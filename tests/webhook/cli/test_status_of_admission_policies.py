"""`waddle status` shows the API server's own policies, validating and mutating ones."""

from __future__ import annotations

import json
from typing import Any

from tests.webhook.admission_policies.making import (
    binding,
    mutating_binding,
    mutating_policy,
    pod,
    policy,
)
from webhook.admission_policies.parameters import ParameterStore
from webhook.api.gvk import GroupVersionKind
from webhook.audit.admission_policies import AdmissionPolicyReading, UnusableAdmissionPolicy
from webhook.cli.status.admission_policies import AdmissionPolicyStanding, standings_of
from webhook.cli.status.report import ClusterStanding, as_json, as_table
from webhook.constraint.client import Client
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policy_kinds import parts
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, value_of

LOOPS = "object.spec.a.all(x, object.spec.b.all(y, object.spec.c.exists(z, z == x + y)))"
LABELLED = 'Object{metadata: Object.metadata{labels: {"managed": "yes"}}}'
WIDGETS = GroupVersionKind("example.com", "v1", "Widget")
ABOUT_WIDGETS = {"apiVersion": "example.com/v1", "kind": "Widget"}
NO_WIDGET = (
    "its paramRef finds no Widget w among what was given: the policy reviews nothing by it. Add "
    "one, or mend paramRef"
)
NO_POLICY = (
    "there is no ValidatingAdmissionPolicy none, so nothing is reviewed by it: add the policy, or "
    "mend policyName"
)
NAMED = {"name": "w", "parameterNotFoundAction": "Allow"}


def standings(
    *documents: dict[str, Any], faults: tuple[UnusableAdmissionPolicy, ...] = (), unlisted: str = ""
) -> dict[str, AdmissionPolicyStanding]:
    read = AdmissionPolicies(map(parts.read_admission_policy, documents))
    store = ParameterStore()
    if unlisted:
        store.lack(WIDGETS, unlisted)
    found = AdmissionPolicyReading(
        read.with_parameters(store), faults, {WIDGETS: unlisted} if unlisted else {}
    )
    return {one.title: one for one in standings_of(found, {})}


def test_policies_of_both_kinds_are_bound_or_not():
    found = standings(
        policy("true"), binding("everywhere"), mutating_policy(LABELLED), mutating_policy(
            LABELLED, name="loose"
        ), mutating_binding("labels"),
    )  # fmt: skip
    assert {title: one.state for title, one in found.items()} == {
        "ValidatingAdmissionPolicy/p": "Bound",
        "MutatingAdmissionPolicy/loose": "NotBound",
        "MutatingAdmissionPolicy/m": "Bound",
    }
    (why,) = found["MutatingAdmissionPolicy/loose"].notes
    assert why == (
        "no binding names it, so nothing is changed by it: add a MutatingAdmissionPolicyBinding"
    )
    shown = as_table(ClusterStanding([], [], [], {}, list(found.values())), "waddle-system")
    assert "everywhere (Deny)" in shown
    assert "MutatingAdmissionPolicy/m      Bound     labels" in shown


def test_the_cost_of_expressions_is_estimated_beside_the_api_server_s_limit():
    found = standings(
        policy("object.spec.paused == true", LOOPS), binding(), mutating_policy(LABELLED)
    )
    costly, cheap = found["ValidatingAdmissionPolicy/p"], found["MutatingAdmissionPolicy/m"]
    assert costly.costliest == "spec.validations[1].expression"
    assert costly.cost is not None
    assert costly.cost > 1
    (note,) = costly.notes
    assert note.startswith(
        "spec.validations[1].expression: an API server would end it where lists and maps have 39 "
        "entries and more: one expression may cost 1,000,000"
    )
    assert note.endswith(
        "Write fewer loops within loops; until then failurePolicy Fail denies what is ended"
    )
    assert cheap.cost is not None
    assert cheap.cost < 0.01
    standing = ClusterStanding([], [], [], {}, list(found.values()))
    shown = as_table(standing, "waddle-system")
    assert "1807%" in shown
    assert "<1%" in shown
    rows = json.loads(as_json(standing))["admissionPolicies"]
    assert next(one["costliestField"] for one in rows) == "spec.validations[1].expression"


def test_many_small_expressions_share_one_limit():
    pair = "object.spec.a.all(x, object.spec.b.exists(y, x == y))"
    many = standings(policy(*[pair] * 100), binding())["ValidatingAdmissionPolicy/p"]
    assert many.costliest == "spec.validations"
    assert "all validations, and the variables that they read, may cost 10,000,000" in many.notes[0]


def test_what_api_servers_warn_of_and_parameters_that_cannot_be_had_are_notes():
    warned = policy("params.x == 1", name="warned", paramKind=ABOUT_WIDGETS)
    warned["status"] = {
        "typeChecking": {
            "expressionWarnings": [{"fieldRef": "spec.validations[0]", "warning": "no\n field"}]
        }
    }
    found = standings(
        warned, binding("b", "warned", paramRef=NAMED), unlisted="the API server serves no Widget"
    )["ValidatingAdmissionPolicy/warned"]
    assert found.notes == (
        "spec.paramKind: the API server serves no Widget",
        "spec.validations[0]: no field",
    )
    bound = binding("b", "warned", paramRef=NAMED)
    missing = standings(warned, bound)["ValidatingAdmissionPolicy/warned"]
    assert missing.notes[0] == f"binding b: {NO_WIDGET}"


def test_parameters_that_nobody_may_list_leave_the_verdict_open():
    store = ParameterStore()
    store.lack(WIDGETS, "forbidden")
    patch = policy("params.x == 1", paramKind=ABOUT_WIDGETS)
    changing = mutating_policy(LABELLED, paramKind=ABOUT_WIDGETS)
    documents = patch, binding(paramRef=NAMED), changing, mutating_binding(paramRef=NAMED)
    own = AdmissionPolicies(map(parts.read_admission_policy, documents)).with_parameters(store)
    policies = PolicySet(Client(targets=[AdmissionTarget()], drivers=[]).snapshot, stages=(own,))
    outcome = review(policies, Subject(value_of(pod(), {}, operation="CREATE")))
    (undecided,) = outcome.responses.undecided
    assert "[binding b] parameters of example.com/v1" in str(undecided)
    assert "forbidden" in str(undecided)
    assert not outcome.responses.results
    assert any("parameters of example.com/v1" in one for one in outcome.faults)


def test_a_policy_that_is_unusable_or_not_there_stands_once_and_says_why():
    broken = UnusableAdmissionPolicy(
        "ValidatingAdmissionPolicy", "broken", "spec.validations: is required"
    )
    found = standings(binding("of-broken", "broken"), binding("of-none", "none"), faults=(broken,))
    assert {title: (one.state, one.notes) for title, one in found.items()} == {
        "ValidatingAdmissionPolicy/broken": ("Unusable", ("spec.validations: is required",)),
        "ValidatingAdmissionPolicy/none": (
            "NotFound",
            (f"binding of-none: {NO_POLICY}",),
        ),
    }
