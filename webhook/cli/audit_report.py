"""The reports of ``waddle audit``: a table, JSON, SARIF and JUnit's XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET  # only written, never parsed
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from webhook import __version__
from webhook.api.encoding import encode
from webhook.cli.terminal import printable, styled
from webhook.cli.verify_report import xml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.cli.audit_run import Finding, Outcome

_LEVELS: Final = {"deny": "error", "warn": "warning", "dryrun": "note"}
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def missing(outcome: Outcome) -> list[str]:
    """What could not be audited, a line for each."""
    lines = [f"policy not used: {fault}" for fault in outcome.faults]
    end = outcome.ended
    if end is None:
        return lines
    lines += [f"not wholly audited: {gvk}: {reason}" for gvk, reason in sorted(end.failed.items())]
    lines += [f"no right to list: {gvk}" for gvk in sorted(end.unreadable)]
    lines += [f"no total can be told: {kind}/{name}" for kind, name in sorted(end.undecided)]
    return lines


def as_table(outcome: Outcome, limit: int) -> str:
    """For people: the violations by constraint, then each constraint's total."""
    lines: list[str] = []
    for key, findings in _by_constraint(outcome):
        kind, name = key
        action = ",".join(findings[0].result.actions)
        title = f"{kind}/{name} ({action}): {len(findings)} violations"
        lines.append(styled(printable(title), bold=True))
        shown = findings[:limit] if limit else findings
        width = max(len(_resource(finding)) for finding in shown)
        lines += [
            f"  {printable(_resource(finding)):<{width}}  {printable(_line(finding.result.msg))}"
            for finding in shown
        ]
        if more := len(findings) - len(shown):
            lines.append(f"  … and {more} more (--limit)")
    clean = sum(not count.total for count in outcome.totals.values())
    reviewed = 0 if outcome.ended is None else outcome.ended.reviewed
    lines.append(
        f"{len(outcome.findings)} violations in {reviewed} objects; "
        f"{clean} of {len(outcome.totals)} constraints are not violated"
    )
    return "\n".join(lines)


def as_json(outcome: Outcome) -> str:
    """Everything: totals of each constraint, and each violation whole."""
    end = outcome.ended
    assert end is not None
    document: dict[str, Any] = {
        "auditTimestamp": end.audit_id,
        "policyDigest": end.snapshot.digest,
        "reviewed": end.reviewed,
        "totals": [
            {"kind": kind, "name": name, "totalViolations": count.total}
            for (kind, name), count in sorted(outcome.totals.items())
        ],
        "violations": [_document(finding) for finding in outcome.findings],
        "faults": outcome.faults,
        "failed": {str(gvk): reason for gvk, reason in sorted(end.failed.items())},
        "unreadable": [str(gvk) for gvk in sorted(end.unreadable)],
        "undecided": [{"kind": kind, "name": name} for kind, name in sorted(end.undecided)],
    }
    return encode(document, indent=True).decode()


def as_sarif(outcome: Outcome) -> str:
    """SARIF 2.1.0: a rule for each constraint, a result for each violation.

    Objects of a cluster are no files: a made-up path stands in the place that
    readers of SARIF ask for, beside the logical location that says what it is.
    """
    assert outcome.ended is not None
    rules = [
        {"id": f"{kind}/{name}", "name": kind, "shortDescription": {"text": f"{kind} {name}"}}
        for kind, name in sorted({constraint.key for constraint in _constraints(outcome)})
    ]
    run = {
        "tool": {"driver": {"name": "waddle", "version": __version__, "rules": rules}},
        "results": [_sarif_result(finding) for finding in outcome.findings],
        "invocations": [
            {
                "executionSuccessful": outcome.whole,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": line}} for line in missing(outcome)
                ],
            }
        ],
    }
    return encode({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=True).decode()


def as_junit(outcome: Outcome) -> str:
    """JUnit's XML: a testsuite for each constraint, a failed testcase for each violation."""
    root = ET.Element(
        "testsuites",
        tests=str(len(outcome.findings) + sum(not c.total for c in outcome.totals.values())),
        failures=str(len(outcome.findings)),
        errors=str(len(missing(outcome))),
    )
    found = dict(_by_constraint(outcome))
    for kind, name in sorted({*found, *outcome.totals}):
        findings = found.get((kind, name), [])
        label = f"{kind}/{name}"
        suite = ET.SubElement(
            root,
            "testsuite",
            name=xml_text(label),
            tests=str(max(1, len(findings))),
            failures=str(len(findings)),
        )
        if not findings:
            ET.SubElement(suite, "testcase", name="every object", classname=xml_text(label))
        for finding in findings:
            case = ET.SubElement(
                suite, "testcase", name=xml_text(_resource(finding)), classname=xml_text(label)
            )
            message = xml_text(finding.result.msg)
            kind_ = ",".join(finding.result.actions)
            ET.SubElement(case, "failure", type=xml_text(kind_), message=message).text = message
    if lines := missing(outcome):
        suite = ET.SubElement(
            root, "testsuite", name="audit", tests=str(len(lines)), errors=str(len(lines))
        )
        for line in lines:
            case = ET.SubElement(suite, "testcase", name=xml_text(line), classname="audit")
            ET.SubElement(case, "error", message=xml_text(line))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _constraints(outcome: Outcome) -> Iterator[Any]:
    assert outcome.ended is not None
    yield from outcome.ended.snapshot.constraints


def _by_constraint(outcome: Outcome) -> list[tuple[tuple[str, str], list[Finding]]]:
    """The findings by constraint; they are in this order."""
    return [
        (key, list(findings))
        for key, findings in groupby(outcome.findings, key=lambda item: item.result.constraint.key)
    ]


def _resource(finding: Finding) -> str:
    """``apps/v1/Deployment payments/web``."""
    identity = finding.identity
    name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    return f"{identity.api_version}/{identity.kind} {name}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _document(finding: Finding) -> dict[str, Any]:
    identity, result = finding.identity, finding.result
    return {
        "constraint": {"kind": result.constraint.kind, "name": result.constraint.name},
        "enforcementAction": result.enforcement_action,
        "enforcementActions": list(result.actions),
        "resource": {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "namespace": identity.namespace,
            "name": identity.name,
            "uid": identity.uid,
        },
        "message": result.msg,
        "details": result.details,
        "cause": result.cause,
    }


def _sarif_result(finding: Finding) -> dict[str, Any]:
    identity, result = finding.identity, finding.result
    path = "/".join(filter(None, (identity.namespace, identity.kind, identity.name)))
    uri = f"cluster/{identity.api_version}/{path}"
    levels = [_LEVELS.get(action, "none") for action in result.actions]
    return {
        "ruleId": f"{result.constraint.kind}/{result.constraint.name}",
        "level": next((level for level in _LEVELS.values() if level in levels), "none"),
        "message": {"text": result.msg},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": _resource(finding), "kind": "resource"}
                ],
            }
        ],
        "partialFingerprints": {"resource/v1": f"{identity.uid or uri}"},
    }


FORMATS: Final[dict[str, Callable[[Outcome], str]]] = {
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
}
