"""A generated policy, evaluated as an API server does, says what the webhook says."""

import itertools
import random

import pytest

from tests.webhook.generation.patterns import KINDS, NAMES, PATTERNS
from tests.webhook.generation.planned import constraint, plan_of, template
from webhook.api.admission import read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.placement import request_to_review
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.generation.plan import Options
from webhook.generation.scope import scope_of
from webhook.generation.verdict import GeneratedPolicy, UnusablePolicy

NAMESPACES = {
    name: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    for name, labels in (("default", {"env": "a"}), ("kube-system", {}), ("a", {"env": "b"}))
}

SELECTORS = (
    {}, {"matchLabels": {"env": "a"}}, {"matchExpressions": [{"key": "env", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["a"]}]},
)  # fmt: skip

SOURCE = {
    "variables": [
        {"name": "labels", "expression": "variables.anyObject.metadata.?labels.orValue({})"},
    ],
    "validations": [
        {
            "expression": "!has(variables.params.label) || variables.params.label in variables.labels",
            "messageExpression": "'no label ' + variables.params.label + ' of ' + request.operation",
        },
        {"expression": "variables.anyObject.spec.replicas < 3", "message": "too many"},
    ],
}
EVERYTHING = scope_of(
    {
        "webhooks": [
            {
                "name": "validation.gatekeeper.sh",
                "rules": [
                    {
                        "apiGroups": ["*"],
                        "apiVersions": ["*"],
                        "operations": ["*"],
                        "resources": ["*/*"],
                    }
                ],
            }
        ]
    }
)


def request(chance, group, kind, namespace):
    """A request of this kind."""
    name = chance.choice(("web", "a-b", "x"))
    if kind == "Namespace":
        name = chance.choice(tuple(NAMESPACES))
    metadata = {"name": name}
    if chance.random() < 0.6:
        metadata["labels"] = {"env": chance.choice("ab")}
    if namespace:
        metadata["namespace"] = namespace
    document = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata}
    if chance.random() < 0.7:
        document["spec"] = {"replicas": chance.choice((1, 5, "x"))}
    operation = chance.choice(("CREATE", "UPDATE", "DELETE"))
    place = namespace or (name if kind == "Namespace" and operation != "CREATE" else "")
    return {
        "uid": "u",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": f"{kind.lower()}s"},
        "name": name,
        "namespace": place,
        "operation": operation,
        "userInfo": {"username": "jane"},
        "object": None if operation == "DELETE" else document,
        "oldObject": None if operation == "CREATE" else document,
        "dryRun": False,
        "options": None,
    }


def match(chance):
    """A match by chance."""
    found = {}
    for field, values in (
        ("namespaces", PATTERNS),
        ("excludedNamespaces", PATTERNS),
        ("name", NAMES),
        ("kinds", KINDS),
        ("labelSelector", SELECTORS),
        ("namespaceSelector", SELECTORS),
        ("scope", ("*", "Cluster", "Namespaced")),
    ):
        if chance.random() < 0.3:
            found[field] = chance.choice(values)
    return found


def verdicts_of_both(chance, made, of_constraint, client):
    """Asserts that both engines agree on some requests; returns the number of refusals."""
    bound = made.bindings["gatekeeper-named-one"]
    policy = GeneratedPolicy(made.policies[bound["spec"]["policyName"]])
    refused = 0
    kinds = (("", "Pod"), ("apps", "Deployment"))
    for group, kind, namespace in (
        *(
            (*one, place)
            for one, place in itertools.product(kinds, ("default", "kube-system", "a"))
        ),
        ("", "Namespace", ""),
        ("rbac", "Role", ""),
    ):
        reviewed = request(chance, group, kind, namespace)
        known = NAMESPACES.get(reviewed["namespace"])
        review = AugmentedReview(read_request(reviewed), namespace=known)
        results = client.snapshot.review(review, enforcement_point=WEBHOOK).results
        expected = [one.msg for one in results]
        found = policy.say(bound, of_constraint, reviewed, known)
        refused += bool(found.messages)
        if found.ignored:  # errors are the webhook's to tell
            assert set(found.messages) < set(expected), reviewed
            assert all("resulted in error" in one for one in set(expected) - set(found.messages))
        else:
            assert sorted(found.messages) == sorted(expected), reviewed
    return refused


@pytest.mark.parametrize("alone", [False, True], ids=["template", "constraint"])
@pytest.mark.parametrize("seed", range(15))
def test_a_policy_says_what_the_webhook_says_of_random_requests(seed, alone):
    chance = random.Random(seed)
    of_template = template(**SOURCE)
    of_constraint = constraint(match=match(chance), parameters={"label": "env"})
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
    client.add_template(of_template)
    client.add_constraint(of_constraint)
    made = plan_of(of_template, of_constraint, options=Options(alone=alone), scope=EVERYTHING)
    for _ in range(4):
        verdicts_of_both(chance, made, of_constraint, client)


def both_say(source, of_constraint, reviewed, known=None, *, alone=False):
    """Returns the webhook's verdict and the policy's."""
    of_template = template(**source)
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
    client.add_template(of_template)
    client.add_constraint(of_constraint)
    made = plan_of(of_template, of_constraint, options=Options(alone=alone), scope=EVERYTHING)
    bound = made.bindings["gatekeeper-named-one"]
    policy = GeneratedPolicy(made.policies[bound["spec"]["policyName"]])
    read = request_to_review(read_request(reviewed))
    review = AugmentedReview(read, namespace=known if read.namespace else None)
    results = client.snapshot.review(review, enforcement_point=WEBHOOK, limits=UNLIMITED).results
    verdict = policy.say(bound, of_constraint, reviewed, known)
    return sorted(one.msg for one in results), sorted(verdict.messages)


@pytest.mark.parametrize("alone", [False, True], ids=["template", "constraint"])
@pytest.mark.parametrize("spec", [{}, {"parameters": {}}, {"parameters": {"x": 1}}])
def test_parameters_that_are_not_there_are_the_same_to_both(spec, alone):
    source = {
        "validations": [
            {"expression": "variables.params != null", "message": "none"},
            {"expression": "variables.params != {}", "message": "empty"},
            {"expression": "!has(variables.params.x)", "message": "x"},
        ]
    }
    reviewed = request(random.Random(1), "", "Pod", "default")
    webhook, policy = both_say(
        source, constraint(**spec), reviewed, NAMESPACES["default"], alone=alone
    )
    assert len(webhook) == 1
    assert webhook == policy


def test_variables_that_read_the_constraint_are_the_same_to_both():
    own = {"name": "own", "expression": "params.metadata.name"}
    source = {
        "variables": [own],
        "validations": [{"expression": "false", "messageExpression": "string(variables.own)"}],
    }
    reviewed = request(random.Random(1), "", "Pod", "default")
    assert both_say(source, constraint(), reviewed, NAMESPACES["default"]) == (["one"], ["one"])


def test_a_namespace_is_in_none_though_its_request_names_itself():
    source = {"validations": [{"expression": "namespaceObject != null", "message": "none"}]}
    reviewed = {**request(random.Random(1), "", "Namespace", ""), "namespace": "a", "name": "a"}
    assert both_say(source, constraint(), reviewed, NAMESPACES["a"]) == (["none"], ["none"])


def test_a_policy_may_cost_ten_times_what_an_expression_may():
    """The webhook ends a review for the cost of all expressions, and the API server does not."""
    loops = "true"
    for number in range(5):
        loops = f"[1, 1, 1, 1, 1, 1, 1, 1, 1, 1].all(x{number}, {loops})"
    costs = [{"expression": f"{loops} && false", "message": name} for name in "abc"]
    reviewed = request(random.Random(1), "", "Pod", "default")
    webhook, policy = both_say(
        {"validations": costs}, constraint(), reviewed, NAMESPACES["default"]
    )
    assert policy == ["a", "b", "c"]
    assert webhook[:2] == ["a", "b"]
    assert webhook[2].endswith("actual cost limit exceeded")


def test_some_of_those_are_refused_by_each_form():
    chance = random.Random(1)
    of_template, of_constraint = template(**SOURCE), constraint(parameters={"label": "env"})
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
    client.add_template(of_template)
    client.add_constraint(of_constraint)
    for alone in (False, True):
        made = plan_of(of_template, of_constraint, options=Options(alone=alone), scope=EVERYTHING)
        assert sum(verdicts_of_both(chance, made, of_constraint, client) for _ in range(5)) > 5


def test_an_expression_that_an_api_server_would_refuse_is_reported():
    made = plan_of(template(), constraint())
    policy = made.policies["gatekeeper-named"]
    policy["spec"]["validations"] = [{"expression": "1 == 'a'"}]
    with pytest.raises(UnusablePolicy, match="found no matching overload"):
        GeneratedPolicy(policy)
