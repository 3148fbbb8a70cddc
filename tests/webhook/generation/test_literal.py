"""JSON values written as CEL, and evaluated: the same values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.generation.literal import literal, string

INTEGERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = (
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def value_of(text):
    return compile_expression(text, admission({}, params=False)).evaluate({}, Meter(10**9))


@given(VALUES)
def test_a_value_comes_back_as_it_was(value):
    found = value_of(literal(value))
    assert found == value
    assert repr(found) == repr(value), "true is not 1, and 1.0 is not either"


@given(st.text())
def test_no_text_ends_its_literal(text):
    assert value_of(string(text)) == text


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_a_double_as_in_the_api_server(number):
    assert value_of(literal(number)) == float(number)
    assert type(value_of(literal(number))) is float
