"""JSON with Go's messages."""

import pytest

from webhook.rego.builtins import go_json
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"),
        ("{", "unexpected EOF"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a":1 2}', "invalid character '2' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("01", "error: invalid character '1' after top-level value"),
        ("{} x", "invalid character 'x' looking for beginning of value"),
        ("1.", "unexpected EOF"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
    ],
)
def test_the_message_is_that_of_encoding_json(text, message):
    with pytest.raises(BuiltinError) as caught:
        go_json.decode(text)
    assert caught.value.message == message
    assert not go_json.is_valid(text)


def test_half_a_surrogate_pair_is_replaced():
    assert go_json.decode('["\\ud800", {"\\udc00": 1}]') == ["\ufffd", {"\ufffd": 1}]


def test_nesting_beyond_every_bound_is_an_error_and_no_crash():
    with pytest.raises(BuiltinError):
        go_json.decode("[" * 1_000_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-2.5e-8, "-2.5e-8"),
        (1.234e-5, "0.00001234"),
        (1e-6, "0.000001"),
        (5e-324, "5e-324"),
        (1000000.5, "1000000.5"),
        (2.0**60, "1152921504606847000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (2.0, "2"),
    ],
)
def test_floats_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert number_text(go_json.float_number(value)) == text
