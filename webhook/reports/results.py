"""From what a review found to findings: verdicts, and what constraints say about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.description import described
from webhook.reports.finding import RESULTS_MAX, Finding, bounded, settled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result, Undecided
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift
    from webhook.reports.finding import ReportResult

CATEGORY_BYTES_MAX: Final = 128

DRIFT_CATEGORY: Final = "mutation"
"""Of results that say what a mutator would change."""


class Descriptions:
    """Severity and category of constraints, looked up once for each snapshot."""

    __slots__ = ("_found", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._found: dict[tuple[str, str], tuple[str, str]] = {}

    def of(self, snapshot: Snapshot, constraint: Constraint) -> tuple[str, str]:
        """Severity and category; empty where nobody says."""
        if snapshot is not self._snapshot:
            self._snapshot, self._found = snapshot, _described(snapshot)
        return self._found.get(constraint.key, ("", ""))


def _described(snapshot: Snapshot) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        key: (one.severity, bounded(one.category, CATEGORY_BYTES_MAX))
        for key, one in described(snapshot).items()
    }


def findings_of(
    responses: Responses,
    snapshot: Snapshot,
    descriptions: Descriptions,
    stored: frozenset[ReportResult],
    selected: tuple[Iterable[Constraint], Iterable[Constraint]] = ((), ()),
    results_max: int | None = RESULTS_MAX,
    *,
    drifts: Iterable[Drift] = (),
) -> tuple[Finding, ...]:
    """The findings of a review whose verdict is ``stored``, settled.

    What mutators would change (``drifts``) is a warning by each.

    ``selected`` are the constraints that matched the resource and those that are
    about its kind and did not: they pass and are skipped. A review that ran out of
    time has no findings: the caller must not ask.
    """
    findings: list[Finding] = []
    if "warn" in stored:
        findings += [
            Finding(*drift.mutator, "warn", str(drift), category=DRIFT_CATEGORY) for drift in drifts
        ]
    for result in responses.results:
        verdict = verdict_of(result)
        if verdict in stored:
            severity, category = descriptions.of(snapshot, result.constraint)
            findings.append(
                Finding(
                    result.constraint.kind,
                    result.constraint.name,
                    verdict,
                    result.msg,
                    severity,
                    category,
                    ",".join(result.actions),
                )
            )
    violated = {result.constraint.key for result in responses.results}
    if "error" in stored:
        findings += [
            Finding(fault.kind or fault.target, "", "error", fault.message)
            for fault in responses.faults
        ]
        for item in responses.undecided:
            if item.constraint.key not in violated:
                severity, category = descriptions.of(snapshot, item.constraint)
                message = _why_undecided(item)
                kind, name = item.constraint.key
                findings.append(Finding(kind, name, "error", message, severity, category))
    matched, others = selected
    violated |= {item.constraint.key for item in responses.undecided}
    # A template that failed has said nothing about its constraints.
    faulty = {fault.kind for fault in responses.faults}
    silent: tuple[tuple[ReportResult, Iterable[Constraint]], ...] = (
        ("pass", matched),
        ("skip", others),
    )
    for verdict, constraints in silent:
        if verdict not in stored:
            continue
        for constraint in constraints:
            if constraint.key not in violated and constraint.kind not in faulty:
                severity, category = descriptions.of(snapshot, constraint)
                findings.append(
                    Finding(constraint.kind, constraint.name, verdict, "", severity, category)
                )
    return settled(findings, results_max)


_PASSING: Final = {
    "overrun": "not decided: its evaluation took too long",
    "suspended": "not decided: suspended, since its evaluations took too long",
    "deadline": "not decided: the time for the review ended",
    "object": "not decided: its review took too long",
}
"""What is said of an object that may be decided the next time: nothing that is another each time."""


def _why_undecided(item: Undecided) -> str:
    return _PASSING.get(item.cause) or f"not decided ({item.cause}): {item.message}"


def verdict_of(result: Result) -> ReportResult:
    """A violation fails, one that only warns warns; what could not be evaluated is an error.

    ``dryrun`` fails too: it is how a policy is tried, and its results are what people look for.
    """
    if result.cause != "violation":
        return "error"
    return "warn" if set(result.actions) == {"warn"} else "fail"
