"""Formats a report for pipelines; each format is imported on use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.cli.formats.finding import Report
from webhook.cli.formats.words import Output, emit


def as_read_by(word: str, report: Report) -> str | None:
    """Returns the report as ``sarif``, ``junit`` or ``github``; None for other words."""
    match word:
        case "sarif":
            from webhook.cli.formats.sarif import as_sarif  # noqa: PLC0415  # each for itself

            return as_sarif(report)
        case "junit":
            from webhook.cli.formats.junit import as_junit  # noqa: PLC0415  # each for itself

            return as_junit(report)
        case "github":
            from webhook.cli.formats.github import as_github  # noqa: PLC0415  # each for itself

            return as_github(report)
    return None


def emit_refusal(outputs: Iterable[Output], lines: Sequence[str]) -> None:
    """Reports why nothing was checked in each format that can express it.

    A pipeline takes a missing or empty report for success, or shows the previous one.
    """
    for output in outputs:
        text = as_read_by(output.word, Report([], [], lines))
        if text is not None:
            emit(output, text)
