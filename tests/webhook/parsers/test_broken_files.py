"""Broken files of every format end in an error that names the line, in bounded time and memory."""

import contextlib

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

BROKEN = [
    ("json", '{"a": 1,\n"b" 2}', 2),
    ("json", '{"a":\n', 2),
    ("json", "[NaN]", 0),
    ("jsonc", '{\n"a": /* 1', 2),
    ("yaml", "a: 1\nb: [\n", 3),
    ("yaml", "a: 1\n---\nb: 2\nc: *d\n", 4),
    ("yaml", "a: &x\n  b: *x\n", 2),
    ("yaml", "{[a]: 1}\n", 1),
    ("toml", "a = 1\nb =\n", 2),
    ("ini", "[a]\nb\n", 2),
    ("ini", "[a\n", 1),
    ("dotenv", "A=1\nB\n", 2),
    ("dotenv", 'A=1\nB="x\n', 2),
    ("properties", "a=1\nb=\\u12\n", 2),
    ("xml", "<a>\n<b></a>\n", 2),
    ("xml", '<!DOCTYPE a [\n<!ENTITY b "c">\n]><a>&b;</a>', 2),
    ("hocon", "a {\n b = 1\n", 3),
    ("hocon", "a {\n b = ${c}\n}", 2),
    ("hcl2", "a = 1\nb = \n", 2),
    ("hcl2", 'a "b" {\n c = 1\n', 3),
    ("hcl2", "a = 1\na = 2\n", 2),
    ("hcl2", 'a = 1\nb = "x\n', 2),
    ("hcl1", "a = 1\nb = [\n", 3),
    ("edn", "{:a 1\n :b}", 1),
    ("edn", "[1\n2", 1),
    ("edn", "{:a\n:}", 2),
    ("edn", "::a", 1),
    ("dockerfile", "FROM a\nZORK b\n", 2),
    ("dockerfile", "FROM a\nRUN <<E\nx\n", 2),
    ("dockerfile", "", 1),
    ("dockerfile", "FROM a\nSHELL b\n", 2),
    ("dockerfile", "FROM a\nHEALTHCHECK --interval=1 CMD b\n", 2),
    ("dockerfile", "FROM a\nHEALTHCHECK NONE b\n", 2),
    ("dockerfile", "FROM a\nHEALTHCHECK --retries=-1 CMD b\n", 2),
    ("dockerfile", "FROM a\nCOPY --zork=b c d\n", 2),
    ("dockerfile", "FROM a\nCOPY --from=b --from=c d e\n", 2),
    ("dockerfile", "FROM a\nCOPY --link=b c d\n", 2),
    ("dockerfile", "FROM a\nRUN --network=b c\n", 2),
    ("dockerfile", "FROM a\nRUN --mount=type=cache,from=$b c\n", 2),
    ("dockerfile", "FROM a\nARG =b\n", 2),
    ("dockerfile", "FROM a\nENV =b\n", 2),
    ("dockerfile", 'FROM a\nVOLUME [""]\n', 2),
    ("dockerfile", "FROM a\nONBUILD ONBUILD RUN b\n", 2),
    ("dockerfile", "FROM a AS 1b\n", 1),
    ("properties", "a=1\n=2\n", 2),
    ("dotenv", "A=1\nB-C=2\n", 2),
    ("hcl2", "a {\n b = 1}\n", 2),
    ("hcl2", "a { b {} }\n", 1),
    ("hcl1", "a = 1\nb = [1 2]\n", 2),
    ("hcl1", "a = 1\nb c = 2\n", 2),
    ("hcl2", "a = 1\nb = [for c in d : c e]\n", 2),
    ("spdx", "SPDXVersion: SPDX-9.9\n", 1),
    ("spdx", "SPDXVersion: SPDX-2.3\nSPDXID: zork\n", 2),
    ("spdx", "SPDXVersion: SPDX-2.3\nCreator: zork\n", 2),
    ("codeowners", "# a\n*.go $b\n", 2),
    ("nginx", "a;\nb {\n", 3),
    ("spdx", "SPDXVersion: SPDX-2.3\nzork\n", 2),
    ("cyclonedx", '{"specVersion": "9"}', 1),
    ("cyclonedx", "<bom>\n", 2),
    ("jsonnet", "{\n a: b\n}", 2),
]


@pytest.mark.parametrize(("name", "text", "line"), BROKEN)
def test_a_broken_file_is_told_with_its_line(name, text, line):
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
