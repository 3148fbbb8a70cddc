"""Warnings about usable policies that match less than intended."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import constraint, template
from webhook.constraint.template import read_template
from webhook.policies.advice import advice_on_document, nearest
from webhook.policies.request_reads import (
    absent_libraries,
    deciding_places,
    is_never_there,
    request_reads,
)


@pytest.mark.parametrize(
    ("groups", "kind", "suggestion"),
    [
        ([""], "pod", "Pod"),
        ([""], "pods", "Pod"),
        ([""], "Pods", "Pod"),
        (["*"], "deployment", "Deployment"),
        ([""], "deployment", "Deployment"),
        (["apps"], "Deplyoment", "Deployment"),
        (["networking.k8s.io"], "networkpolicies", "NetworkPolicy"),
        ([""], "Deployment", 'Deployment of the group "apps"'),
        (["apps"], "Pod", 'Pod of the group ""'),
        (["v1"], "Pod", 'Pod of the group ""'),
        ([""], "Pod", ""),
        (["*"], "Pod", ""),
        ([], "Pod", ""),
        (["extensions", "networking.k8s.io"], "Ingress", ""),
        ([""], "*", ""),
        (["*"], "VirtualService", ""),
        (["serving.knative.dev"], "Service", ""),
        (["example.com"], "pod", ""),
        (["apps"], "Widget", ""),
    ],
)
def test_what_there_is_not_is_reported_with_the_nearest_kind(
    groups: list[str], kind: str, suggestion: str
) -> None:
    assert nearest(groups, kind) == suggestion


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"match": {"kinds": [{"apiGroups": ["extensions"], "kinds": ["Deployment"]}]}},
            (
                "its match names Deployment of extensions/*, which no API server serves since Kubernetes "
                "1.16"
            ),
        ),
        (
            {"applyTo": [{"groups": ["batch"], "versions": ["v1beta1"], "kinds": ["CronJob"]}]},
            (
                "its applyTo names CronJob of batch/v1beta1, which no API server serves since Kubernetes "
                "1.25"
            ),
        ),
        (
            {"match": {"kinds": [{"apiGroups": ["extensions", "apps"], "kinds": ["Deployment"]}]}},
            "",
        ),
        (
            {"applyTo": [{"groups": ["apps"], "versions": ["v1beta1", "v1"], "kinds": ["X"]}]},
            "",
        ),
        ({"match": {"kinds": [{"apiGroups": ["*"], "kinds": ["*"]}]}}, ""),
        (
            {"applyTo": [{"groups": ["apps"], "versions": ["*", "v1"], "kinds": ["Deployment"]}]},
            'its applyTo has "*" in versions, which matches nothing there: name each',
        ),
        (
            {"applyTo": [{"groups": ["*.io", "*"], "versions": ["v1"], "kinds": ["Widget"]}]},
            'its applyTo has "*.io", "*" in groups, which matches nothing there: name each',
        ),
    ],
)
def test_versions_that_are_served_no_longer_are_named(spec: dict, text: str) -> None:
    document = {"kind": "A", "metadata": {"name": "a"}, "spec": spec}
    assert [one.message for one in advice_on_document(document)] == ([text] if text else [])


def test_a_kind_that_was_seen_is_there() -> None:
    assert nearest(["apps"], "Widgets", [("apps", "Widget")]) == "Widget"
    assert nearest(["apps"], "Widget", [("apps", "Widget")]) == ""


@pytest.mark.parametrize(
    ("group", "kind", "is_named"),
    [
        ("authentication.k8s.io", "TokenReview", True),
        ("*", "SubjectAccessReview", True),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", True),
        ("example.com", "TokenReview", False),
        ("", "Secret", False),
    ],
)
def test_kinds_of_which_no_webhook_is_asked_are_named(
    group: str, kind: str, is_named: bool
) -> None:
    match = {"kinds": [{"apiGroups": [group], "kinds": [kind, "Pod"]}]}
    problems = [one for one in advice_on_document(constraint(match=match)) if kind in one.message]
    assert [one.code for one in problems] == (["never_asked"] if is_named else [])


@pytest.mark.parametrize(("group", "kinds"), [("authorization.k8s.io", 4), ("*", 0), ("apps", 0)])
def test_every_kind_of_a_group_is_named_where_the_group_is(group: str, kinds: int) -> None:
    match = {"kinds": [{"apiGroups": [group], "kinds": ["*"]}]}
    problems = advice_on_document(constraint(match=match))
    assert sum(one.message.count("Review") for one in problems) == kinds


def rego(body: str, rest: str = "") -> str:
    return f'package p\nviolation[{{"msg": "x"}}] {{ {body} }}\n{rest}'


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        (rego('input.review.operation == "CREATE"'), {"operation"}),
        (rego('{"CREATE", "UPDATE"}[input.review.operation]'), {"operation"}),
        (rego("input.review.userInfo.username"), {"userInfo"}),
        (rego("input.review.oldObject.spec.a != input.review.object.spec.a"), {"oldObject"}),
        (rego("is_update", 'is_update { input.review.operation == "UPDATE" }'), {"operation"}),
        (
            rego("is_new", 'default is_new = false\nis_new { input.review.operation == "CREATE" }'),
            {"operation"},
        ),
        (rego("f(1)", 'f(x) { input.review.operation == "UPDATE" }'), {"operation"}),
        (rego('op := input.review.operation; op == "CREATE"'), {"operation"}),
        (rego("old := input.review.oldObject; old.spec.a"), {"oldObject"}),
        (rego('startswith(input.review.userInfo.username, "a")'), {"userInfo"}),
        (rego('r := input.review; r.operation == "CREATE"'), {"operation"}),
        (rego('input.review["operation"] == "CREATE"'), {"operation"}),
        (rego('regex.match("^(CREATE|UPDATE)$", input.review.operation)'), {"operation"}),
        (rego('lower(input.review.operation) == "create"'), {"operation"}),
        (rego("count(input.review.operation) > 0"), {"operation"}),
        (rego('g := {g | g := input.review.userInfo.groups[_]}; g["dev"]'), {"userInfo"}),
        (
            rego('count({g | g := input.review.userInfo.groups[_]; g == "dev"}) > 0'),
            {"userInfo"},
        ),
        (
            rego("is_create(input.review)", 'is_create(r) { r.operation == "CREATE" }'),
            {"operation"},
        ),
        (rego("is_object(input.review.oldObject)"), {"oldObject"}),
        # Allowed for, or not needed by each of the rules:
        (
            'package p\nviolation[{"msg": m}] { m := sprintf("%v", [input.review.operation]) }',
            set(),
        ),
        (rego('lower(input.review.operation) != "delete"'), set()),
        (rego('{"", "CREATE"}[input.review.operation]'), set()),
        (rego("is_kept(input.review.operation)", 'is_kept(o) { o != "DELETE" }'), set()),
        (rego('o := {"op": input.review.operation}; o.op != "DELETE"'), set()),
        (
            rego(
                "kept == false",
                'default kept = false\nkept { input.review.operation == "DELETE" }',
            ),
            set(),
        ),
        (rego('input.review.operation != "DELETE"'), set()),
        (rego('op := input.review.operation; op != "DELETE"'), set()),
        (rego('not input.review.operation == "DELETE"'), set()),
        (rego('input.review.operation == ""'), set()),
        (rego("input.review.oldObject == null"), set()),
        (rego('object.get(input.review, "operation", "") == "CREATE"'), set()),
        (rego("not is_update", 'is_update { input.review.operation == "UPDATE" }'), set()),
        (rego('input.review.operation == "CREATE"', 'violation[{"msg": "y"}] { true }'), set()),
        (rego("a", 'a { input.review.operation == "UPDATE" }\na { true }'), set()),
        (rego("count([x | x := input.review.userInfo.groups[_]]) == 0"), set()),
        (rego("input.review.object.spec.operation"), set()),
        (rego("true"), set()),
    ],
)
def test_a_template_that_decides_by_a_request_is_known(source: str, fields: set[str]) -> None:
    found = request_reads(read_template(template(rego=source)))
    assert found == {f"input.review.{name}" for name in fields}


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("request.operation == 'UPDATE' && object.a == 1", True),
        ("object.spec == oldObject.spec", True),
        ("oldObject == null || object.spec == oldObject.spec", False),
        ("request.operation != 'UPDATE' || object.a == 1", False),
        ("object.a == 1", False),
    ],
)
def test_an_expression_that_decides_by_a_request_is_known(expression: str, reads: bool) -> None:
    source = {"validations": [{"expression": expression, "message": "x"}]}
    document = template(
        rego="", target={"code": [{"engine": "K8sNativeValidation", "source": source}]}
    )
    assert bool(request_reads(read_template(document))) is reads


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ('input.request.operation == "CREATE"', "input.request"),
        ("input.object.spec.hostNetwork", "input.object"),
        ("o := input.request.object; o.spec", "input.request"),
        ("input.review.request.object.spec", "input.review.request"),
        ("some c in input.spec.containers; c.name", "input.spec"),
        ("not input.request", ""),
        ('object.get(input, "request", 1) == 1', ""),
        ("i := input; i.review.object", ""),
        ('input["review"].object', ""),
        ("input[_].object", ""),
        ("input.parameters.x; input.review.kind.kind", ""),
        ("input.review._unstable.namespace; input.review.namespaceObject", ""),
    ],
)
def test_what_no_input_has_is_reported_where_every_violation_needs_it(body: str, read: str) -> None:
    """Written for another tool: it is green everywhere, and denies nothing."""
    rego = f'package p\nimport future.keywords\nviolation[{{"msg": "no"}}] {{ {body} }}'
    found = request_reads(read_template(template(rego=rego)))
    assert {one for one in found if is_never_there(one)} == ({read} if read else set())


def test_what_does_not_compile_is_judged_by_its_text() -> None:
    source = rego('data.other.a; input.review.operation == "CREATE"')
    assert request_reads(read_template(template(rego=source))) == {"input.review.operation"}


def test_a_library_that_decides_by_a_request_is_known() -> None:
    """Whether it is called by its path, or as it was imported."""
    library = 'package lib.requests\nis_new { input.review.operation == "CREATE" }\n'
    for text in (
        rego("data.lib.requests.is_new"),
        'package p\nimport data.lib.requests\nviolation[{"msg": "x"}] { requests.is_new }',
        'package p\nimport data.lib.requests as r\nviolation[{"msg": "x"}] { r.is_new }',
        'package p\nimport data.lib.requests.is_new\nviolation[{"msg": "x"}] { is_new }',
    ):
        document = template(rego=text, target={"libs": [library]})
        assert request_reads(read_template(document)) == {"input.review.operation"}, text


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        (
            'package p\nimport data.lib.pods\nviolation[{"msg": "x"}] { pods.bad }',
            ["data.lib.pods"],
        ),
        (rego("data.lib.pods.bad"), ["data.lib.pods.bad"]),
        ('package p\nimport data.lib.images\nviolation[{"msg": "x"}] { images.bad }', []),
        ('package p\nimport data.lib.images.bad\nviolation[{"msg": "x"}] { bad }', []),
        ('package p\nimport data.lib\nviolation[{"msg": "x"}] { lib.images.bad }', []),
        (rego("data.lib[_].bad"), []),
        (rego("data.inventory.cluster"), []),
    ],
)
def test_a_library_that_is_not_there_is_named(text: str, absent: list[str]) -> None:
    """Gatekeeper takes such a template in silence, and it never denies."""
    library = "package lib.images\nbad { input.review.object.bad }\n"
    document = template(rego=text, target={"libs": [library]})
    assert absent_libraries(read_template(document)) == absent


def test_what_decides_by_a_request_is_reported_with_its_lines() -> None:
    source = 'package p\n\nviolation[{"msg": "m"}] {\n  input.review.operation == "UPDATE"\n}'
    assert deciding_places(read_template(template(rego=source))) == [
        "violation in line 3 of its Rego"
    ]
    cel = {"validations": [{"expression": "request.operation == 'UPDATE'"}]}
    assert deciding_places(read_template(template(cel=cel))) == ["validations[0]"]


def test_a_condition_in_cel_that_needs_a_request_is_known() -> None:
    cel = {
        "matchCondition": [{"name": "updates", "expression": "request.operation == 'UPDATE'"}],
        "validations": [{"expression": "object.a == 1"}],
    }
    assert request_reads(read_template(template(cel=cel))) == {"request.operation"}


@pytest.mark.parametrize(
    ("word", "warns"),
    [("none", False), ("cluster", False), ("all", False), ("every", True), ("", True)],
)
def test_a_word_that_the_annotation_for_exceptions_does_not_have_is_reported(
    word: str, warns: bool
) -> None:
    document = constraint("Wanted", "a")
    document["metadata"]["annotations"] = {"waddle.dev/exceptions": word}
    found = [problem.message for problem in advice_on_document(document)]
    says = f'its annotation waddle.dev/exceptions is "{word}", which allows no exceptions: '
    assert found == ([f"{says}it must be none, cluster or all"] if warns else [])
