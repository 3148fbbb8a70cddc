"""Base64 with Go's idea of what is wrong, and where."""

import pytest

from webhook.rego.builtins import strict_base64
from webhook.rego.errors import BuiltinError


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("x", 0),
        ("xx", 0),
        ("xx=", 3),
        ("x===", 1),
        ("xxxx!", 4),
        ("xx==x", 4),
        ("xx=x", 2),
        ("ééé", 0),
        ("YWJj\nx", 5),
    ],
)
def test_the_fault_names_the_byte_that_go_names(text, offset):
    with pytest.raises(BuiltinError, match=f"^illegal base64 data at input byte {offset}$"):
        strict_base64.decode(text)


def test_line_ends_are_skipped_and_loose_bits_forgiven():
    assert strict_base64.decode("YW\r\nJj") == b"abc"
    assert strict_base64.decode("YR==") == b"a"


def test_base64url_may_lack_its_padding():
    assert strict_base64.decode_url("-_8") == b"\xfb\xff"
    with pytest.raises(BuiltinError, match="illegal base64url string: abcde"):
        strict_base64.decode_url("abcde")
