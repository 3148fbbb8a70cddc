"""Writes results as GitHub's workflow commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from webhook.conftest.result import PolicyPlace, totals
from webhook.printable import without_controls
from webhook.rego.run.text import json_string

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.conftest.output import OutputOptions
from webhook.conftest.result import CheckResult

_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}


def write(results: Sequence[CheckResult], options: OutputOptions) -> str:
    """Returns a group of annotations for each file and namespace, and the totals."""
    lines: list[str] = []
    for result in results:
        is_good = not (result.failures or result.warnings or result.exceptions or result.skipped)
        if not (options.github_hide_passed and is_good):
            lines += _group(result)
    return "".join(f"{line}\n" for line in [*lines, str(totals(results))])


def _group(result: CheckResult) -> Iterator[str]:
    here = PolicyPlace(result.file, "1")
    yield (
        f"::group::Testing {json_string(result.file)} against {result.totals.tests} policies "
        f"in namespace {json_string(result.namespace)}"
    )
    for level, findings in (
        ("error", result.failures),
        ("warning", result.warnings),
        ("notice", result.exceptions),
    ):
        for one in findings:
            yield from _annotations(level, here, one.place, one.message)
    for one in result.skipped:
        yield from _annotations("notice", here, one.place, f"Test was skipped: {one.message}")
    yield _annotation("notice", here, f"Number of successful checks: {result.successes}")
    yield "::endgroup::"


def _annotations(
    level: str, here: PolicyPlace, place: PolicyPlace | None, message: str
) -> Iterator[str]:
    if place is None or place.file == here.file:
        yield _annotation(level, place or here, message)
        return
    origin = PolicyPlace(_relative(place.file), place.line)
    yield _annotation(level, origin, message)
    yield _annotation(level, here, f"(ORIGINATING FROM {origin}) {message}")


def _annotation(level: str, place: PolicyPlace, message: str) -> str:
    file = "".join(_ESCAPES.get(character, character) for character in without_controls(place.file))
    # A line break in a message could begin another command.
    whole = without_controls(message.replace("\r", "%0D").replace("\n", "%0A"))
    return f"::{level} file={file},line={place.line}::{whole}"


def _relative(path: str) -> str:
    return os.path.relpath(path) if path.startswith("/") else path
