"""The read set of a template in Rego, and whether its answer can differ another time."""

import pytest

from tests.policies import template
from webhook.constraint.drivers.reads import dependencies_of
from webhook.constraint.template import read_template


def dependencies(body, parameters=None, rules=""):
    rego = f'package p\nviolation[{{"msg": "m"}}] {{ {body} }}\n{rules}'
    return dependencies_of(read_template(template("P", rego)), parameters)


OBJECT = "input.review.object"
NAMED = f'named[{{"name": n, "of": of}}] {{ n := {OBJECT}.spec[of][_].name }}'
"""A set whose members a policy may seek by a property."""


@pytest.mark.parametrize(
    ("body", "rules", "paths"),
    [
        (f"{OBJECT}.spec.hostPID", "", ["review.object.spec.hostPID"]),
        (f"not {OBJECT}.spec.hostPID", "", ["review.object.spec.hostPID"]),
        (f"o := {OBJECT}; o.a.b == 1", "", ["review.object.a.b"]),
        (
            "c := containers[_]; c.privileged",
            f"containers[c] {{ c := {OBJECT}.spec.containers[_] }}",
            ["review.object.spec.containers[*].privileged"],
        ),
        (
            f'has({OBJECT}.spec, "hostIPC")',
            "has(o, field) { o[field] }",
            ["review.object.spec.hostIPC"],
        ),
        (f'object.get({OBJECT}, ["a", "b"], 1) == 1', "", ["review.object.a.b"]),
        (
            f'ps := [["a", "b"], ["a", "c"]]; object.get({OBJECT}, ps[_], 1) == 1',
            "",
            ["review.object.a.b", "review.object.a.c"],
        ),
        # A shorter path gives what is above the end of a longer one.
        (f'ps := [["a"], ["a", "b"]]; object.get({OBJECT}, ps[_], 1) == 1', "", ["review.object"]),
        (f'ps := ["a", ["b", "c"]]; object.get({OBJECT}, ps[_], 1) == 1', "", ["review.object"]),
        (
            f"object.get({OBJECT}, path, 1) == 1",
            'path = ["a"] { input.parameters.p } else = []',
            [
                "parameters.p",
                "review.object",
            ],
        ),
        (f"count({OBJECT}.spec.rules) > 1", "", ["review.object.spec.rules[*]"]),
        (f"{OBJECT}.labels[k]; k", "", ["review.object.labels[*]"]),
        (
            f"wanted := input.parameters.label; not {OBJECT}.labels[wanted]",
            "",
            ["parameters.label", "review.object.labels[*]"],
        ),
        # How many members a set has depends on all of each.
        (
            f"cs := {{c | c := {OBJECT}.cs[_]}}; ns := [c.n | c := cs[_]]; count(ns) > 1",
            "",
            ["review.object.cs[*]"],
        ),
        ("data.inventory.cluster.v1.Namespace[n]", "", ["data.inventory.cluster.v1.Namespace[*]"]),
        ("f(input)", "f(i) { i.review.kind.kind }", ["review.kind.kind"]),
        # A set that is written has these members and no others.
        (f'{{"a", "b"}}["c"]; {OBJECT}.spec', "", []),
        (f'{{["a"]}}[["a"]]; {OBJECT}.spec.a', "", ["review.object.spec.a"]),
        (f'k := {{"a", "b"}}[_]; {OBJECT}[k]', "", ["review.object.a", "review.object.b"]),
        ('named[{"name": n, "of": "cs"}]', NAMED, ["review.object.spec.cs[*].name"]),
        ('of := "cs"; named[{"name": n, "of": of}]', NAMED, ["review.object.spec.cs[*].name"]),
        ('named[{"name": n, "of": of}]', NAMED, ["review.object.spec[*][*].name"]),
        # The order of an array depends on all members.
        (
            'count([n | named[{"name": n, "of": "cs"}]]) > 1',
            NAMED,
            ["review.object.spec[*][*].name"],
        ),
    ],
)
def test_the_paths_that_a_template_reads(body: str, rules: str, paths: list[str]) -> None:
    assert dependencies(body, rules=rules).paths == paths


def test_two_values_of_one_function_are_compared_whole() -> None:
    rules = f"first := c {{ c := {OBJECT}.cs[_] }}"
    read = dependencies("first.image", rules=rules).reads.at("input", "review", "object", "cs")
    assert read.at("*").whole


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ('not pairs[["a", "b"]]', f"pairs[[k, v]] {{ v := {OBJECT}.labels[k] }}"),
        ('not pairs[{"v": "b"}]', f'pairs[{{"v": v}}] {{ v := {OBJECT}.labels[_] }}'),
        ("not values[[]]", f"values[v] {{ v := {OBJECT}.labels[_] }}"),
    ],
)
def test_of_members_that_are_sought_by_a_container_all_is_read(body: str, rules: str) -> None:
    labels = dependencies(body, rules=rules).deciding.at("input", "review", "object", "labels")
    assert labels.at("*").whole


IMAGE = f"{OBJECT}.cs[_].image"
FROM = [[("startswith", "a/")]]


@pytest.mark.parametrize(
    ("body", "rules", "tests"),
    [
        (f'startswith({IMAGE}, "a/")', "", FROM),
        (f'startswith({IMAGE}, trim_suffix("a/*", "*"))', "", FROM),
        (
            f'i := {IMAGE}; not strings.any_prefix_match(i, ["a/", "b/"])',
            "",
            [*FROM, [("startswith", "b/")]],
        ),
        (
            f'of := concat(":", ["", ["x", "y"][_]]); endswith({IMAGE}, of)',
            "",
            [[("endswith", ":x")], [("endswith", ":y")]],
        ),
        (f'{IMAGE} != "a"', "", [[("equal", "a")]]),
        (f'regex.match("^a", {IMAGE})', "", [[("regex.match", "^a")]]),
        (
            f'parts := split({IMAGE}, "/"); not contains(parts[count(parts) - 1], ":")',
            "",
            [[("split", "/"), ("count", "")], [("split", "/"), ("each", ""), ("contains", ":")]],
        ),
        # Of two texts each has its results: they need not be of one container.
        (
            f'a := split({IMAGE}, "/"); b := split({IMAGE}, ":"); a[count(b)] == "x"',
            "",
            [
                [("split", "/"), ("count", "")],
                [("split", "/"), ("each", ""), ("equal", "x")],
                [("split", ":"), ("count", "")],
            ],
        ),
        # A rule that never holds gives no second value that is compared.
        (
            f"m := text({IMAGE}); m",
            'text(x) = y { false; y := x }\ntext(x) = y { y := startswith(x, "a/") }',
            FROM,
        ),
    ],
)
def test_of_a_text_that_is_tested_the_results_are_read(body: str, rules: str, tests: list) -> None:
    read = dependencies(body, rules=rules).deciding.at(
        "input", "review", "object", "cs", "*", "image"
    )
    assert not read.scalar
    found = sorted([(step.name, step.operand) for step in test] for test in read.tests)
    assert found == sorted(tests)


@pytest.mark.parametrize(
    ("message", "tests"),
    [
        (f'sprintf("%v", [split({IMAGE}, "/")])', [[("is_string", "")]]),
        (f'sprintf("%v", [startswith({IMAGE}, "a")])', [[("is_string", "")]]),
        (f'sprintf("%v", [split({IMAGE}, "/")[0]])', [[("split", "/"), ("count", "")]]),
    ],
)
def test_a_violation_that_quotes_a_test_of_a_text_hangs_on_its_being_one(
    message: str, tests: list
) -> None:
    rego = f'package p\nviolation[{{"msg": msg}}] {{ msg := {message} }}'
    found = dependencies_of(read_template(template("P", rego)))
    read = found.deciding.at("input", "review", "object", "cs", "*", "image")
    assert [[(step.name, step.operand) for step in test] for test in read.tests] == tests


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (f'{IMAGE} < "b"', ""),
        (f"{IMAGE} == {OBJECT}.name", ""),
        (f"startswith({IMAGE}, {OBJECT}.name)", ""),
        (f'startswith(lower({IMAGE}), "a")', ""),
        (f'parts := split({IMAGE}, "/"); count({{part | part := parts[_]}}) > 1', ""),
        (f'regex.match("(", {IMAGE})', ""),
        (
            f'startswith({IMAGE}, concat(":", parts[_]))',
            'parts[p] { p := ["a"] }\nparts[p] { p := ["a", "b"] }',
        ),
    ],
)
def test_a_text_that_is_used_otherwise_is_read_whole(body: str, rules: str) -> None:
    read = dependencies(body, rules=rules).deciding.at(
        "input", "review", "object", "cs", "*", "image"
    )
    assert read.scalar or any(test[-1].gives != "scalar" for test in read.tests)


def test_texts_of_synced_objects_are_read_whole() -> None:
    body = 'startswith(data.inventory.cluster.v1.Namespace[_].metadata.name, "a")'
    path = "data", "inventory", "cluster", "v1", "Namespace", "*", "metadata", "name"
    assert dependencies(body).reads.at(*path).whole


@pytest.mark.parametrize(
    ("parameters", "paths"),
    [
        ({"labels": ["a", "b"]}, ["review.object.labels.a", "review.object.labels.b"]),
        ({}, []),
    ],
)
def test_parameters_name_keys_and_cut_paths_off(parameters: dict, paths: list[str]) -> None:
    body = f"wanted := input.parameters.labels[_]; not {OBJECT}.labels[wanted]"
    assert dependencies(body, parameters).paths == paths


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("by_name[_].image", f"by_name[c.name] = c {{ c := {OBJECT}.cs[_] }}"),
        (f"by_name := {{c.name: c | c := {OBJECT}.cs[_]}}; by_name[_].image", ""),
    ],
)
def test_values_of_one_key_are_compared_whole_and_tell_nothing_where_keys_differ(
    body: str, rules: str
) -> None:
    found = dependencies(body, rules=rules)
    assert found.paths == ["review.object.cs[*]"]
    assert found.distinct is not None
    assert found.distinct.paths == ["review.object.cs[*].image", "review.object.cs[*].name"]


def test_synced_values_of_one_key_are_compared_whole() -> None:
    synced = "data.inventory.cluster.v1.Namespace[_]"
    rules = f"by_name[c.kind] = c {{ c := {synced} }}"
    assert dependencies("by_name[_].image", rules=rules).distinct is None


def test_a_modifier_may_make_it_read_anything() -> None:
    body = 'q with input as {"a": 1}'
    assert dependencies(body, rules="q { input.a }").paths == ["*"]


@pytest.mark.parametrize(
    ("body", "changing", "providers"),
    [
        ("1 == 1", (), False),
        ("time.now_ns() > 1", ("time.now_ns",), False),
        ('rand.intn("a", 2) == 1', ("rand.intn",), False),
        ('trace("a")', ("trace",), False),
        ('print("a")', ("print",), False),
        ('external_data({"provider": "p", "keys": ["a"]})', (), True),
        ("f with time.now_ns as 1", ("time.now_ns",), False),
    ],
)
def test_what_may_change_by_itself_is_reported(body: str, changing: tuple, providers: bool) -> None:
    read = dependencies(body, rules="f { time.now_ns() > 1 }")
    assert (read.changing, read.providers) == (changing, providers)
    assert read.deterministic is not bool(changing)
