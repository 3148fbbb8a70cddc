"""Go's strings, quoted as strconv does."""

import pytest

from webhook.golang.strings import from_utf8, quote, quote_ascii


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain é", '"plain é"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x01\x7f\u00a0\u2028", '"\\x01\\x7f\\u00a0\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        (from_utf8(b"\xff"), '"\\xff"'),
    ],
)
def test_a_quoted_string_is_gos(text, quoted):
    assert quote(text) == quoted


def test_a_string_quoted_in_ascii_has_no_other_characters():
    assert quote_ascii("aé日") == '"a\\u00e9\\u65e5"'
