"""Broken files of every format end in an error that names the line, in bounded time and memory."""

import contextlib

import pytest

from tests.webhook.parsers.broken_files import BROKEN
from webhook import parsers
from webhook.parsers.errors import ParseError


@pytest.mark.parametrize(("name", "text", "line"), BROKEN)
def test_a_broken_file_is_reported_with_its_line(name, text, line):
    with pytest.raises(ParseError) as error:
        parsers.parse(name, text.encode())

    assert error.value.line == line, str(error.value)
    assert error.value.message


BOMBS = {
    "yaml": "a: &a [x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghijk", "bcdefghijkl", strict=True)),
    "xml": '<!DOCTYPE a [<!ENTITY b "cccccccccccc">]><a>' + "&b;" * 1000 + "</a>",
}  # fmt: skip
DEEP = {
    "json": "[" * 100_000,
    "jsonc": "[" * 100_000,
    "yaml": "[" * 100_000,
    "toml": "a = " + "[" * 100_000,
    "xml": "<a>" * 100_000,
    "hocon": "a = " + "[" * 100_000,
    "hcl2": "a = " + "[" * 100_000,
    "hcl1": "a = " + "[" * 100_000,
    "edn": "[" * 100_000,
    "nginx": "a {" * 100_000,
    "jsonnet": "[" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_lines_do_not_become_gigabytes(name):
    with pytest.raises(ParseError):
        parsers.parse(name, BOMBS[name].encode())


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_without_end_is_refused(name):
    with pytest.raises((ParseError, RecursionError)):
        parsers.parse(name, DEEP[name].encode())


@pytest.mark.parametrize("name", parsers.names())
@pytest.mark.parametrize("raw", [b"\xff\xfe\x00\x01", b"\x00" * 100, b"\xc3(", b"a" * 200_000])
def test_bytes_of_no_format_end_in_a_value_or_an_error(name, raw):
    with contextlib.suppress(ParseError):  # any other exception fails
        parsers.parse(name, raw)
