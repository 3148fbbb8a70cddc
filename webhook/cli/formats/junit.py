"""JUnit's XML of findings: a testsuite for each rule, a failed testcase for each finding.

An excused violation is a skipped testcase.
"""

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
    excused: dict[str, list[ShownFinding]] = {}
    for finding in report.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for finding in report.excused:
        by_rule.setdefault(finding.rule, [])
        excused.setdefault(finding.rule, []).append(finding)
    root = ET.Element(
        "testsuites",
        tests=str(
            sum(
                max(1, len(findings) + len(excused.get(rule, ())))
                for rule, findings in by_rule.items()
            )
        ),
        failures=str(len(report.findings)),
        errors=str(len(report.missing)),
    )
    if report.excused:
        root.set("skipped", str(len(report.excused)))
    for rule, findings in by_rule.items():
        _add_suite(root, rule, findings, excused.get(rule, ()))
    add_missing(root, report.missing)
    return document_text(root)


def _add_suite(
    root: ET.Element, rule: str, findings: Sequence[ShownFinding], excused: Sequence[ShownFinding]
) -> None:
    """Adds a rule's tests: one that passes where it found nothing, excused or not."""
    suite = ET.SubElement(
        root,
        "testsuite",
        name=xml_text(rule),
        tests=str(max(1, len(findings) + len(excused))),
        failures=str(len(findings)),
    )
    if excused:
        suite.set("skipped", str(len(excused)))
    if not (findings or excused):
        ET.SubElement(suite, "testcase", name="every object", classname=xml_text(rule))
    for finding in findings:
        _add_failure(suite, finding)
    for finding in excused:
        ET.SubElement(_case(suite, finding), "skipped", message=xml_text(finding.text))


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
    message = xml_text(finding.text)
    failure = ET.SubElement(
        _case(suite, finding), "failure", type=xml_text(finding.label), message=message
    )
    failure.text = message


def _case(suite: ET.Element, finding: ShownFinding) -> ET.Element:
    case = ET.SubElement(
        suite, "testcase", name=xml_text(finding.subject), classname=xml_text(finding.rule)
    )
    if finding.file:
        case.set("file", xml_text(finding.file))
        case.set("line", str(finding.line))
    return case


def document_text(root: ET.Element) -> str:
    """Returns the document, indented, with a declaration and printable text."""
    ET.indent(root)
    return printable_xml(ET.tostring(root, encoding="unicode", xml_declaration=True))


def xml_text(text: str) -> str:
    """Returns the text with U+FFFD for each character that XML cannot contain."""
    return _NOT_XML.sub("�", text)
