"""The reports of ``waddle audit``."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.formats.document import as_json, as_yaml
from webhook.cli.formats.finding import (
    Report,
    ShownFinding,
    exception_of,
    exception_until,
    excused_finding,
    level_of,
    place_in_cluster,
    shown_resource,
)
from webhook.cli.formats.github import as_github
from webhook.cli.formats.junit import as_junit
from webhook.cli.formats.sarif import as_sarif
from webhook.cli.table import table
from webhook.cli.terminal import styled
from webhook.constraint.description import described
from webhook.printable import one_line, printable_name, quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cli.audit.run import AuditedViolation, AuditOutcome
    from webhook.constraint.result import Result


def missing(outcome: AuditOutcome) -> list[str]:
    """Returns the parts that could not be audited, a line for each."""
    lines = [f"policy not used: {fault}" for fault in outcome.faults]
    end = outcome.ended
    if end is None:
        return lines
    lines += [f"audited in part: {gvk}: {reason}" for gvk, reason in sorted(end.failed.items())]
    lines += [f"no right to list: {gvk}" for gvk in sorted(end.unreadable)]
    if end.left_out:
        lines.append(f"could not be audited: {quantity(end.left_out, 'object')}")
    if end.stranded:
        lines.append(
            f"not audited because the Namespace does not exist: {quantity(end.stranded, 'object')}"
        )
    lines += [f"its total is not known: {kind}/{name}" for kind, name in sorted(end.undecided)]
    return lines


def as_table(outcome: AuditOutcome, limit: int) -> str:
    """Returns the violations by constraint and the totals of the constraints, for people."""
    lines: list[str] = []
    for key, findings in _by_constraint(outcome):
        kind, name = key
        action = ",".join(
            dict.fromkeys(action for finding in findings for action in finding.result.actions)
        )
        title = f"{kind}/{name} ({action}): {quantity(len(findings), 'violation')}"
        lines.append(styled(printable_name(title), bold=True))
        shown = findings[:limit] if limit else findings
        cells = [_cells(finding) for finding in shown]
        lines += [f"  {line}" for line in table(cells)]
        if more := len(findings) - len(shown):
            lines.append(f"  … and {more} more (--limit)")
    if excused := outcome.excused:
        lines.append(styled(f"excused: {quantity(len(excused), 'violation')}", bold=True))
        shown = excused[:limit] if limit else excused
        lines += [f"  {line}" for line in table([_excused_cells(finding) for finding in shown])]
        if limit and (more := len(excused) - limit) > 0:
            lines.append(f"  … and {more} more (--limit)")
    return "\n".join([*lines, summary(outcome)])


def _cells(finding: AuditedViolation) -> tuple[str, ...]:
    """Returns a row about a violation: object and message, and the exception that weakened it."""
    result = finding.result
    exception = exception_until(result)
    weakened = f"{','.join(result.actions)}: {exception}"
    return (
        _resource(finding),
        one_line(result.msg),
        f"({weakened})" if exception else "",
    )


def _excused_cells(finding: AuditedViolation) -> tuple[str, ...]:
    """Returns a row about an excused violation: object, constraint, message, and exception."""
    result = finding.result
    by = "" if result.excuse is None else result.excuse.title
    return (
        _resource(finding),
        "/".join(result.constraint.key),
        one_line(result.msg),
        f"({printable_name(by)})",
    )


def summary(outcome: AuditOutcome) -> str:
    """Returns the number of violations and of reviewed objects."""
    violated = sum(count.total > 0 for count in outcome.totals.values())
    reviewed = 0 if outcome.ended is None else outcome.ended.reviewed
    end = outcome.ended
    left_out = 0 if end is None else end.left_out + end.stranded
    excused = f", {len(outcome.excused)} more excused" if outcome.excused else ""
    unaudited = f" ({left_out} more could not be audited)" if left_out else ""
    of_constraints = (
        f"; {violated} of {quantity(len(outcome.totals), 'constraint')} violated"
        if outcome.totals
        else ""
    )
    return (
        f"{quantity(len(outcome.findings), 'violation')} in {quantity(reviewed, 'reviewed object')}"
        f"{excused}{unaudited}{of_constraints}"
    )


def document_of(outcome: AuditOutcome) -> dict[str, Any]:
    """Returns all results: the total of each constraint, and each complete violation."""
    end = outcome.ended
    assert end is not None
    return {
        "auditTimestamp": end.audit_id,
        "policyDigest": end.snapshot.digest,
        "reviewed": end.reviewed,
        "leftOut": end.left_out,
        "stranded": end.stranded,
        "totals": [
            {"kind": kind, "name": name, "totalViolations": count.total}
            for (kind, name), count in sorted(outcome.totals.items())
        ],
        "violations": [_document(finding) for finding in outcome.findings],
        "excused": [_document(finding) for finding in outcome.excused],
        "faults": outcome.faults,
        "failed": {str(gvk): reason for gvk, reason in sorted(end.failed.items())},
        "unreadable": [str(gvk) for gvk in sorted(end.unreadable)],
        "undecided": [{"kind": kind, "name": name} for kind, name in sorted(end.undecided)],
    }


def report(outcome: AuditOutcome) -> Report:
    """Returns the results for SARIF, JUnit and annotations."""
    assert outcome.ended is not None
    rules = {constraint.key for constraint in outcome.ended.snapshot.constraints}
    return Report(
        [f"{kind}/{name}" for kind, name in sorted({*rules, *outcome.totals})],
        [_finding(item) for item in outcome.findings],
        missing(outcome),
        {
            "/".join(key): description
            for key, description in described(outcome.ended.snapshot).items()
        },
        [excused_finding(_finding(item), item.result) for item in outcome.excused],
    )


def _finding(item: AuditedViolation) -> ShownFinding:
    identity, result = item.identity, item.result
    return ShownFinding(
        rule="/".join(result.constraint.key),
        level=level_of(result.actions),
        label=",".join(result.actions),
        subject=_resource(item),
        message=result.msg,
        exception=exception_of(result),
        place=place_in_cluster(
            identity.api_version, identity.kind, identity.namespace, identity.name
        ),
    )


def _by_constraint(outcome: AuditOutcome) -> list[tuple[tuple[str, str], list[AuditedViolation]]]:
    """Returns the findings by constraint, sorted."""
    return [
        (key, list(findings))
        for key, findings in groupby(outcome.findings, key=lambda item: item.result.constraint.key)
    ]


def _resource(finding: AuditedViolation) -> str:
    """``apps/v1/Deployment payments/web``."""
    identity = finding.identity
    return shown_resource(identity.api_version, identity.kind, identity.namespace, identity.name)


def _document(finding: AuditedViolation) -> dict[str, Any]:
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
        **_exception(result),
    }


def _exception(result: Result) -> dict[str, Any]:
    """Returns the exception that excuses a violation, or weakened its action."""
    excuse = result.excuse
    if excuse is None:
        return {}
    fields = {"title": excuse.title, "effect": excuse.effect, "expires": excuse.expires}
    return {"exception": {field: text for field, text in fields.items() if text}}


FORMATS: Final[dict[str, Callable[[AuditOutcome], str]]] = {
    "json": lambda outcome: as_json(document_of(outcome)),
    "yaml": lambda outcome: as_yaml(document_of(outcome)),
    "sarif": lambda outcome: as_sarif(report(outcome)),
    "junit": lambda outcome: as_junit(report(outcome)),
    "github": lambda outcome: "\n".join((as_github(report(outcome)), summary(outcome))).lstrip(),
}
