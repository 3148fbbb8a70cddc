"""JUnit's XML of findings: a testsuite for each rule, a failed testcase for each finding."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET  # only written, never parsed
from typing import TYPE_CHECKING, Final

from webhook.printable import printable_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cli.formats.finding import Report, ShownFinding

# Characters that XML 1.0 cannot contain, not even escaped.
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report) -> str:
    """Returns a passed test for a rule without violations; unreviewed inputs are errors."""
    by_rule: dict[str, list[ShownFinding]] = {rule: [] for rule in sorted(report.rules)}
    for finding in report.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    root = ET.Element(
        "testsuites",
        tests=str(sum(max(1, len(findings)) for findings in by_rule.values())),
        failures=str(len(report.findings)),
        errors=str(len(report.missing)),
    )
    for rule, findings in by_rule.items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=xml_text(rule),
            tests=str(max(1, len(findings))),
            failures=str(len(findings)),
        )
        if not findings:
            ET.SubElement(suite, "testcase", name="every object", classname=xml_text(rule))
        for finding in findings:
            _add_failure(suite, finding)
    add_missing(root, report.missing)
    return document_text(root)


def add_missing(root: ET.Element, missing: Sequence[str]) -> None:
    """Adds each unreviewed input as an error."""
    if not missing:
        return
    count = str(len(missing))
    suite = ET.SubElement(root, "testsuite", name="not reviewed", tests=count, errors=count)
    for line in missing:
        case = ET.SubElement(suite, "testcase", name=xml_text(line), classname="waddle")
        ET.SubElement(case, "error", message=xml_text(line))


def _add_failure(suite: ET.Element, finding: ShownFinding) -> None:
    case = ET.SubElement(
        suite, "testcase", name=xml_text(finding.subject), classname=xml_text(finding.rule)
    )
    if finding.file:
        case.set("file", xml_text(finding.file))
        case.set("line", str(finding.line))
    message = xml_text(finding.message)
    ET.SubElement(case, "failure", type=xml_text(finding.label), message=message).text = message


def document_text(root: ET.Element) -> str:
    """Returns the document, indented, with a declaration and printable text."""
    ET.indent(root)
    return printable_xml(ET.tostring(root, encoding="unicode", xml_declaration=True))


def xml_text(text: str) -> str:
    """Returns the text with U+FFFD for each character that XML cannot contain."""
    return _NOT_XML.sub("�", text)
