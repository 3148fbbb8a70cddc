"""Policies and bindings for templates and constraints."""

import pytest

from tests.webhook.generation.planned import ODD_TEXTS, constraint, plan_of, template
from webhook.generation.plan import NO_ENGINE, Enforced, Options, Planner
from webhook.generation.policy import constraint_name
from webhook.generation.scope import NoOperation, PolicyScope, exempted_patterns, scope_of

CONFIGURATION = {
    "webhooks": [
        {"name": "check-ignore-label.gatekeeper.sh", "rules": []},
        {
            "name": "validation.gatekeeper.sh",
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "matchConditions": [{"name": "no-leases", "expression": "true"}],
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["*", "pods/exec"],
                    "scope": "Namespaced",
                }
            ],
        },
    ]
}


def test_a_template_and_its_constraint_have_gatekeeper_s_policy_and_binding():
    made = plan_of(
        template(
            variables=[{"name": "v", "expression": "params.spec"}],
            matchCondition=[{"name": "mine", "expression": "true"}],
        ),
        constraint(
            match={
                "labelSelector": {"matchLabels": {"x": "y"}},
                "namespaceSelector": {"matchLabels": {"n": "m"}},
            }
        ),
        scope=scope_of(CONFIGURATION, excluded=["kube-*"], exempted=["waddle-system"]),
    )
    assert list(made.policies) == ["gatekeeper-named"]
    policy = made.policies["gatekeeper-named"]
    assert policy["metadata"] == {
        "name": "gatekeeper-named",
        "ownerReferences": [
            {
                "apiVersion": "templates.gatekeeper.sh/v1",
                "kind": "ConstraintTemplate",
                "name": "named",
                "uid": "t-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    spec = policy["spec"]
    assert spec["paramKind"] == {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Named",
    }
    assert [one["name"] for one in spec["variables"]] == ["anyObject", "params", "v"]
    assert [one["name"] for one in spec["matchConditions"]] == [
        "mine",
        "gatekeeper_internal_match_excluded_namespaces",
        "gatekeeper_internal_match_namespaces",
        "gatekeeper_internal_match_name",
        "gatekeeper_internal_match_kinds",
        "gatekeeper_internal_match_not_released",
        "gatekeeper_internal_match_global_excluded_namespaces",
        "gatekeeper_internal_match_global_exempted_namespaces",
        "no-leases",
    ]
    assert spec["validations"] == [{"expression": "true", "message": "no"}]
    assert spec["matchConstraints"] == {
        "matchPolicy": "Exact",
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {},
        "resourceRules": CONFIGURATION["webhooks"][1]["rules"],
    }
    assert list(made.bindings) == ["gatekeeper-named-one"]
    assert made.bindings["gatekeeper-named-one"]["spec"] == {
        "policyName": "gatekeeper-named",
        "paramRef": {"name": "one", "parameterNotFoundAction": "Allow"},
        "matchResources": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchLabels": {"n": "m"}},
            "objectSelector": {"matchLabels": {"x": "y"}},
        },
        "validationActions": ["Deny"],
    }
    owner = made.bindings["gatekeeper-named-one"]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Named", "c-uid", True)


def test_no_policy_that_reads_parameters_fails_closed():
    """Requests would be refused while the API server does not serve the constraints' kind."""
    for failure_policy in ("Fail", "Ignore", None):
        source = {} if failure_policy is None else {"failurePolicy": failure_policy}
        made = plan_of(template(**source), constraint())
        spec = made.policies["gatekeeper-named"]["spec"]
        assert spec["paramKind"]
        assert spec["failurePolicy"] == "Ignore"
        warning = made.templates["named"].warning
        assert ("fails closed" in warning) is (failure_policy == "Fail")


def test_a_policy_of_one_constraint_has_its_parameters_in_it_and_may_fail_closed():
    options = Options(alone=True)
    given = constraint(match={"namespaces": ["a"]}, parameters={"labels": ["x", 1]})
    for failure_policy, expected in (("Fail", "Fail"), ("Ignore", "Ignore"), (None, "Fail")):
        source = {} if failure_policy is None else {"failurePolicy": failure_policy}
        made = plan_of(template(**source), given, options=options, waits=lambda _: "waiting")
        assert list(made.policies) == list(made.bindings) == ["gatekeeper-named-one"]
        spec = made.policies["gatekeeper-named-one"]["spec"]
        assert "paramKind" not in spec
        assert spec["failurePolicy"] == expected
        assert spec["variables"][1]["expression"] == ('dyn({"labels": dyn([dyn("x"), dyn(1)])})')
        bound = made.bindings["gatekeeper-named-one"]["spec"]
        assert bound["policyName"] == "gatekeeper-named-one"
        assert "paramRef" not in bound


@pytest.mark.parametrize(
    ("stated", "failure_policy"),
    [({}, "Ignore"), ({"failurePolicy": "Fail"}, "Fail"), ({"failurePolicy": "Ignore"}, "Ignore")],
)
def test_a_template_that_says_nothing_of_errors_has_the_failure_policy_of_the_flag(
    stated, failure_policy
):
    options = Options(alone=True, fails=False)
    plan = plan_of(template(**stated), constraint(), options=options)
    assert plan.policies["gatekeeper-named-one"]["spec"]["failurePolicy"] == failure_policy


def test_what_a_policy_of_one_constraint_cannot_say_is_reported():
    source = {"variables": [{"name": "v", "expression": "params.spec.match"}]}
    made = plan_of(template(**source), constraint(), options=Options(alone=True))
    assert made.policies == made.bindings == {}
    assert "v reads the constraint as params" in made.constraints["Named", "one"].error


@pytest.mark.parametrize(
    "source",
    [
        {"validations": [{"expression": "'a' in variables.inventory.cluster"}]},
        {"validations": [{"expression": "false", "messageExpression": "variables.inventory.x"}]},
        {"variables": [{"name": "v", "expression": "variables.inventory.namespace"}]},
        {"matchCondition": [{"name": "m", "expression": "variables.inventory != null"}]},
    ],
)
def test_referential_data_is_reported_to_be_in_no_policy_and_none_is_generated(source):
    for alone in (False, True):
        made = plan_of(template(**source), constraint(), options=Options(alone=alone))
        assert made.policies == made.bindings == {}
        assert "read variables.inventory" in made.constraints["Named", "one"].error


def test_a_template_s_own_variable_may_have_the_name_of_referential_data():
    source = {
        "variables": [{"name": "inventory", "expression": "object.data"}],
        "validations": [{"expression": "variables.inventory != null"}],
    }
    made = plan_of(template(**source), constraint())
    assert len(made.policies) == len(made.bindings) == 1


def test_match_conditions_that_read_variables_are_reported_and_not_generated():
    source = {"matchCondition": [{"name": "m", "expression": "variables.anyObject != null"}]}
    made = plan_of(template(**source), constraint())
    assert made.policies == made.bindings == {}
    assert "match condition m reads variables" in made.templates["named"].error
    assert "match condition m reads variables" in made.constraints["Named", "one"].error


@pytest.mark.parametrize(("source", "fault"), ODD_TEXTS)
def test_names_and_messages_that_an_api_server_refuses_are_reported_and_not_generated(
    source, fault
):
    plan = plan_of(template(**source), constraint())
    assert plan.policies == plan.bindings == {}
    assert fault in plan.templates["named"].error
    assert fault in plan.constraints["Named", "one"].error


def test_a_message_of_spaces_is_none():
    plan = plan_of(template(validations=[{"expression": "true", "message": " \n"}]), constraint())
    assert plan.policies["gatekeeper-named"]["spec"]["validations"] == [{"expression": "true"}]


def test_whether_a_template_has_a_policy_is_its_own_word_before_the_flag_s():
    assert plan_of(template(), options=Options(policies=False)).policies == {}
    assert plan_of(template(generateVAP=True), options=Options(policies=False)).policies
    assert plan_of(template(generateVAP=False)).policies == {}


def test_a_constraint_has_a_binding_by_default_or_where_it_names_the_enforcement_point():
    no = Options(bindings=False)
    assert plan_of(template(), constraint(), options=no).bindings == {}
    scoped = constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": "warn", "enforcementPoints": [{"name": "vap.k8s.io"}]},
            {"action": "dryrun", "enforcementPoints": [{"name": "*"}]},
            {"action": "deny", "enforcementPoints": [{"name": "audit.gatekeeper.sh"}]},
        ],
    )
    found = plan_of(template(), scoped, options=no, action="scoped").bindings
    assert found["gatekeeper-named-one"]["spec"]["validationActions"] == ["Audit", "Warn"]
    elsewhere = {**scoped, "spec": {**scoped["spec"]}}
    elsewhere["spec"]["scopedEnforcementActions"] = scoped["spec"]["scopedEnforcementActions"][2:]
    assert plan_of(template(), elsewhere, action="scoped").bindings == {}


def test_actions_are_kubernetes_own_and_a_warning_beside_a_denial_is_left_out():
    for action, expected in (("deny", "Deny"), ("warn", "Warn"), ("dryrun", "Audit")):
        found = plan_of(template(), constraint(), action=action).bindings
        assert found["gatekeeper-named-one"]["spec"]["validationActions"] == [expected]
    points = [{"name": "vap.k8s.io"}]
    both = constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": "warn", "enforcementPoints": points},
            {"action": "deny", "enforcementPoints": points},
        ],
    )
    found = plan_of(template(), both, action="scoped").bindings
    assert found["gatekeeper-named-one"]["spec"]["validationActions"] == ["Deny"]
    made = plan_of(template(), constraint(), action="whatever")
    assert made.bindings == {}
    assert "unrecognized enforcement action whatever" in made.constraints["Named", "one"].error


def test_scope_is_a_rule_of_the_binding_and_generated_resources_have_none():
    for scope in ("Cluster", "Namespaced"):
        found = plan_of(template(), constraint(match={"scope": scope})).bindings
        rules = found["gatekeeper-named-one"]["spec"]["matchResources"]["resourceRules"]
        assert [rule["scope"] for rule in rules] == [scope]
    for source in ("All", "Original"):
        assert plan_of(template(), constraint(match={"source": source})).bindings
    made = plan_of(template(), constraint(match={"source": "Generated"}))
    assert made.bindings == {}
    assert "generated resources" in made.constraints["Named", "one"].error


def test_operations_are_those_that_webhook_and_template_have_in_common():
    scope = scope_of(CONFIGURATION)

    def rules(*operations):
        found = plan_of(template(operations=operations), scope=scope)
        made = found.templates["named"]
        if made.error:
            return made.error
        spec = found.policies["gatekeeper-named"]["spec"]
        return spec["matchConstraints"]["resourceRules"][0]["operations"], made.warning

    assert rules() == (["CREATE", "UPDATE", "DELETE"], "")
    assert rules("UPDATE", "CREATE") == (["CREATE", "UPDATE"], "")
    assert rules("*")[0] == ["CREATE", "UPDATE", "DELETE"]
    assert "mismatch" in rules("DELETE", "CONNECT")[1]
    assert rules("CONNECT") == "no matching operations between webhook and constraint template"


def test_a_binding_waits_until_constraints_of_its_kind_have_been_served_for_a_while():
    made = plan_of(template(), constraint(), waits=lambda name: f"waiting for {name}")
    assert made.policies
    assert made.bindings == {}
    assert made.constraints["Named", "one"].waiting == "waiting for named"


def test_a_binding_that_waits_here_and_was_made_elsewhere_is_not_in_the_way():
    """A replica that has not yet seen the CRD established must not delete what another made."""
    waiting = plan_of(template(), constraint(), waits=lambda _: "not yet").waiting
    assert waiting == plan_of(template(), constraint()).bindings.keys()
    assert plan_of(template(), constraint()).waiting == set()


def test_of_rego_nothing_is_made_and_nothing_is_reported_unless_it_was_asked_for():
    rego = template()
    rego["spec"]["targets"] = [{"target": "admission.k8s.gatekeeper.sh", "rego": "package a"}]
    made = plan_of(rego, constraint())
    assert (made.policies, made.bindings, made.templates, made.constraints) == ({}, {}, {}, {})
    scoped = constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": "deny", "enforcementPoints": [{"name": "vap.k8s.io"}]}
        ],
    )
    assert plan_of(rego, scoped, action="scoped").constraints["Named", "one"].error == NO_ENGINE


def test_what_did_not_change_is_the_same_object_in_the_next_plan():
    planner, scope = Planner(Options(), "v1"), PolicyScope()
    of_template, of_constraint = template(), constraint()
    templates = {"named": of_template}

    def plan(action="deny", of=scope):
        given = {("Named", "one"): Enforced(of_constraint, action)}
        return planner.plan(templates, given, of, lambda _: "")

    first, second = plan(), plan()
    assert second.policies["gatekeeper-named"] is first.policies["gatekeeper-named"]
    assert second.bindings["gatekeeper-named-one"] is first.bindings["gatekeeper-named-one"]
    assert plan("warn").bindings["gatekeeper-named-one"]["spec"]["validationActions"] == ["Warn"]
    other = scope_of(CONFIGURATION)
    assert plan(of=other).policies["gatekeeper-named"] != first.policies["gatekeeper-named"]


def test_a_plan_tells_whose_objects_it_may_say_are_not_wanted():
    """Objects that another replica made for a newer template do not belong to the plan."""
    unchecked = {"named": template(generateVAP=False)}
    made = Planner(Options(), "v1").plan(unchecked, {}, PolicyScope(), lambda _: "")
    assert made.policies == {}
    assert made.owners == {"t-uid"}


def test_a_name_that_is_too_long_is_cut_and_distinguished_by_a_digest():
    assert constraint_name("K8sThing", "a") == "gatekeeper-k8sthing-a"
    one, other = (constraint_name("K8sThing", "a" * 250 + end) for end in "xy")
    assert len(one) == len(other) == 253
    assert one != other


def test_flags_that_exempt_namespaces_are_patterns():
    assert exempted_patterns(["a"], ["b-"], ["-c"]) == ("a", "b-*", "*-c")


def test_an_api_server_of_the_beta_gets_objects_of_the_beta():
    planner = Planner(Options(), "v1beta1")
    enforced = {("Named", "one"): Enforced(constraint(), "deny")}
    made = planner.plan({"named": template()}, enforced, PolicyScope(), lambda _: "")
    documents = [*made.policies.values(), *made.bindings.values()]
    assert [one["apiVersion"] for one in documents] == ["admissionregistration.k8s.io/v1beta1"] * 2


def test_a_constraint_that_lets_stay_what_was_there_is_left_to_the_webhook():
    of_template = template(validations=[{"expression": "true"}])
    one = constraint(enforcementAction="deny")
    assert plan_of(of_template, one).bindings
    one["metadata"]["annotations"] = {"waddle.dev/existing": "allow"}
    made = plan_of(of_template, one)
    assert made.bindings == {}
    assert "waddle.dev/existing: allow" in made.constraints["Named", "one"].withdrawn


def test_rules_that_follow_policies_are_each_for_their_own_operations() -> None:
    """A template for DELETE had no policy where some other rule has no DELETE."""

    def rule(resource: str, *operations: str) -> dict[str, object]:
        return {
            "apiGroups": [""],
            "apiVersions": ["*"],
            "operations": list(operations),
            "resources": [resource],
            "scope": "*",
        }

    webhooks = [
        {"name": "validation.gatekeeper.sh", "rules": [rule("pods", "CREATE", "UPDATE")]},
        {
            "name": "fail-closed.validation.gatekeeper.sh",
            "clientConfig": {"service": {"path": "/v1/admit/fail"}},
            "rules": [rule("secrets", "CREATE", "DELETE")],
        },
        {"name": "other", "rules": [rule("services", "DELETE")]},
    ]
    scope = scope_of({"webhooks": webhooks})

    def rules(*operations: str) -> tuple[list[tuple[str, list[str]]], str]:
        constraints, warning = scope.match_constraints(operations)
        rules = constraints["resourceRules"]
        return [(one["resources"][0], one["operations"]) for one in rules], warning

    assert rules() == ([("pods", ["CREATE", "UPDATE"]), ("secrets", ["CREATE", "DELETE"])], "")
    assert rules("DELETE") == ([("secrets", ["DELETE"])], "")
    assert rules("CREATE") == ([("pods", ["CREATE"]), ("secrets", ["CREATE"])], "")
    assert "mismatch" in rules("DELETE", "CONNECT")[1]
    with pytest.raises(NoOperation):
        rules("CONNECT")
