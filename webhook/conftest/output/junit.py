"""Writes results as JUnit's XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.result import CheckResult

_ESCAPES: Final = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&#34;",
    "'": "&#39;",
    "\t": "&#x9;",
    "\n": "&#xA;",
    "\r": "&#xD;",
}
_SPECIAL: Final = re.compile("[&<>\"'\t\n\r]")
_NOT_ALLOWED: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(results: Sequence[CheckResult], options: OutputOptions) -> str:
    """Returns a suite for each namespace, and a case for each result."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    for result in results:
        cases = list(_cases(result, options))
        if cases:
            suites.setdefault(result.namespace, []).extend(cases)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    if not suites:
        return "\n".join([*lines, "<testsuites></testsuites>", ""])
    lines.append("<testsuites>")
    for namespace, cases in suites.items():
        lines += _suite(f"conftest.{namespace}", cases, options)
    return "\n".join([*lines, "</testsuites>", ""])


def _cases(result: CheckResult, options: OutputOptions) -> Iterator[tuple[str, str, str]]:
    """Yields the kind, name and message of each result."""
    for kind, findings in (
        ("failure", result.warnings),
        ("failure", result.failures),
        ("skipped", result.skipped),
    ):
        for one in findings:
            hidden = options.junit_hide_message or not one.message
            name = result.file if hidden else f"{result.file} - {one.message.split(chr(10))[0]}"
            yield kind, name, one.message
    for _ in range(result.successes):
        yield "", result.file, ""


def _suite(
    name: str, cases: Sequence[tuple[str, str, str]], options: OutputOptions
) -> Iterator[str]:
    failures = sum(1 for kind, _, _ in cases if kind == "failure")
    yield (
        f'\t<testsuite tests="{len(cases)}" failures="{failures}" time="0.000" '
        f'name="{_escaped(name)}">'
    )
    yield "\t\t<properties>"
    yield f'\t\t\t<property name="waddle.version" value="{_escaped(options.version)}"></property>'
    yield "\t\t</properties>"
    class_name = name.rpartition("/")[2]
    for kind, title, message in cases:
        opening = f'\t\t<testcase classname="{_escaped(class_name)}" name="{_escaped(title)}" time="0.000">'
        if not kind:
            yield f"{opening}</testcase>"
            continue
        yield opening
        if kind == "failure":
            yield f'\t\t\t<failure message="Failed" type="">{_escaped(message)}</failure>'
        else:
            yield f'\t\t\t<skipped message="{_escaped(message)}"></skipped>'
        yield "\t\t</testcase>"
    yield "\t</testsuite>"


def _escaped(text: str) -> str:
    """Returns a text escaped like Go's ``xml.EscapeText``."""
    allowed = _NOT_ALLOWED.sub("\ufffd", text)
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], allowed)
