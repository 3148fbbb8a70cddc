"""From what a review found to findings: verdicts, and what constraints say about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.description import described
from webhook.reports.finding import RESULTS_MAX, Finding, bounded, settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result, Undecided
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift
    from webhook.reports.finding import ReportResult

CATEGORY_BYTES_MAX: Final = 128

REASON_BYTES_MAX: Final = 256
"""Of an exception's reason: it stands in each result that it excuses."""

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
    drifted = [
        Finding(*drift.mutator, "warn", str(drift), category=DRIFT_CATEGORY)
        for drift in drifts
        if "warn" in stored
    ]
    findings = [
        *drifted,
        *_violations(responses, snapshot, descriptions, stored),
        *_excused(responses, snapshot, descriptions),
        *(_errors(responses, snapshot, descriptions) if "error" in stored else ()),
        *_without_violation(responses, snapshot, descriptions, stored, selected),
    ]
    return settled(findings, results_max)


def _violations(
    responses: Responses,
    snapshot: Snapshot,
    descriptions: Descriptions,
    stored: frozenset[ReportResult],
) -> Iterator[Finding]:
    for result in responses.results:
        verdict = verdict_of(result)
        if verdict in stored:
            constraint = result.constraint
            severity, category = descriptions.of(snapshot, constraint)
            actions = ",".join(result.actions)
            yield Finding(
                constraint.kind,
                constraint.name,
                verdict,
                result.msg,
                severity,
                category,
                actions,
                **_exception_fields(result),
            )


def _excused(
    responses: Responses, snapshot: Snapshot, descriptions: Descriptions
) -> Iterator[Finding]:
    """Return the results that exceptions excuse: always reported, whichever verdicts are."""
    for result in responses.excused:
        constraint = result.constraint
        severity, category = descriptions.of(snapshot, constraint)
        yield Finding(
            constraint.kind,
            constraint.name,
            "skip",
            result.msg,
            severity,
            category,
            **_exception_fields(result),
        )


def _exception_fields(result: Result) -> dict[str, str]:
    excuse = result.excuse
    if excuse is None:
        return {}
    reason = bounded(excuse.reason, REASON_BYTES_MAX)
    return {"exception": excuse.title, "reason": reason, "expires": excuse.expires}


def _errors(
    responses: Responses, snapshot: Snapshot, descriptions: Descriptions
) -> Iterator[Finding]:
    """Templates that failed, and constraints that are undecided and have no violation."""
    for fault in responses.faults:
        yield Finding(fault.kind or fault.target, "", "error", fault.message)
    violated = {result.constraint.key for result in responses.results}
    for item in responses.undecided:
        if item.constraint.key not in violated:
            severity, category = descriptions.of(snapshot, item.constraint)
            yield Finding(*item.constraint.key, "error", _why_undecided(item), severity, category)


def _without_violation(
    responses: Responses,
    snapshot: Snapshot,
    descriptions: Descriptions,
    stored: frozenset[ReportResult],
    selected: tuple[Iterable[Constraint], Iterable[Constraint]],
) -> Iterator[Finding]:
    """Constraints that passed, and those that were skipped."""
    decided = {result.constraint.key for result in responses.results}
    decided |= {result.constraint.key for result in responses.excused}
    decided |= {item.constraint.key for item in responses.undecided}
    # A template that failed has said nothing about its constraints.
    faulty = {fault.kind for fault in responses.faults}
    verdicts: tuple[ReportResult, ReportResult] = ("pass", "skip")
    for verdict, constraints in zip(verdicts, selected, strict=True):
        if verdict not in stored:
            continue
        for constraint in constraints:
            if constraint.key not in decided and constraint.kind not in faulty:
                severity, category = descriptions.of(snapshot, constraint)
                yield Finding(constraint.kind, constraint.name, verdict, "", severity, category)


_PASSING: Final = {
    "overrun": "not decided: its evaluation took too long",
    "suspended": "not decided: suspended, since its evaluations took too long",
    "deadline": "not decided: the time for the review ended",
    "object": "not decided: its review took too long",
}
"""The message about an object that may be decided the next time, by cause: the same text each
time."""


def _why_undecided(item: Undecided) -> str:
    return _PASSING.get(item.cause) or f"not decided ({item.cause}): {item.message}"


def verdict_of(result: Result) -> ReportResult:
    """A violation fails, one that only warns warns; what could not be evaluated is an error.

    ``dryrun`` fails too: it is how a policy is tried, and its results are what people look for.
    """
    if result.cause != "violation":
        return "error"
    return "warn" if set(result.actions) == {"warn"} else "fail"
