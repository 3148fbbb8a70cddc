"""Base64 with Go's idea of what is wrong, and where."""

import pytest

from webhook.rego.builtins import operands
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
        operands.decode_base64(text)


def test_line_ends_are_skipped_and_loose_bits_forgiven():
    assert operands.decode_base64("YW\r\nJj") == b"abc"
    assert operands.decode_base64("YR==") == b"a"


def test_base64url_may_lack_its_padding():
    assert operands.decode_base64url("-_8") == b"\xfb\xff"
    with pytest.raises(BuiltinError, match="illegal base64url string: abcde"):
        operands.decode_base64url("abcde")
