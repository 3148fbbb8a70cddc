"""Workflow commands of GitHub's actions: each finding is an annotation of its file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.printable import without_controls

if TYPE_CHECKING:
    from webhook.cli.formats.finding import Level, Report, ShownFinding

_COMMANDS: Final[dict[Level, str]] = {"error": "error", "warning": "warning", "note": "notice"}

_ORDER: Final = tuple(_COMMANDS)


def as_github(report: Report) -> str:
    """Returns the severest first: a run shows ten annotations of each command and step at most.

    Excused violations are notices.
    """
    ordered = sorted([*report.findings, *report.excused], key=lambda item: _ORDER.index(item.level))
    lines = [f"::error title=waddle::{_data(line)}" for line in report.missing]
    return "\n".join([*lines, *map(_annotation, ordered)])


def _annotation(finding: ShownFinding) -> str:
    place = f"file={_property(finding.file)},line={finding.line}," if finding.file else ""
    title = _property(f"{finding.rule} ({finding.label})")
    return (
        f"::{_COMMANDS[finding.level]} {place}title={title}::"
        f"{_data(f'{finding.subject}: {finding.text}')}"
    )


def _data(text: str) -> str:
    # A line of a message that begins with two colons would be a command of the policy's.
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return without_controls(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
