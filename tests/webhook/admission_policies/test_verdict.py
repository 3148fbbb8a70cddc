"""A policy's verdict of a request: conditions, messages, errors, the authorizer, annotations."""

import pytest

from tests.webhook.admission_policies.making import pod, policy, request
from webhook.admission_policies.reading import read_policy
from webhook.admission_policies.verdict import evaluate, evaluate_exact, evaluate_fast

ALLOWED = "authorizer.group('').resource('pods').check('delete').allowed()"


def verdict(document, sent=None, params=None, namespace=None):
    return evaluate(read_policy(document), sent or request(), namespace, params)


def test_a_validation_that_is_false_tells_its_message_and_reason():
    document = policy(
        validations=[
            {"expression": "false", "message": "no", "reason": "Forbidden"},
            {"expression": "false", "messageExpression": "'no ' + object.metadata.name"},
            {"expression": "false", "messageExpression": "object.none", "message": "else"}
            | {"messageExpression": "string(object.none)"},
            {"expression": "1 == 2"},
            {"expression": "true"},
        ]
    )
    assert [one[:2] for one in verdict(document).failures] == [
        ("no", "Forbidden"),
        ("no web", "Invalid"),
        ("else", "Invalid"),
        ("failed expression: 1 == 2", "Invalid"),
    ]


def test_an_error_is_a_failure_unless_the_policy_ignores_errors():
    (failure,) = verdict(policy("object.none == 1")).failures
    assert failure.is_error
    assert failure.message == "expression 'object.none == 1' resulted in error: no such key: none"
    ignoring = verdict(policy("object.none == 1", "false", failurePolicy="Ignore"))
    assert [one.message for one in ignoring.failures] == ["failed expression: false"]
    assert len(ignoring.ignored) == 1


def test_a_condition_that_does_not_hold_makes_up_for_one_in_error():
    conditions = [
        {"name": "a", "expression": "object.none == 1"},
        {"name": "b", "expression": "object.kind != 'Pod'"},
    ]
    assert verdict(policy("false", matchConditions=conditions)).is_skipped
    (failure,) = verdict(policy("false", matchConditions=conditions[:1])).failures
    assert failure.is_error
    ignored = verdict(policy("false", matchConditions=conditions[:1], failurePolicy="Ignore"))
    assert ignored.failures == ()
    assert ignored.ignored


def test_variables_may_read_those_before_them_and_parameters():
    document = policy(
        "variables.all <= params.max",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[
            {"name": "of", "expression": "object.spec.containers"},
            {"name": "all", "expression": "size(variables.of)"},
        ],
    )
    assert verdict(document, params={"max": 1}).failures == ()
    assert verdict(document, params={"max": 0}).failures
    assert verdict(document, params=None).failures[0].is_error


@pytest.mark.parametrize(
    ("document", "is_undecided"),
    [
        (policy(ALLOWED), True),
        (policy(f"object.kind == 'Pod' || {ALLOWED}"), False),
        (policy(f"object.kind == 'None' || {ALLOWED}"), True),
        (policy("variables.may", variables=[{"name": "may", "expression": ALLOWED}]), True),
        (policy("false", matchConditions=[{"name": "a", "expression": ALLOWED}]), True),
        (policy("true", failurePolicy="Ignore"), False),
    ],
)
def test_what_asks_the_authorizer_is_undecided_unless_the_rest_decides(document, is_undecided):
    answer = verdict(document)
    assert bool(answer.undecided) is is_undecided
    assert answer.failures == ()


def test_an_expression_beyond_the_limit_of_cost_is_an_error():
    loops = "object.l.all(a, object.l.all(b, object.l.all(c, object.l.all(d, a + b + c + d >= 0))))"
    (failure,) = verdict(policy(loops), request({**pod(), "l": list(range(60))})).failures
    assert failure.is_error
    assert "cost limit exceeded" in failure.message


def test_audit_annotations_are_texts_and_none_is_left_out():
    document = policy(
        auditAnnotations=[
            {"key": "who", "valueExpression": "' ' + request.userInfo.username"},
            {"key": "none", "valueExpression": "null"},
            {"key": "bad", "valueExpression": "string(object.none)"},
        ]
    )
    answer = verdict(document)
    assert answer.annotations == {"who": "ada"}
    assert [one.is_error for one in answer.failures] == [True]


def test_an_audit_annotation_that_asks_the_authorizer_is_in_error_as_in_an_api_server():
    annotations = [{"key": "may", "valueExpression": f"string({ALLOWED})"}]
    answer = verdict(policy("true", auditAnnotations=annotations))
    assert answer.annotations == {}
    (failure,) = answer.failures
    assert failure.denies
    assert failure.message.endswith("resulted in error: no such attribute(s): authorizer")
    ignoring = verdict(policy("true", auditAnnotations=annotations, failurePolicy="Ignore"))
    assert ignoring.failures == ()
    assert len(ignoring.ignored) == 1


def test_a_deletion_has_no_object():
    sent = request(operation="DELETE", object=None, oldObject=pod())
    assert (
        verdict(policy("object == null && oldObject.metadata.name == 'web'"), sent).failures == ()
    )


OBJECTS = [
    pod(),
    pod("db", team="shop"),
    {**pod(), "spec": {"containers": []}},
    {"kind": "Pod", "metadata": {}},
]
CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


def when(*expressions):
    return [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]


@pytest.mark.parametrize(
    ("document", "is_fast"),
    [
        (policy("object.metadata.name == 'web'", "size(object.spec.containers) > 0"), True),
        (policy("object.metadata.name == 'web' || size(object.spec.containers) > 0"), True),
        (policy("false", matchConditions=when("object.metadata.name == 'web'")), True),
        (
            policy(
                "false", matchConditions=when("has(object.spec.containers)", "request.name == 'x'")
            ),
            True,
        ),
        (policy("request.userInfo.username == 'ada' && request.operation == 'CREATE'"), True),
        (policy("namespaceObject.metadata.name == 'shop'"), True),
        (
            policy(
                "object.metadata.name in variables.names",
                variables=[{"name": "names", "expression": "params.names.map(n, n + 'b')"}],
                paramKind=CONFIG_MAPS,
            ),
            True,
        ),
        (
            policy(
                validations=[
                    {"expression": "false", "messageExpression": "object.metadata.name + '!'"},
                    {"expression": "false", "messageExpression": "''", "message": "no"},
                    {
                        "expression": "false",
                        "messageExpression": "'a' + '\\n'",
                        "reason": "Forbidden",
                    },
                    {"expression": "oldObject == null", "message": " no "},
                ]
            ),
            True,
        ),
        # The single functions have no authorizer; match conditions are given no Namespace.
        (policy(f"object.metadata.name == 'web' || {ALLOWED}"), False),
        (policy("false", matchConditions=when("namespaceObject.metadata.name == 'shop'")), False),
        (policy("true", auditAnnotations=[{"key": "k", "valueExpression": "'v'"}]), False),
        (policy("variables.params", variables=[{"name": "params", "expression": "true"}]), False),
    ],
)
def test_the_fast_form_gives_the_verdict_of_the_expressions_one_by_one(document, is_fast):
    compiled = read_policy(document)
    namespace = {"metadata": {"name": "shop"}}
    decided = 0
    for obj in OBJECTS:
        for operation in ({"operation": "CREATE"}, {"operation": "DELETE", "oldObject": obj}):
            for parameters in ({"names": ["we", "d"]}, {}, None):
                given = request(obj, **operation), namespace, parameters
                fast = evaluate_fast(compiled, *given)
                decided += fast is not None
                assert fast in (None, evaluate_exact(compiled, *given))
                assert evaluate(compiled, *given) == evaluate_exact(compiled, *given)
    assert bool(decided) is is_fast


def test_a_variable_may_ask_the_authorizer_about_the_resource_of_the_request():
    asks = {"name": "may", "expression": "authorizer.requestResource.check('create').allowed()"}
    found = verdict(policy("variables.may", variables=[asks]))
    assert found.undecided
