"""Answers of providers are read as Go reads them into Gatekeeper's types."""

import json

import pytest

from webhook.external_data.response import (
    ITEMS_MAX,
    AnsweredKey,
    UnreadableAnswer,
    read_answer,
)


def body(**response):
    return json.dumps({"response": response}).encode()


def items(*entries):
    return read_answer(body(items=list(entries))).items


@pytest.mark.parametrize("nothing", [b"null", b"{}", b'{"response": null}', b'{"response": {}}'])
def test_nothing_said_is_an_empty_answer(nothing):
    assert read_answer(nothing) == ((), "", False)


def test_names_are_read_in_any_letters_and_the_last_counts():
    answer = read_answer(b'{"RESPONSE": {"Items": [{"KEY": "a", "key": "b", "Value": 1}]}, "x": 1}')
    assert answer.items == (AnsweredKey("b", 1, ""),)


def test_an_item_without_a_key_is_one_of_the_empty_key():
    assert items(None, {"value": 1}, {"key": None, "error": None}) == (
        AnsweredKey("", None, ""),
        AnsweredKey("", 1, ""),
        AnsweredKey("", None, ""),
    )


def test_numbers_are_64_bit_floats():
    (item,) = items({"key": "a", "value": [2**53 + 1, 2.0, 1.5, -0.0, 1e21]})
    assert item.value == [2**53, 2, 1.5, 0, 1e21]


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (b"[]", "array into the answer"),
        (b'{"kind": 5}', "number into kind"),
        (b'{"response": "text"}', "string into response"),
        (body(items={}), "object into response.items"),
        (body(items=["a"]), r"string into response.items\[0\]"),
        (body(items=[{"key": 1}]), r"number into response.items\[0\].key"),
        (body(items=[{"error": {}}]), r"object into response.items\[0\].error"),
        (body(systemError=[]), "array into response.systemError"),
        (body(idempotent="yes"), "string into response.idempotent"),
        (b'{"response": {"items": [{"value": 1e999}]}}', "too large for a float64"),
        (b'{"response": {"items": [{"value": 1e9999999}]}}', "number too big"),
        (b'{"response": ' + b"[" * 20_000 + b"1" + b"]" * 20_000 + b"}", "depth"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"\xff", "^invalid character '\u00ff' looking for beginning of value"),
        (b"{} more", "^invalid character 'm' after top-level value"),
        (b"", "^unexpected end of JSON input"),
        (b'{"response": {', "^unexpected end of JSON input"),
    ],
)
def test_what_has_another_form_cannot_be_read(answer, where):
    with pytest.raises(UnreadableAnswer, match=where):
        read_answer(answer)


def test_bytes_that_are_no_text_are_replaced_as_in_go():
    (item,) = read_answer(b'{"response": {"items": [{"key": "a\xff", "value": "\\ud800"}]}}').items
    assert item == AnsweredKey("a\ufffd", "\ufffd", "")


def test_a_large_answer_is_read_in_pieces():
    answered = items(*({"key": f"k{number}", "value": "x" * 100} for number in range(2000)))
    assert (len(answered), answered[-1].key) == (2000, "k1999")


@pytest.mark.parametrize("item", [{"key": "a", "value": "text"}, {"KEY": "a", "value": {"b": 1}}])
def test_an_answer_of_too_many_items_is_not_read(item):
    assert len(items(*[item] * ITEMS_MAX)) == ITEMS_MAX
    with pytest.raises(UnreadableAnswer, match="holds 10001 items, and 10000 may"):
        items(*[item] * (ITEMS_MAX + 1))
