"""SARIF 2.1.0, with every property that GitHub's code scanning asks for."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from webhook import __version__
from webhook.cli.formats.document import as_json

if TYPE_CHECKING:
    from webhook.cli.formats.finding import Report, ShownFinding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(report: Report) -> str:
    """A rule for each constraint or test, a result for each finding."""
    rules = list(dict.fromkeys([*report.rules, *(item.rule for item in report.findings)]))
    index = {rule: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "waddle",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "results": [_result(item, index[item.rule]) for item in report.findings],
        "invocations": [
            {
                "executionSuccessful": not report.missing,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": line}} for line in report.missing
                ],
            }
        ],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: str) -> dict[str, Any]:
    kind, _, name = rule.partition("/")
    text = f"{kind} {name}" if name else kind
    return {
        "id": rule,
        "name": kind,
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text}: what it asks for is in its template and parameters."},
        "help": {"text": f"What {text} asks for is in its template and parameters."},
        "defaultConfiguration": {"level": "error"},
    }


def _result(finding: ShownFinding, rule: int) -> dict[str, Any]:
    # Objects of a cluster are no files: a made-up path stands in the place that readers of
    # SARIF ask for, beside the logical location that says what it is.
    line = finding.line if finding.file else 1
    region = {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        # An empty message is refused where SARIF is read.
        "message": {"text": finding.message or finding.rule},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.file or finding.place)},
                    "region": region,
                },
                "logicalLocations": [{"fullyQualifiedName": finding.subject, "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{finding.fingerprint}:1"},
    }


def _uri(path: str) -> str:
    """The path from the working folder, where it is below it: readers take that for the root."""
    if os.path.isabs(path):  # noqa: PTH117  # a string is at hand
        below = os.path.relpath(path)
        if below.startswith(".."):
            return "file://" + quote(path)
        path = below
    return quote(os.path.normpath(path))
