"""Output controls neither a terminal nor a pipeline."""

from __future__ import annotations

import errno
from xml.etree import ElementTree as ET

import pytest

from webhook.cli.formats.document import as_yaml
from webhook.cli.table import table
from webhook.conftest.output import FORMATS, OutputOptions, written
from webhook.conftest.result import CheckResult, RuleResult
from webhook.printable import printable, printable_name, printable_xml, reason_of

HOSTILE = "a\n::error::x\r\n  ##vso[task.x]y\n##[group]z\x1b[31m"


def commands(text):
    """The lines that a pipeline takes for commands, as it trims them."""
    lines = text.replace("\r", "\n").split("\n")
    return [line for line in lines if line.strip().startswith(("::error", "##vso[task.x", "##[gr"))]


def test_no_line_begins_as_a_command():
    assert printable("::error::x\n b") == "\\x3a:error::x\n b"
    assert commands(printable(HOSTILE)) == []
    assert "\n" not in printable_name(HOSTILE)
    assert printable("a::b\n# c\nd: e") == "a::b\n# c\nd: e"


def test_neither_does_one_of_yaml_xml_or_a_table():
    assert commands(as_yaml({"a": HOSTILE})) == []
    xml = printable_xml(f"<a>{HOSTILE[:-5]}</a>")
    assert commands(xml) == []
    assert ET.fromstring(xml).text == HOSTILE[:-5]
    assert len(table([["a", HOSTILE]])) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_nor_of_any_form_of_conftest(form):
    result = CheckResult(HOSTILE, "main", failures=[RuleResult(HOSTILE)])
    shown = written(form, [result], OutputOptions(color=False))
    own = {"azuredevops": "##vso[task.logissue", "github": "::error file="}.get(form, "none")
    assert "\x1b" not in shown
    assert [
        line
        for line in commands(shown)
        if own not in line and line != "##[group]See conftest results"
    ] == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
            "No such file or directory",
        ),
        (OSError(errno.ECONNREFUSED, "Connect call failed ('::1', 1, 0, 0)"), "Connection refused"),
        (
            OSError(
                1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: expired (_ssl.c:9)"
            ),
            "certificate verify failed: expired",
        ),
        (
            UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "?"),
            "not UTF-8 at byte 1: save the file as UTF-8",
        ),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (ValueError("it is no number"), "it is no number"),
    ],
)
def test_a_reason_has_no_words_of_python(error, reason):
    assert reason_of(error) == reason
