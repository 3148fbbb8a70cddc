"""Counts results by policy, namespace and resource, and in all; nothing is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from webhook.metrics.registry import OTHER
from webhook.reports.finding import VERDICTS, Finding, Policy, ReportResult, ReportSubject
from webhook.values import dataclass

Counts = Counter[ReportResult]

BAD: Final[tuple[ReportResult, ...]] = ("fail", "error", "warn")
"""The verdicts that rank policies, namespaces and resources, gravest first."""


def severity_order(counts: Counts) -> tuple[int, ...]:
    """Returns a sort key: most failures first, then errors, then warnings."""
    return tuple(-counts[verdict] for verdict in BAD)


@dataclass(slots=True)
class ReportSummary:
    """Counts of results; bounded by the number of resources with results."""

    total: Counts = field(default_factory=Counter)
    policies: defaultdict[Policy, Counts] = field(default_factory=lambda: defaultdict(Counter))
    namespaces: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counter))
    resources: defaultdict[ReportSubject, Counts] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    policy_namespaces: defaultdict[tuple[Policy, str], Counts] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    excused: list[tuple[ReportSubject, Finding]] = field(default_factory=list)
    """The findings that exceptions excuse or weaken."""

    def add(self, subject: ReportSubject, findings: Iterable[Finding]) -> None:
        """Counts the findings of a resource; "" is the namespace of cluster-wide kinds."""
        for finding in findings:
            policy, verdict = Policy(finding.policy, finding.rule), finding.verdict
            self.total[verdict] += 1
            if finding.exception:
                self.excused.append((subject, finding))
            self.policies[policy][verdict] += 1
            self.namespaces[subject.namespace][verdict] += 1
            self.resources[subject][verdict] += 1
            self.policy_namespaces[policy, subject.namespace][verdict] += 1


Series = dict[tuple[str, ...], float]


class ReportTally:
    """Counts of results by policy and namespace, for metrics: a bounded number of series."""

    def __init__(self, series_max: int) -> None:
        """``series_max`` bounds the pairs of policy and namespace; all others share one series."""
        self._max = series_max
        self._pairs: set[tuple[str, str, str]] = set()
        self.series: Series = {}

    def add(self, subject: ReportSubject, findings: Iterable[Finding]) -> None:
        """Counts the findings of a resource."""
        for finding in findings:
            pair = (finding.policy, finding.rule, subject.namespace)
            if pair not in self._pairs:
                if len(self._pairs) < self._max:
                    self._pairs.add(pair)
                else:
                    pair = ("", OTHER, "")
            labels = (*pair, finding.verdict)
            self.series[labels] = self.series.get(labels, 0) + 1


def merged(tallies: Iterable[ReportTally], series_max: int) -> Series:
    """Returns the sum of several tallies, with a bound of its own."""
    pairs: set[tuple[str, ...]] = set()
    series: Series = {}
    for tally in tallies:
        for (*pair, verdict), number in tally.series.items():
            labels = (*pair, verdict)
            if tuple(pair) not in pairs:
                if len(pairs) < series_max:
                    pairs.add(tuple(pair))
                else:
                    labels = ("", OTHER, "", verdict)
            series[labels] = series.get(labels, 0) + number
    return series


def in_order(counts: Counts) -> dict[str, int]:
    """Returns the counts of all verdicts, in the order of a report's summary."""
    return {verdict: counts[verdict] for verdict in VERDICTS}
