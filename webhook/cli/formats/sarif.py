"""SARIF 2.1.0, with every property that GitHub's code scanning requires.

Excused violations are notes of the run: code scanning opens an alert for every result, even for one
with ``suppressions``.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from webhook import __version__
from webhook.cli.formats.document import as_json

if TYPE_CHECKING:
    from webhook.cli.formats.finding import Report, ShownFinding
    from webhook.constraint.description import Description

_SCORES: Final = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0", "info": "0.0"}
"""The middle of GitHub's range of each severity (code scanning)."""

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(report: Report) -> str:
    """Returns a rule for each constraint or test, and a result for each finding."""
    rules = list(dict.fromkeys([*report.rules, *(item.rule for item in report.findings)]))
    index = {rule: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "waddle",
                "version": __version__,
                "rules": [_rule(rule, report.descriptions.get(rule)) for rule in rules],
            }
        },
        "results": [_result(item, index[item.rule]) for item in report.findings],
        "invocations": [
            {
                "executionSuccessful": not report.missing,
                "toolExecutionNotifications": [
                    *({"level": "error", "message": {"text": line}} for line in report.missing),
                    *map(_note, report.excused),
                ],
            }
        ],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _note(finding: ShownFinding) -> dict[str, Any]:
    text = f"{finding.subject}: {finding.rule}: {finding.text}"
    return {"level": "note", "message": {"text": text}}


def _rule(rule: str, described: Description | None) -> dict[str, Any]:
    kind, _, name = rule.partition("/")
    name = f"{kind} {name}" if name else kind
    title = (described and described.title) or name
    text = (described and described.description) or f"{title}, as {name} has it."
    shown: dict[str, Any] = {
        "id": rule,
        "name": kind,
        "shortDescription": {"text": title},
        "fullDescription": {"text": text},
        "help": {"text": text},
        "defaultConfiguration": {"level": "error"},
    }
    properties: dict[str, Any] = {}
    if described and described.severity:
        properties["security-severity"] = _SCORES[described.severity]
    if described and described.category:
        properties["tags"] = [described.category]
    return {**shown, "properties": properties} if properties else shown


def _result(finding: ShownFinding, rule: int) -> dict[str, Any]:
    # Objects of a cluster are no files: readers require a path, so a synthetic path is beside the
    # logical location.
    line = finding.line if finding.file else 1
    region = {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        # SARIF readers refuse an empty message.
        "message": {"text": finding.text or finding.rule},
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
    """Returns the path relative to the working folder if below it: readers take that as root."""
    if os.path.isabs(path):  # noqa: PTH117  # a string is at hand
        below = os.path.relpath(path)
        if below.startswith(".."):
            return "file://" + quote(path)
        path = below
    return quote(os.path.normpath(path))
