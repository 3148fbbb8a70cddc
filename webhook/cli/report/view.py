"""The output of ``waddle report``: text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.names import CLUSTER_WIDE
from webhook.cli.formats.document import as_json as document_json
from webhook.cli.table import table
from webhook.cli.terminal import styled
from webhook.printable import one_line, printable, quantity
from webhook.reports.confirmation import Confirmation, oldest
from webhook.reports.finding import VERDICTS, Policy, ReportSubject
from webhook.reports.summary import BAD, Counts, ReportSummary, in_order, severity_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    CountRows = list[tuple[str, Counts]]


NO_REPORTS = (
    "no policy reports were found: the audit writes them with --reports (chart: reports.audit=true)"
)
"""Printed where nothing says that reports are written: none is there, and no audit confirms any."""


def as_tables(summary: ReportSummary, top: int, confirmed: Sequence[Confirmation] = ()) -> str:
    """Returns the totals, their age, and the worst policies, namespaces and resources."""
    if not summary.total and not confirmed:
        return NO_REPORTS
    counts = ", ".join(f"{summary.total[verdict]} {verdict}" for verdict in VERDICTS)
    lines = [f"{counts}, of {quantity(len(summary.resources), 'resource')}"]
    lines += _confirmed(confirmed)
    if not any(summary.total[verdict] for verdict in BAD):
        return "\n".join([*lines, styled("no violations", fg="green")])
    tables: tuple[tuple[str, CountRows], ...] = (
        ("POLICY", [(policy_name(key), value) for key, value in summary.policies.items()]),
        ("NAMESPACE", [(key or CLUSTER_WIDE, value) for key, value in summary.namespaces.items()]),
        ("RESOURCE", [(resource_name(key), value) for key, value in summary.resources.items()]),
        (
            "POLICY IN NAMESPACE",
            [
                (f"{policy_name(policy)} in {namespace or CLUSTER_WIDE}", value)
                for (policy, namespace), value in summary.policy_namespaces.items()
            ],
        ),
    )
    for title, rows in tables:
        lines += ["", *_table(title, rows, top)]
    return "\n".join(lines)


def as_excused(summary: ReportSummary) -> str:
    """Returns a table of excused violations by exception, with the end of each exception."""
    if not summary.excused:
        return "no violation is excused"
    rows = sorted(
        (
            printable(excusal.exception),
            printable(excusal.expires) or "for ever",
            resource_name(subject),
            policy_name(Policy(excusal.policy, excusal.rule)),
            one_line(excusal.message),
        )
        for subject, excusal in summary.excused
    )
    counted = quantity(len(rows), "violation")
    exceptions = quantity(len({row[0] for row in rows}), "exception")
    cells = [["EXCEPTION", "UNTIL", "RESOURCE", "POLICY", "MESSAGE"], *map(list, rows)]
    return "\n".join([f"{counted} excused, by {exceptions}", "", *table(cells)])


def _confirmed(confirmations: Sequence[Confirmation]) -> list[str]:
    """Returns lines with the time of the audit that last confirmed the reports."""
    began = oldest(confirmations)
    if began is None:
        return []
    others = f", the oldest of {len(confirmations)}" if len(confirmations) > 1 else ""
    lines = [f"confirmed by the audit that began {printable(began.began)}{others}"]
    if kinds := sorted({kind for item in confirmations for kind in item.kinds}):
        lines.append(f"without these kinds, which it could not list: {printable(', '.join(kinds))}")
    if lost := sum(item.lost for item in confirmations):
        lines.append(f"without {quantity(lost, 'report')} that it could not write: see its log")
    return lines


def _table(title: str, rows: CountRows, top: int) -> list[str]:
    bad = [item for item in rows if any(item[1][verdict] for verdict in BAD)]
    bad.sort(key=lambda item: (severity_order(item[1]), item[0]))
    cells = [[title, *(verdict.upper() for verdict in BAD)]]
    cells += [[name, *(str(counts[verdict]) for verdict in BAD)] for name, counts in bad[:top]]
    lines = table(cells, right=range(1, len(cells[0])))
    if len(bad) > top:
        lines.append(f"and {len(bad) - top} more")
    return lines


def policy_name(policy: Policy) -> str:
    """Returns the kind and name of a constraint."""
    return f"{policy.kind}/{policy.name}" if policy.name else policy.kind


def resource_name(subject: ReportSubject) -> str:
    """Returns the kind, namespace and name of a resource."""
    place = f"{subject.namespace}/" if subject.namespace else ""
    return f"{subject.gvk.kind} {place}{subject.name}"


def as_json(summary: ReportSummary, confirmed: Sequence[Confirmation] = ()) -> str:
    """Returns the complete summary as JSON, the worst first."""
    document = {
        "total": in_order(summary.total),
        "policies": [
            {"policy": policy.kind, "rule": policy.name, **in_order(counts)}
            for policy, counts in _worst(summary.policies)
        ],
        "namespaces": [
            {"namespace": namespace, **in_order(counts)}
            for namespace, counts in _worst(summary.namespaces)
        ],
        "resources": [
            {
                "apiVersion": subject.gvk.group_version,
                "kind": subject.gvk.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
                **in_order(counts),
            }
            for subject, counts in _worst(summary.resources)
        ],
        "policyNamespaces": [
            {
                "policy": policy.kind,
                "rule": policy.name,
                "namespace": namespace,
                **in_order(counts),
            }
            for (policy, namespace), counts in _worst(summary.policy_namespaces)
        ],
        "excused": [
            {
                "exception": excusal.exception,
                "expires": excusal.expires,
                "reason": excusal.reason,
                "apiVersion": subject.gvk.group_version,
                "kind": subject.gvk.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "policy": excusal.policy,
                "rule": excusal.rule,
                "result": excusal.verdict,
                "message": excusal.message,
            }
            for subject, excusal in summary.excused
        ],
        "confirmed": [
            {
                "audit": item.audit,
                "began": item.began,
                "ended": item.ended,
                "kindsNotConfirmed": list(item.kinds),
                "reportsNotWritten": item.lost,
            }
            for item in sorted(confirmed, key=lambda item: item.audit)
        ],
    }
    return document_json(document)


def _worst(counts: Mapping[Any, Counts]) -> list[tuple[Any, Counts]]:
    return sorted(counts.items(), key=lambda item: (severity_order(item[1]), item[0]))
