"""Forms that are written inline, beside other literals: each takes nothing from its neighbours."""

import pytest

from webhook.rego.engine import UNDEFINED, EvaluationContext, compile_modules
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module


def value(source, input_value=UNDEFINED):
    module = parse_module(f"package a\n{source}", "m.rego", "v1")
    found = compile_modules([module]).rule("data.a.r")(input_value, {}, EvaluationContext())
    return UNDEFINED if found is UNDEFINED else to_json(found)


def test_what_follows_is_number_in_a_body_counts():
    source = "r contains p if { some p in [80, 8080, 443]; is_number(p); p < 1024 }"
    assert value(source) == [80, 443]


def test_what_follows_is_object_in_a_body_counts():
    source = "r contains o if { some o in input; is_object(o); o.a == 1 }"
    assert value(source, [{"a": 1}, {"a": 2}, {"b": 1}, 3]) == [{"a": 1}]


@pytest.mark.parametrize("form", ["is_number", "is_object"])
def test_a_form_of_two_kinds_asks_nothing_where_what_it_is_about_is_undefined(form):
    source = f"r if not f(input)\nf(v) if {{ v[_] == 1; {form}(v.a) }}"
    assert value(source, {"b": 2}) is True


def test_an_object_is_asked_for_only_where_it_is_found():
    source = (
        "r := msg if { o := input.review.object; is_object(o); msg := json.marshal(o.metadata) }"
    )
    assert value(source, {"review": {}}) is UNDEFINED
    assert value(source, {"review": {"object": {"metadata": {}}}}) == "{}"


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ("{k: x, `c`: 2} = {k: 1, `c`: y}", [["a", "a"], ["a", "b"], ["b", "a"], ["b", "b"]]),
        ("{k: x, `b`: 2} = {k: 1, `b`: y}", [["a", "a"], ["a", "b"]]),
        ("{`a`: x, l: 2} = {`a`: 1, l: y}", [["a", "b"], ["b", "b"]]),
        ("{k: x, l: 2} = {k: 1, l: y}", [["a", "b"], ["b", "a"]]),
        ("{k: x, l: 1} = {k: 1, l: x}", [["a", "b"], ["b", "a"]]),
    ],
)
def test_objects_whose_names_turn_out_equal_bind_nothing(objects, found):
    source = f"r contains [k, l] if {{ some k in input; some l in input; {objects} }}"
    assert value(source, ["a", "b"]) == found


@pytest.mark.parametrize("form", ["any_prefix_match", "any_suffix_match"])
def test_what_begins_or_ends_like_one_of_many_may_be_a_collection(form):
    source = f'r := is_string(v) if {{ v := input; strings.{form}(v, ["a", "b"]) }}'
    assert value(source, ["a", "b"]) is False
    assert value(source, "b") is True
