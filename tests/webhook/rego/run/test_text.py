"""Values as text: quoted, as Rego source, and as JSON."""

import pytest

from webhook.golang.strings import from_utf8, utf8
from webhook.rego.run import text
from webhook.rego.run.numbers import Numeral, number
from webhook.rego.run.text import display, json_indented, json_string, json_text, to_json
from webhook.rego.run.values import RegoObject, RegoSet


def test_bytes_that_are_no_utf8_survive():
    """A string made of any bytes gives them back, and shows U+FFFD in JSON."""
    text = from_utf8(b"a\xff\xc3\xa9")
    assert utf8(text) == b"a\xff\xc3\xa9"
    assert len(text) == 3
    assert json_string(text) == '"a\\ufffdé"'


@pytest.mark.parametrize(
    ("value", "json", "source"),
    [
        (None, "null", "null"),
        (True, "true", "true"),
        (number("1.50"), "1.50", "1.50"),
        ("<a&b>", '"\\u003ca\\u0026b\\u003e"', '"<a&b>"'),
        ({"b": 1, "a": []}, '{"a":[],"b":1}', '{"a": [], "b": 1}'),
        ({}, "{}", "{}"),
        (RegoSet([2, 1, "x"]), '[1,2,"x"]', '{1, 2, "x"}'),
        (RegoSet(), "[]", "set()"),
        (RegoObject([(2, 1), ("a", 2)]), '{"2":1,"a":2}', '{2: 1, "a": 2}'),
        (RegoObject([([1], 1)]), '{"[1]":1}', "{[1]: 1}"),
    ],
)
def test_a_value_is_shown_as_opa_shows_it(value, json, source):
    assert json_text(value) == json
    assert display(value) == source


def test_indented_json_is_laid_out_as_go_does():
    """Empty collections stay on their line, and the first line has no prefix."""
    text = json_indented({"a": [1, {}], "b": []}, ">", "  ")
    assert text == '{\n>  "a": [\n>    1,\n>    {}\n>  ],\n>  "b": []\n>}'


def test_results_hold_nothing_that_an_encoder_refuses():
    """Numbers that keep their text become plain, bytes that are no UTF-8 become U+FFFD."""
    value = {"a": number("1.0"), "b": number("0.10"), "c": from_utf8(b"\xff"), "d": RegoSet(["é"])}
    assert to_json(value) == {"a": 1, "b": 0.1, "c": "\ufffd", "d": ["é"]}
    assert [type(item) for item in to_json(value).values()] == [int, float, str, list]


STRINGS = ("a", "", 'q"', "back\\slash", "\x7f", "\u2028", "é", "\udc80", "x 1.5", "[1e5", "a\nb")
NUMBERS = (0, -1, 10**30, 1.5, -0.0, 1e22, 1e-7, 100000.0, 1e21, float("inf"), Numeral("1.10"))


@pytest.mark.parametrize(
    "value",
    [
        *([shown] for shown in STRINGS),
        *({shown: shown, "b": [shown]} for shown in STRINGS),
        *([number] for number in NUMBERS),
        *({"n": number, "a": [number, {"m": number}]} for number in NUMBERS),
        *([], {}, [[]], [{}], [None, True, False], {"b": 1, "a": {"d": [1, "x"], "c": None}}),
        *([RegoSet([1, "a"])], {"s": RegoSet()}, [RegoObject([(1, [2])])]),
    ],
    ids=repr,
)
def test_arrays_and_objects_are_shown_at_once_as_they_are_part_by_part(value):
    """CPython's JSON encoder writes most of them as OPA does; what it would not is not left to it."""
    assert display(value) == text._walked(value)  # the plain way, to compare with


def test_what_is_shown_at_once_is_most_of_what_there_is():
    """The encoder is there, and takes what objects of a cluster hold."""
    pod = {"image": "registry.io/a:1.2", "ports": [{"containerPort": 80}], "tty": False}
    assert text._as_json(pod) == display(pod)  # empty where it is not used
