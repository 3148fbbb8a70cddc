"""JSON decoding and encoding: exact, capped, and with clear errors."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.encoding import DecodeError, decode, encode, is_same_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_integers_beyond_64_bits_are_exact():
    assert decode(b'{"a":123456789012345678901234567890}') == {"a": 123456789012345678901234567890}
    assert encode({"a": 123456789012345678901234567890}) == b'{"a":123456789012345678901234567890}'


@given(st.integers(min_value=-(2**200), max_value=2**200))
def test_every_integer_survives(number):
    assert number == decode(encode([number]))[0]


@given(VALUES)
def test_what_is_encoded_is_decoded_to_the_same(value):
    try:
        raw = encode(value)
    except UnicodeEncodeError:  # a key with a lone surrogate
        return
    assert json.loads(raw) == decode(raw)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1,]", b"nul", b"\xff", b'{"a":NaN}', b"[" * 20_000 + b"]" * 20_000, b"1 2"],
)
def test_what_is_no_json_is_a_decode_error(body):
    with pytest.raises(DecodeError):
        decode(body)


def test_an_integer_beyond_a_floats_range_is_a_decode_error():
    with pytest.raises(DecodeError, match="number is infinity"):
        decode(b"1" * 5000)


def test_a_document_over_the_cap_is_refused_with_both_sizes():
    with pytest.raises(DecodeError, match="document of 11 bytes is larger than 10"):
        decode(b'"123456789"', max_bytes=10)


@pytest.mark.parametrize("digits", [18, 19, 20, 21, 40])
def test_a_long_integer_is_exact_wherever_it_stands(digits):
    number = int("9" * digits)
    for before in range(9):
        text = "x" * before
        assert decode(encode([text, number, text]).replace(b",", b" ,")) == [text, number, text]
        assert decode(encode([text, -number])) == [text, -number]
        assert decode(encode({text: number})) == {text: number}


@pytest.mark.parametrize(
    ("a", "b"), [(1, True), (0, False), (1.0, True), (None, 0), (0, ""), (2**53, float(2**53) + 2)]
)
def test_values_of_different_types_are_not_the_same_json(a, b):
    for x, y in ((a, b), ([a], [b]), ({"a": {"b": a}}, {"a": {"b": b}})):
        assert not is_same_json(x, y)
        assert is_same_json(x, copy.deepcopy(x))


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (0.0, -0.0), (2**53, float(2**53))])
def test_numbers_are_the_same_json_by_their_value(a, b):
    """Go writes 1.0 as 1, so what the API server stores does not tell them apart."""
    for x, y in ((a, b), ([a], [b]), ({"a": {"b": a}}, {"a": {"b": b}})):
        assert is_same_json(x, y)
        assert is_same_json(y, x)


def test_the_order_of_fields_does_not_count_and_depth_does():
    assert is_same_json({"a": 1, "b": [2**70]}, {"b": [2**70], "a": 1})
    deep: list[object] = []
    other: list[object] = [1]
    for _ in range(9000):
        deep, other = [deep], [other]
    assert is_same_json(deep, decode(encode(deep)))
    assert not is_same_json(deep, other)


def written(value):
    """Returns a value's JSON, in which a whole number has no fraction."""
    return encode(whole(value), sort_keys=True)


def whole(value):
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(VALUES, VALUES)
def test_what_is_the_same_json_is_written_alike(a, b):
    assert is_same_json(a, decode(encode(a)))
    assert is_same_json(a, b) == (written(a) == written(b))
