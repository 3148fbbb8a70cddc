"""Source text to tokens, rows and columns."""

import pytest

from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.lexer import Source, SourceLocation, tokenize


def kinds(text):
    """The kinds of tokens of a text, the end left out."""
    return tokenize(Source("", text), t.KEYWORDS).kinds[:-1]


def test_punctuation_that_touches_the_token_before_is_distinguished():
    """A space or a new line before `[`, `(` or `.` ends a reference."""
    assert kinds("x[0]") == [t.IDENT, t.LBRACK_ATTACHED, t.NUMBER, t.RBRACK]
    assert kinds("x [0]") == [t.IDENT, t.LBRACK, t.NUMBER, t.RBRACK]
    assert kinds("x\n(y)") == [t.IDENT, t.LPAREN, t.IDENT, t.RPAREN]
    assert kinds("x # y\n.z") == [t.IDENT, t.DOT, t.IDENT]


def test_tokens_that_begin_a_line_are_known():
    """Comments and blank lines between do not count as tokens."""
    found = tokenize(Source("", "a # one\n\n  b c\n#two\nd"), t.KEYWORDS)
    assert found.newlines == {1, 3}
    assert [text for _, text in found.comments] == [" one", "two"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"abc', "non-terminated string"),
        ("`abc", "non-terminated string"),
        (r'"\q"', "illegal escape sequence"),
        ('$"abc', "non-terminated string"),
        (r'$"\q"', "illegal escape sequence"),
        ("1.", "expected fraction"),
        ("1e", "expected exponent"),
        ("0a2b", "illegal number format"),
        ("!x", "illegal ! character"),
        ("$x", "illegal $ character"),
        ("\0", "illegal null character"),
        ("a\ufeff", "illegal byte-order mark"),
        ('x "a\ufeffb"', "illegal byte-order mark"),
        ("x # a\ufeffb\ny", "illegal byte-order mark"),
        ("x `a\0b`", "illegal null character"),
        ('"\udcff"', "illegal utf-8 character"),
        ("\udcff", "illegal utf-8 character"),
        ('$"a\udcff{1}"', "illegal utf-8 character"),
        ("\xa0", "illegal non-breaking space character, use a regular space instead"),
    ],
)
def test_what_is_no_token_is_named(text, complaint):
    """The text of an illegal token is OPA's complaint about it."""
    found = tokenize(Source("", text), t.KEYWORDS)
    assert complaint in [
        text for kind, text in zip(found.kinds, found.texts, strict=True) if kind == t.ILLEGAL
    ]


def test_braces_within_a_template_expression_do_not_end_it():
    """The expression ends with the brace that matches its beginning."""
    assert kinds('$"a {{"b": {1}}} c"') == [
        t.TEMPLATE_PART,
        t.LBRACE,
        t.STRING,
        t.COLON,
        t.LBRACE,
        t.NUMBER,
        t.RBRACE,
        t.RBRACE,
        t.RBRACE,
        t.TEMPLATE_END,
    ]


def test_a_template_within_a_template_is_read_whole():
    """Each brace belongs to the innermost template."""
    assert kinds('$"a {$`b {c} {d}`} e"') == [
        t.TEMPLATE_PART,
        t.RAW_TEMPLATE_PART,
        t.IDENT,
        t.RBRACE,
        t.RAW_TEMPLATE_PART,
        t.IDENT,
        t.RBRACE,
        t.RAW_TEMPLATE_END,
        t.RBRACE,
        t.TEMPLATE_END,
    ]


def test_a_location_knows_its_row_column_and_text():
    """Rows and columns count characters from 1."""
    source = Source("f.rego", "é = 1\n\tb = 2\n")
    place = SourceLocation(source, 7, 8)
    assert (place.file, place.row, place.col, place.text) == ("f.rego", 2, 2, "b")
    assert str(place) == "f.rego:2"
    assert str(SourceLocation(Source("", "a"), 0, 1)) == "1:1"


def test_a_byte_order_mark_at_the_beginning_is_skipped():
    """Editors write it; it is no text."""
    assert kinds("\ufeffx") == [t.IDENT]
