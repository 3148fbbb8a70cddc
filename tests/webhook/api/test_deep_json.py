"""Documents as deep as the API server takes them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.encoding import DecodeError, decode, encode
from webhook.api.json_decoder import decode_in_pieces, encode_deep

NUMBER = re.compile(r"(?:(?<=[\[:,])|^)-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[\],}]|$)")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def nested(levels: int, leaf: bytes = b"1") -> bytes:
    """A document of so many levels, objects and arrays in turn."""
    pairs = levels // 2
    return b'{"a":[' * pairs + leaf + b"]}" * pairs


@pytest.mark.parametrize("levels", [260, 990, 1_026, 3_000, 10_000])
def test_what_is_nested_as_deep_as_the_api_server_takes_it_is_decoded_and_encoded(levels):
    raw = nested(levels)
    value = decode(raw)
    assert encode(value) == raw
    assert encode(value, sort_keys=True) == raw
    for _ in range(levels // 2):
        value = value["a"][0]
    assert value == 1


def test_a_deep_document_with_a_number_beyond_64_bits_is_exact():
    number = b"123456789012345678901234567890"
    for levels in (980, 3_000):
        raw = nested(levels, number)
        assert encode(decode(raw)) == raw


def test_what_is_nested_deeper_than_the_api_server_takes_it_is_a_decode_error():
    with pytest.raises(DecodeError, match="nested deeper than 10016 levels"):
        decode(b"[" * 20_000 + b"]" * 20_000)


@given(VALUES)
def test_the_slow_decoder_and_encoder_agree_with_the_fast_ones(value):
    try:
        raw = encode(value)
    except UnicodeEncodeError:
        return
    assert_same(encode_deep(value), raw)
    assert decode_in_pieces(raw) == decode(raw)
    assert decode_in_pieces(json.dumps(value, indent=1).encode()) == decode(raw)


@given(VALUES)
def test_keys_are_sorted_alike(value):
    assert_same(encode_deep(value, sort_keys=True), encode(value, sort_keys=True))


def assert_same(one, other):
    """The same text, but for how floats are written: 0.00001 by orjson is 1e-05 by `json`."""
    assert NUMBER.sub(one_form, one.decode()) == NUMBER.sub(one_form, other.decode())
    assert decode(one) == decode(other)


def one_form(number):
    """An integer as it stands, a float as Python writes it."""
    text = number[0]
    return text if text.lstrip("-").isdigit() else repr(float(text))


@pytest.mark.parametrize(
    "value", [1e-05, 1e16, 1e300, -2.5e-7, 5e-324, 123456789012345.6, 0.1, -0.0, 2**64]
)
def test_a_float_beside_an_integer_beyond_64_bits_keeps_its_value(value):
    beside = {"": [value], "0": -9223372036854775809}
    assert_same(encode_deep(beside, sort_keys=True), encode(beside, sort_keys=True))


@given(st.text('{}[],:"\\ 0123456789-+.eEtrufalsn\n\x01é', max_size=12))
def test_the_slow_decoder_refuses_what_the_fast_one_refuses(text):
    def outcome(load):
        try:
            return load(text.encode())
        except ValueError:
            return "refused"

    assert outcome(decode_in_pieces) == outcome(decode)


@pytest.mark.parametrize(
    "leaf", [b"nul", b'"\\ud800"', b'"a', b"1 2", b",", b'"\x01"', b"01", b"\xff"]
)
def test_a_deep_document_that_is_no_json_is_a_decode_error(leaf):
    with pytest.raises(DecodeError):
        decode(nested(3_000, leaf))


def test_a_set_among_deep_values_is_refused_as_elsewhere():
    value: object = {1, 2}
    for _ in range(2_000):
        value = [value]
    with pytest.raises(TypeError):
        encode(value)
