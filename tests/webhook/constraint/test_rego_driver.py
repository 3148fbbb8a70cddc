"""The Rego driver: what it refuses, with gator v3.23.1's words, and what it makes of a rule."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import CompileError, InvalidTemplate
from webhook.constraint.review import AugmentedObject
from webhook.constraint.template import Code, read_template

INVALID = "invalid ConstraintTemplate: "
VIOLATION = 'violation[{"msg": m}] { m := "x" }'


def compile_rego(rego, *libs, version="v0", driver=None):
    code = Code("Rego", {"rego": rego, "libs": list(libs), "version": version})
    (driver or RegoDriver()).compile(read_template(template()), code)


@pytest.mark.parametrize(
    ("rego", "libs", "message"),
    [
        (
            'package x\nviolation[{"msg": m}] { m := data.foo.bar }\np { data.x.y; data }',
            [],
            (
                f"{INVALID}invalid data references: check refs failed on module {{template}}: "
                "errors (3):\ndisallowed ref data.foo.bar\ndisallowed ref data.x.y\n"
                "disallowed ref data\n"
            ),
        ),
        (
            'package x\nviolation[{"msg": m}] { m := data.lib.y.z; data[x]; data.inventory[x] }',
            [],
            (
                f"{INVALID}invalid data references: check refs failed on module {{template}}: "
                "errors (1):\ndisallowed ref data[x]\n"
            ),
        ),
        (
            f"package x\n{VIOLATION}",
            ["package lib.y\nq { data.zork }"],
            (
                f'{INVALID}invalid data references: check refs failed on module {{libs["lib_0"]}}: '
                "errors (1):\ndisallowed ref data.zork\n"
            ),
        ),
        (
            f"package x\nimport data.lib.y.z\n{VIOLATION}",
            ["package lib.y\nimport data.lib.y.z as a\nq { input.x; data.zork }"],
            (
                f'{INVALID}invalid data references: check refs failed on module {{libs["lib_0"]}}: '
                "errors (1):\ndisallowed ref data.zork\n"
            ),
        ),
        (
            f"package x\nimport data.foo\n{VIOLATION}",
            [],
            f'{INVALID}invalid import: bad import: "data.foo"',
        ),
        (
            f"package x\nimport input.review as r\n{VIOLATION}",
            [],
            f'{INVALID}invalid import: cannot import input: "input.review"',
        ),
        (
            f"package x\nimport rego.v1\n{VIOLATION.replace('[', ' contains ').replace('] {', ' if {')}",
            [],
            f'{INVALID}invalid import: bad import: "rego.v1"',
        ),
        (
            'package x\ndeny[{"msg": m}] { m := "x" }',
            [],
            f"{INVALID}invalid rego: invalid module: missing required rules: [violation]",
        ),
        (
            'package x\nviolation.foo[{"msg": m}] { m := "a" }',
            [],
            f"{INVALID}invalid rego: invalid module: missing required rules: [violation]",
        ),
        (
            f"package x\n{VIOLATION}",
            ["package y\nz = 1"],
            f"{INVALID}invalid lib prefix: path data.y not found in lib prefixes",
        ),
        (
            f"package x\n{VIOLATION}",
            ["package lib\nz = 1"],
            f"{INVALID}invalid lib prefix: path data.lib not found in lib prefixes",
        ),
        ("# nothing", [], f"{INVALID}template:0: rego_parse_error: empty module"),
        (
            f"package x\n{VIOLATION}",
            [""],
            f'{INVALID}libs["lib_0"]:0: rego_parse_error: empty module',
        ),
        (
            'package x\nviolation[{"msg": m}] { m := http.foo(1); http.bar({}) }\np { x = y }',
            [],
            (
                "unable to compile modules: 2 errors occurred:\n"
                "template:2: rego_type_error: undefined function http.foo\n"
                "template:2: rego_type_error: undefined function http.bar"
            ),
        ),
    ],
)
def test_rego_that_gatekeeper_refuses_is_refused_with_its_words(rego, libs, message):
    with pytest.raises(InvalidTemplate) as refusal:
        compile_rego(rego, *libs)

    assert message == str(refusal.value)


def test_a_built_in_can_be_taken_away():
    rego = 'package x\nviolation[{"msg": m}] { m := http.send({"url": "u"}).raw_body }'

    with pytest.raises(InvalidTemplate) as refusal:
        compile_rego(rego, driver=RegoDriver(disabled_builtins=["http.send"]))

    assert (
        str(refusal.value)
        == "unable to compile modules: 1 error occurred: template:2: rego_type_error: "
        "undefined function http.send"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "could not recognize the type"),
        ("package x", "could not recognize the type"),
        ({}, "rego source missing required field: rego"),
        ({"rego": 3}, "source.rego must be a string"),
        ({"rego": "package x", "libs": "y"}, "source.libs must be an array of strings"),
        ({"rego": "package x", "libs": None}, "source.libs must be an array of strings"),
        ({"rego": "package x", "libs": {}}, "source.libs must be an array of strings"),
        ({"rego": "package x", "version": None}, "source.version must be a string"),
        ({"rego": "package x", "version": []}, "source.version must be a string"),
    ],
)
def test_a_source_of_another_shape_is_refused(source, message):
    with pytest.raises(InvalidTemplate) as refusal:
        RegoDriver().compile(read_template(template()), Code("Rego", source))

    assert message == str(refusal.value)


def reported(rego, **parameters):
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subject = client(template(rego=f"package p\n{rego}", schema=loose))
    subject.add_constraint(constraint(parameters=parameters))
    answer = subject.snapshot.review(AugmentedObject(pod()))
    return [(result.msg, result.details) for result in answer.results], answer.faults


@pytest.mark.parametrize(
    ("rego", "expected"),
    [
        ('violation[{"msg": "x"}] { false }', []),
        ('violation[{"msg": "x"}] { true }', [("x", {})]),
        ('violation[{"msg": "x", "details": null}] { true }', [("x", None)]),
        ('violation[{"msg": "x", "details": {2, 1}}] { true }', [("x", [1, 2])]),
        (
            'violation[{"msg": "x", "a": 1}] { true }\nviolation[{"msg": "x", "a": 2}] { true }',
            [("x", {})],
        ),
        ('violation = s { s := {{"msg": "x"}} }', [("x", {})]),
        ('violation[x] = y { x := {"msg": "k"}; y := 1 }', [("k", {})]),
        ('violation["x"] { true }\nviolation[{"msg": "y"}] { true }', [("y", {})]),
        ("violation = x { x := input.parameters.given }", []),
    ],
)
def test_a_rules_members_with_a_message_are_the_violations(rego, expected):
    assert (expected, ()) == reported(rego)


@pytest.mark.parametrize("given", [True, False, 5, 0, 1.5, None, "x", "", [], [{"msg": "x"}], {}])
def test_what_is_no_set_of_violations_holds_none_and_raises_nothing(given):
    """Types cannot tell that before the evaluation."""
    assert reported("violation = x { x := input.parameters.given }", given=given) == ([], ())


NO_MESSAGE = {
    "violation { true }": "have: boolean",
    "violation { false }": "have: boolean",
    "violation := 5": "have: number",
    "violation = null { true }": "have: null",
    'violation = "x" { true }': "have: string",
    "default violation = false": "have: boolean",
    'violation[msg] { msg := "text" }': "undefined ref: r.msg",
    'violation[msg] { msg := sprintf("%v", [input]) }': "undefined ref: r.msg",
    'violation[{"mgs": m}] { m := "x" }': 'want (one of): ["mgs"]',
    'violation[{"message": m}] { m := "x" }': 'want (one of): ["message"]',
    'violation[{"Msg": m}] { m := "x" }': 'want (one of): ["Msg"]',
    'violation[{"details": {}}] { true }': 'want (one of): ["details"]',
    'violation[["msg", "x"]] { true }': "have: (array<string, string>, string",
    'violation = [{"msg": "x"}]': "have: (number, string",
    'violation = {"a": {"msg": "x"}}': "have: (string, string",
    'violation[x] = y { x := "msg"; y := "v" }': "have: (string, string",
    "violation[5] { true }": "have: (number, string",
    "violation[true] { true }": "have: (boolean, string",
    'violation[{"a"}] { true }': "have: (set[string], string",
    "violation(x) { x == 1 }": "function data.template.violation[r] used as reference, not called",
    'violation(x) = {"msg": "x"} { true }': "used as reference, not called",
    'violation[x] { x := f(1) }\nf(y) = {"mesg": y} { true }': 'want (one of): ["mesg"]',
}


@pytest.mark.parametrize("rego", NO_MESSAGE)
def test_a_template_that_can_never_give_a_message_does_not_compile(rego):
    with pytest.raises(CompileError) as refusal:
        client(template(rego=f"package p\n{rego}"))

    message = str(refusal.value)
    assert message.startswith("unable to compile modules: ")
    assert "hooks.hooks_builtin:" in message
    assert NO_MESSAGE[rego] in message
    assert message.endswith('write: violation[{"msg": msg}] { msg := "what is wrong" }')


def test_how_to_mend_it_is_said_in_the_templates_own_rego():
    source = {"rego": 'package p\nviolation contains "x" if true', "version": "v1"}
    with pytest.raises(CompileError) as refusal:
        RegoDriver().compile(read_template(template()), Code("Rego", source))

    assert str(refusal.value).endswith(
        'write: violation contains {"msg": msg} if { msg := "what is wrong" }'
    )


def test_a_type_error_of_the_policy_itself_is_reported_without_the_hook():
    with pytest.raises(CompileError) as refusal:
        client(template(rego='package p\nviolation["x"] { count(5) == 1 }'))

    assert "hooks_builtin" not in str(refusal.value)


def test_violations_of_a_constraint_are_ordered_by_details_then_message_among_equal_ones():
    rego = """violation[{"msg": "same", "details": {"n": n}}] { n := [10, 9, "a", null][_] }"""

    found, _ = reported(rego)

    assert [details for _, details in found] == [{"n": None}, {"n": 9}, {"n": 10}, {"n": "a"}]


def test_a_message_that_is_no_text_fails_the_review_as_in_gatekeeper():
    found, faults = reported('violation[{"msg": 5}] { true }')

    assert found == []
    assert "extracting message binding: .msg accessor error" in str(faults[0])


def test_a_conflict_is_reported_with_its_place_as_opa_does():
    rego = 'violation[{"msg": m}] { m := p }\np = "a" { true }\np = "b" { true }'

    ((message, details),), faults = reported(rego)

    assert (
        message
        == "template:4: eval_conflict_error: complete rules must not produce multiple outputs"
    )
    assert details is None
    assert faults == ()


def test_the_inventory_is_there():
    rego = """package p
violation[{"msg": n}] { data.inventory.namespace[_]["v1"].Pod[n] }"""
    subject = client(template(rego=rego), constraint())
    subject.add_data(pod("other"))

    answer = subject.snapshot.review(AugmentedObject(pod()))

    assert [result.msg for result in answer.results] == ["other"]


@pytest.mark.parametrize("member", ["", '"details": {"n": n % 2}, ', '"other": n, '])
def test_many_members_are_the_violations_that_few_are(member):
    """More of them are looked at all at once, where nothing but texts is in them."""
    few, many = (
        reported(
            f'violation[{{{member}"msg": msg}}] {{ n := numbers.range(1, {count})[_]; '
            'msg := sprintf("é %d", [n % 70]) }'
        )[0]
        for count in (60, 900)
    )

    texts = [f"é {n}" for n in range(70)]
    assert sorted({message for message, _ in many}) == sorted(texts)
    assert len(many) == len(texts)
    assert [one for one in many if one in few] == few


@pytest.mark.parametrize("odd", ["5", "null", '["x"]'])
def test_one_of_many_members_without_a_text_fails_the_review(odd):
    texts = 'violation[{"msg": sprintf("%d", [numbers.range(1, 900)[_]])}] { true }'
    assert reported(f'{texts}\nviolation[{{"msg": {odd}}}] {{ true }}')[1]
    others = f'{texts}\nviolation[{odd}] {{ true }}\nviolation[{{"no": "msg"}}] {{ true }}'
    assert len(reported(others)[0]) == 900


@pytest.mark.parametrize(
    ("rule", "version"),
    [
        ('violation[x] if { x := {"msg": "m"} }', "v1"),
        ('violation[{"msg": "m"}] if { true }', "v1"),
        ('violation[x].a if { x := {"msg": "m"} }', "v1"),
        ('violation[x][y] contains 1 if { x := {"msg": "m"}; y := 1 }', "v1"),
        ('violation[x][y] = 1 { x := {"msg": "m"}; y := 1 }', "v0"),
        ('import future.keywords\nviolation[x] if { x := {"msg": "m"} }', "v0"),
    ],
)
def test_a_violation_rule_that_opa_does_not_name_so_is_refused(rule, version):
    """It denied here, and Gatekeeper takes no such template."""
    with pytest.raises(InvalidTemplate, match=r"missing required rules.*write: violation contains"):
        compile_rego(f"package x\n{rule}", version=version)


@pytest.mark.parametrize(
    "rule",
    ['violation[x] := 1 if { x := {"msg": "m"} }', 'violation[{"msg": "m"}] = true'],
)
def test_the_keys_of_an_object_of_violations_are_violations(rule):
    source = {"rego": f"package x\n{rule}", "version": "v1"}
    code = {"code": [{"engine": "Rego", "source": source}]}
    subject = client(template(rego="", target=code))
    subject.add_constraint(constraint())
    answer = subject.snapshot.review(AugmentedObject(pod()))
    assert len(answer.results) == 1
