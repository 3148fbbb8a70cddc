"""Templates in CEL: what they decide, what they say, and what is refused of them."""

import pytest

from tests.webhook.constraint.policies import constraint, template
from webhook.api.admission import read_request
from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, Meter
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.limits import UNLIMITED, Budget, Limits
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def client(source, *, parameters=None, rego=""):
    """A client with one template of this source and one constraint."""
    subject = Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()])
    code = [{"engine": "K8sNativeValidation", "source": source}]
    subject.add_template(template("K8sCel", rego, schema=ANY, target={"code": code}))
    subject.add_constraint(constraint("K8sCel", parameters=parameters or {}))
    return subject


def pod(**spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "labels": {"a": "b"}},
        "spec": spec,
    }


def found(source, value=None, *, limits=UNLIMITED, **options):
    """The messages of a review, and of what was left undecided."""
    reviewed = AugmentedObject(pod(n=1)) if value is None else value
    responses = client(source, **options).snapshot.review(reviewed, limits=limits)
    return [one.msg for one in responses.results], [one.message for one in responses.undecided]


def one(expression, **more):
    return {"validations": [{"expression": expression, **more}]}


def request(operation, obj, old=None, **more):
    document = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "p",
        "namespace": "d",
        "operation": operation,
        "userInfo": {"username": "jane", "groups": []},
        "object": obj,
        "oldObject": old,
        **more,
    }
    return AugmentedReview(
        read_request(document), namespace={"metadata": {"name": "d", "labels": {"env": "x"}}}
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"message": " m "}, "m"),
        ({"messageExpression": "'n is ' + string(object.spec.n)", "message": "m"}, "n is 1"),
        ({"messageExpression": "object.spec.missing", "message": "m"}, None),
        ({"messageExpression": "string(object.spec.missing)", "message": "m"}, "m"),
        ({"messageExpression": "'a\\nb'", "message": "m"}, "m"),
        ({"messageExpression": "' '", "message": "m"}, "m"),
        (
            {"messageExpression": "'x'.replace('x', 'yyyyyyyyyy' + string(object.spec.n))"},
            "yyyyyyyyyy1",
        ),
        ({}, "failed expression: object.spec.n == 2"),
    ],
)
def test_a_validation_that_fails_says_what_kubernetes_would_say(more, message):
    if message is None:  # a message that is no string is told when it is written
        with pytest.raises(InvalidTemplate, match="must evaluate to string but got dyn"):
            client(one("object.spec.n == 2", **more))
        return
    assert found(one(" object.spec.n == 2", **more)) == ([message], [])


def test_each_validation_that_fails_is_a_violation_of_its_own():
    source = {
        "variables": [{"name": "n", "expression": "object.spec.n"}],
        "validations": [
            {"expression": "variables.n == 1", "message": "a"},
            {"expression": "variables.n == 2", "message": "b"},
            {"expression": "variables.n == variables.params.n", "message": "c"},
        ],
    }
    assert found(source, parameters={"n": 3}) == (["b", "c"], [])


@pytest.mark.parametrize(
    ("policy", "messages"),
    [
        (
            "Fail",
            ["expression 'object.spec.x == 1' resulted in error: no such key: x"],
        ),
        ("Ignore", []),
    ],
)
def test_an_error_is_a_violation_unless_the_failure_policy_ignores_it(policy, messages):
    assert found({**one("object.spec.x == 1"), "failurePolicy": policy}) == (messages, [])


@pytest.mark.parametrize(
    ("stated", "fails", "refused"),
    [({}, True, True), ({}, False, False), ({"failurePolicy": "Fail"}, False, True)],
)
def test_what_an_error_is_where_nothing_is_said_is_the_driver_s_to_know(stated, fails, refused):
    subject = Client(targets=[AdmissionTarget()], drivers=[CelDriver(fails=fails)])
    code = [{"engine": "K8sNativeValidation", "source": {**one("object.spec.x == 1"), **stated}}]
    subject.add_template(template("K8sCel", "", schema=ANY, target={"code": code}))
    subject.add_constraint(constraint("K8sCel"))
    assert bool(subject.snapshot.review(AugmentedObject(pod(n=1))).results) is refused


def test_a_variable_in_error_says_which_it_is_and_one_that_is_not_read_says_nothing():
    source = {
        "variables": [
            {"name": "bad", "expression": "object.spec.missing"},
            {"name": "worse", "expression": "object.spec.missing"},
        ],
        **one("variables.bad == 1"),
    }
    (message,), _ = found(source)
    assert message == (
        "expression 'variables.bad == 1' resulted in error: "
        'composited variable "bad" fails to evaluate: no such key: missing'
    )


@pytest.mark.parametrize(
    ("conditions", "messages"),
    [
        (["object.spec.n == 2"], []),
        (["object.spec.n == 1"], ["no"]),
        (["object.spec.x == 1", "object.spec.n == 2"], []),
        (
            ["object.spec.x == 1"],
            ["expression 'object.spec.x == 1' resulted in error: no such key: x"],
        ),
        (["namespaceObject == null"], ["no"]),
    ],
)
def test_match_conditions_decide_whether_there_is_a_validation(conditions, messages):
    listed = [{"name": f"c{n}", "expression": text} for n, text in enumerate(conditions)]
    source = {"matchCondition": listed, **one("false", message="no")}
    assert found(source, request("CREATE", pod(n=1))) == (messages, [])


@pytest.mark.parametrize(
    "expression",
    [
        "object == null && oldObject.spec.n == 1 && variables.anyObject.spec.n == 1",
        "request.operation == 'DELETE' && request.userInfo.username == 'jane'",
        "!has(request.userInfo.groups) && !has(request.subResource) && request.dryRun == false",
        "namespaceObject.metadata.labels.env == 'x' && request.kind.kind == 'Pod'",
        "variables.params == {}",
    ],
)
def test_a_deletion_is_seen_as_an_api_server_shows_it(expression):
    assert found(one(expression), request("DELETE", None, pod(n=1))) == ([], [])


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (one("object.spec.n =="), r"validations\[0\].expression: ERROR: <input>:1:17: Syntax"),
        (one("1 == 'a'"), "found no matching overload for '_==_' applied to '\\(int, string\\)'"),
        (one("object.spec.n"), "must evaluate to bool but got dyn"),
        (one("authorizer == null"), "undeclared reference to 'authorizer'"),
        (one("params == null"), "undeclared reference to 'params'"),
        (one("variables.x == 1"), "undefined field 'x'"),
        (one("int('x') == 1"), "program instantiation failed: type conversion error"),
        ({"matchConditions": []}, "the key is matchCondition"),
        ({"validations": {}}, "must be an array of objects"),
        (one("true", mesage="x"), r"source.validations\[0\].mesage: unknown key, known: expr"),
        ({"variables": [{"name": "x", "expr": "1"}]}, r"source.variables\[0\].expr: unknown key"),
        ({"matchCondition": [{"nam": "x"}]}, r"source.matchCondition\[0\].nam: unknown key"),
        ({"failurePolicy": "Never"}, "unrecognized failure policy: Never"),
        ({"variables": [{"name": "params", "expression": "1"}]}, "reserved name"),
        ({"variables": [{"name": "gatekeeper_internal_x", "expression": "1"}]}, "as a prefix"),
    ],
)
def test_what_is_wrong_with_a_source_is_informed_when_it_comes(source, fault):
    with pytest.raises(InvalidTemplate, match=fault):
        client(source)


def test_the_reason_of_a_validation_written_for_kubernetes_does_nothing():
    assert found(one("false", message="no", reason="Forbidden")) == (["no"], [])


def test_the_place_of_a_fault_is_shown_with_its_line():
    with pytest.raises(InvalidTemplate) as refused:
        client(one("object.a == 1 &&\n  nope"))
    assert str(refused.value).endswith(
        "source.validations[0].expression: ERROR: <input>:2:3: undeclared reference to 'nope' (in "
        "container '')\n |   nope\n | ..^"
    )


def test_of_a_template_with_both_engines_cel_decides():
    rego = 'package p\nviolation[{"msg": "rego"}] { true }\n'
    assert found(one("false", message="cel"), rego=rego) == (["cel"], [])


LOOPS = "[1,2,3,4,5,6,7,8,9,0]"
EXPENSIVE = f"{LOOPS}.all(a, {LOOPS}.all(b, {LOOPS}.all(c, {LOOPS}.all(d, {LOOPS}.all(e, {LOOPS}.all(f, a+b+c+d+e+f >= 0))))))"


def test_an_expression_that_costs_too_much_is_an_error_as_in_kubernetes():
    messages, undecided = found(one(EXPENSIVE))
    assert undecided == []
    assert messages[0].endswith(
        "resulted in error: operation cancelled: actual cost limit exceeded"
    )


def test_an_evaluation_that_takes_longer_than_its_budget_is_left_undecided():
    limits = Limits(budget=Budget.of(0.001))
    messages, undecided = found(one(EXPENSIVE), limits=limits)
    assert messages == []
    assert undecided == ["evaluation exceeded its budget of 1 ms"]


def test_reviews_that_take_turns_see_each_its_own_object():
    subject = client(one("object.spec.n == 1", messageExpression="string(object.spec.n)")).snapshot
    messages = [
        [one.msg for one in subject.review(AugmentedObject(pod(n=n))).results]
        for n in (1, 2, 1, 3, 2)
    ]
    assert messages == [[], ["2"], [], ["3"], ["2"]]


def test_a_variable_that_errs_is_computed_once_and_absorbed_wherever_it_is_read():
    source = {
        "variables": [
            {"name": "bad", "expression": "object.spec.missing.x"},
            {"name": "worse", "expression": "[variables.bad, variables.bad]"},
        ],
        "validations": [
            {"expression": "variables.bad == 1 || object.spec.n == 1"},
            {"expression": "size(variables.worse) == 2 || object.spec.n == 1"},
            {"expression": "size(variables.worse) == 2"},
        ],
    }
    (message,), _ = found(source)
    assert message == (
        "expression 'size(variables.worse) == 2' resulted in error: composited variable "
        '"worse" fails to evaluate: composited variable "bad" fails to evaluate: '
        "no such key: missing"
    )


def test_referential_data_is_a_variable_unless_the_template_has_one_of_its_name():
    source = {
        "variables": [
            {"name": "pods", "expression": "variables.inventory.?namespace.?d.?v1.?Pod.orValue({})"}
        ],
        "validations": [
            {
                "expression": "!variables.pods.exists(name, name != object.metadata.name "
                "&& variables.pods[name].spec.host == object.spec.host)",
                "messageExpression": "'taken: ' + string(size(variables.pods))",
            }
        ],
    }
    subject = client(source)

    def messages(**spec):
        return [one.msg for one in subject.snapshot.review(AugmentedObject(pod(**spec))).results]

    assert messages(host="a") == []
    other = pod(host="a")
    other["metadata"] = {"name": "other", "namespace": "d"}
    assert subject.add_data(other)
    assert messages(host="a") == ["taken: 1"]
    assert messages(host="b") == []
    own = [{"name": "inventory", "expression": "object.spec.n + 1"}]
    assert found({**one("variables.inventory == 3"), "variables": own})[0] == [
        "failed expression: variables.inventory == 3"
    ]


def messages_of(source, *constraints):
    """The messages of a review by these constraints of one template."""
    subject = client(source)
    for document in constraints:
        subject.add_constraint({**constraint("K8sCel"), **document})
    subject.remove_constraint("K8sCel", "c")
    review = request("CREATE", pod(n=1))
    return [one.msg for one in subject.snapshot.review(review, limits=UNLIMITED).results]


@pytest.mark.parametrize("spec", [None, {}, {"enforcementAction": "warn"}])
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("variables.params == null && !has(variables.params.x)", None),
        (
            "size(variables.params) == 0",
            "expression 'size(variables.params) == 0' resulted in error: no such overload: size",
        ),
        ("variables.own", None),
    ],
)
def test_parameters_that_a_constraint_lacks_are_null(spec, expression, message):
    document = {"metadata": {"name": "lacks"}} | ({} if spec is None else {"spec": spec})
    own = {"name": "own", "expression": "!has(params.spec.parameters)"}
    found_ = messages_of({"variables": [own], **one(expression)}, document)
    assert found_ == ([] if message is None else [message])
    empty = {"metadata": {"name": "empty"}, "spec": {"parameters": {}}}
    assert messages_of(one("variables.params == {}"), empty) == []


def test_variables_may_read_the_whole_constraint():
    source = {
        "variables": [{"name": "who", "expression": "params.kind + '/' + params.metadata.name"}],
        **one("false", messageExpression="variables.who + string(size(variables.params))"),
    }
    equal = [{"metadata": {"name": name}, "spec": {"parameters": {"x": 1}}} for name in "ab"]
    assert messages_of(source, *equal) == ["K8sCel/a1", "K8sCel/b1"]


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("params.spec.parameters", False),
        ("has(params.spec.parameters) ? params.spec.parameters.x : 1", False),
        ("[1].all(params, params == 1)", False),
        ("has(params.spec)", True),
        ("params.spec.match", True),
        ("params", True),
        ("[1].all(x, params.metadata.name == 'x')", True),
        ("params['spec']['parameters']", True),
    ],
)
def test_constraints_are_distinguished_only_where_a_variable_reads_more_than_parameters(
    expression, reads
):
    subject = client({"variables": [{"name": "v", "expression": expression}], **one("true")})
    (entry,) = subject.snapshot.entries
    assert entry.evaluator.reads_constraint is reads


def test_variables_that_match_conditions_read_have_no_namespace_there():
    source = {
        "variables": [{"name": "nowhere", "expression": "namespaceObject == null"}],
        "matchCondition": [{"name": "c", "expression": "variables.nowhere"}],
        **one("variables.nowhere", message="there is one"),
    }
    assert found(source, request("CREATE", pod(n=1))) == (["there is one"], [])


def test_match_conditions_that_err_alike_are_reported_once():
    texts = ["object.spec.x == 1", "object.spec.x == 1", "object.spec.y == 1"]
    listed = [{"name": f"c{n}", "expression": text} for n, text in enumerate(texts)]
    (message,), _ = found({"matchCondition": listed, **one("true")})
    assert message == (
        "[expression 'object.spec.x == 1' resulted in error: no such key: x, "
        "expression 'object.spec.y == 1' resulted in error: no such key: y]"
    )


def nested_loops(*counts):
    """An expression that costs by the steps of its innermost loop."""
    expression = "true"
    for number, count in enumerate(counts):
        items = ", ".join(["1"] * count)
        expression = f"[{items}].all(x{number}, {expression})"
    return expression


def test_one_match_condition_may_not_cost_what_all_may():
    loops = nested_loops(10, 10, 10, 10, 30)
    assert EXPRESSION_COST < cost_of(loops) < MATCH_CONDITIONS_COST
    condition = {"name": "c", "expression": loops}
    (message,), _ = found({"matchCondition": [condition], **one("true")})
    assert message.endswith("resulted in error: operation cancelled: actual cost limit exceeded")


def cost_of(expression):
    meter = Meter(100_000_000)
    compile_expression(expression, admission({}, params=False)).evaluate({}, meter)
    return meter.limit - meter.left


@pytest.mark.parametrize(
    "expression",
    [
        "namespaceObject.metadata.deletionGracePeriodSeconds == 0",
        "!has(namespaceObject.metadata.creationTimestamp)",
        "dyn(request).uid == '' && dyn(request).object == null && dyn(request).oldObject == null",
    ],
)
def test_what_go_writes_of_an_empty_field_is_there(expression):
    namespace = {"metadata": {"name": "d", "deletionGracePeriodSeconds": 0, "generation": 0}}
    review = AugmentedReview(request("CREATE", pod(n=1)).request, namespace=namespace)
    assert found(one(expression), review) == ([], [])
