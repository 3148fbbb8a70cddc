"""Types print, compare, join and are selected from as in OPA's type checker."""

import pytest

from webhook.rego.run.values import RegoSet
from webhook.rego.types import (
    ANY,
    BOOLEAN,
    NULL,
    NUMBER,
    STRING,
    ArrayType,
    FunctionType,
    ObjectType,
    any_of,
    array_of,
    is_unknown,
    keys,
    object_of,
    select,
    set_of,
    static_array,
    type_from_json,
    type_of,
    type_text,
    union,
    values,
)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (None, "???"),
        (ANY, "any"),
        (any_of(STRING, NUMBER), "any<number, string>"),
        (ArrayType((NUMBER,), ANY), "array<number>[any]"),
        (set_of(STRING), "set[string]"),
        (object_of(STRING, ANY, b=NUMBER, a=NULL), "object<a: null, b: number>[string: any]"),
        (FunctionType((STRING,), BOOLEAN), "(string) => boolean"),
        (FunctionType((), None, ANY), "(any...) => ???"),
    ],
)
def test_a_type_prints_as_in_opas_messages(type_, text):
    assert type_text(type_) == text


def test_a_type_is_read_from_a_capabilities_file():
    declared = {
        "type": "function",
        "args": [{"type": "any", "of": [{"type": "string"}, {"type": "number"}]}],
        "result": {"type": "array", "static": [{"type": "boolean"}], "dynamic": {"type": "any"}},
    }
    read = type_from_json(declared)
    assert read == FunctionType((any_of(NUMBER, STRING),), ArrayType((BOOLEAN,), ANY))
    with pytest.raises(ValueError, match="unsupported type 'date'"):
        type_from_json({"type": "date"})


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (None, STRING, STRING),
        (STRING, STRING, STRING),
        (STRING, NUMBER, any_of(NUMBER, STRING)),
        (any_of(STRING, NUMBER), NUMBER, any_of(NUMBER, STRING)),
        (ANY, NUMBER, ANY),
        (STRING, FunctionType((), ANY), None),
    ],
)
def test_a_union_holds_each_member_once_in_order(a, b, joined):
    assert union(a, b) == joined


@pytest.mark.parametrize(
    ("type_", "name", "found"),
    [
        (static_array(STRING), 0, STRING),
        (static_array(STRING), 1, None),
        (array_of(NUMBER), 7, NUMBER),
        (ObjectType((("a", NUMBER),)), "a", NUMBER),
        (ObjectType((("a", NUMBER),)), "b", None),
        (object_of(STRING, BOOLEAN), "b", BOOLEAN),
        (object_of(STRING, BOOLEAN), 1, None),
        (set_of(any_of(STRING, NUMBER)), 1, NUMBER),
        (any_of(array_of(STRING), object_of(STRING, NUMBER)), "a", NUMBER),
        (STRING, 0, None),
        (ANY, "x", ANY),
    ],
)
def test_selecting_a_property_gives_its_type(type_, name, found):
    assert select(type_, name) == found


def test_keys_and_values_are_what_an_iteration_yields():
    named = ObjectType((("a", NUMBER),), (NUMBER, STRING))
    assert keys(named) == any_of(NUMBER, STRING)
    assert values(named) == any_of(NUMBER, STRING)
    assert keys(array_of(STRING)) == NUMBER
    assert values(set_of(STRING)) == STRING
    assert keys(STRING) is None


def test_a_values_type_names_every_item():
    value = {"a": [1, "x"], "b": RegoSet([None])}
    assert str(type_of(value)) == "object<a: array<number, string>, b: set[null]>"


def test_a_type_made_with_no_type_is_unknown():
    assert is_unknown(ObjectType((("a", None),)))
    assert not is_unknown(object_of(ANY, ANY))
