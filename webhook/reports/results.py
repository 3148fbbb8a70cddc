"""Converts the results of a review to findings: verdicts, severities and categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import POLICY
from webhook.api.shapes import object_of
from webhook.constraint.description import described
from webhook.kyverno.kinds import VALIDATING_KINDS
from webhook.reports.finding import RESULTS_MAX, Finding, ReportResult, bounded, settled
from webhook.reports.report import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result, Undecided
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift

CATEGORY_BYTES_MAX: Final = 128

REASON_BYTES_MAX: Final = 256
"""The size of an exception's reason at most; each excused result repeats it."""

_ANNOTATED: Final = frozenset({POLICY, *VALIDATING_KINDS})
"""The kinds of policies with audit annotations."""

DRIFT_CATEGORY: Final = "mutation"
"""The category of results that name the changes of a mutator."""


class Descriptions:
    """Severity and category of constraints, computed once for each snapshot."""

    __slots__ = ("_found", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._found: dict[tuple[str, str], tuple[str, str]] = {}

    def of(self, snapshot: Snapshot, constraint: Constraint) -> tuple[str, str]:
        """Returns severity and category; empty if not stated."""
        if snapshot is not self._snapshot:
            self._snapshot, self._found = snapshot, _described(snapshot)
        return self._found.get(constraint.key, ("", ""))


def _described(snapshot: Snapshot) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        key: (description.severity, bounded(description.category, CATEGORY_BYTES_MAX))
        for key, description in described(snapshot).items()
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
    """Returns the findings of a review whose verdicts are in ``stored``, settled.

    Each change that a mutator would make (``drifts``) is a warning. ``selected`` are two groups of
    constraints: those that matched the resource (pass), and those of its kind that did not (skip).
    A review that ran out of time has no findings: the caller must not pass it.
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
                annotations=_annotations(result),
                **_exception_fields(result),
            )


def _excused(
    responses: Responses, snapshot: Snapshot, descriptions: Descriptions
) -> Iterator[Finding]:
    """Yields the results excused by exceptions; they are reported regardless of ``stored``."""
    for result in responses.excused:
        constraint = result.constraint
        severity, category = descriptions.of(snapshot, constraint)
        yield Finding(
            constraint.kind,
            constraint.name,
            "skip" if result.excuse is None else result.excuse.report_result,
            result.msg,
            severity,
            category,
            **_exception_fields(result),
        )


def _annotations(result: Result) -> tuple[tuple[str, str], ...]:
    """Returns the audit annotations of a policy in CEL, without those named as other properties."""
    if result.constraint.kind not in _ANNOTATED:
        return ()
    annotations = object_of(object_of(result.details).get("auditAnnotations"))
    return tuple(
        (key, bounded(text))
        for key, text in sorted(annotations.items())
        if key not in PROPERTIES and type(text) is str
    )


def _exception_fields(result: Result) -> dict[str, Any]:
    excuse = result.excuse
    if excuse is None:
        return {}
    reason = bounded(excuse.reason, REASON_BYTES_MAX)
    return {"exception": excuse.title, "reason": reason, "expires": excuse.expires}


def _errors(
    responses: Responses, snapshot: Snapshot, descriptions: Descriptions
) -> Iterator[Finding]:
    """Yields failed templates, and undecided constraints without a violation."""
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
    """Yields constraints that passed, and constraints that were skipped."""
    decided = {result.constraint.key for result in responses.results}
    decided |= {result.constraint.key for result in responses.excused}
    decided |= {item.constraint.key for item in responses.undecided}
    # The constraints of a failed template have no verdict.
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
"""The message about an object that may be decided the next time, by cause. It never varies, so that
results stay equal."""


def _why_undecided(item: Undecided) -> str:
    return _PASSING.get(item.cause) or f"not decided ({item.cause}): {item.message}"


def verdict_of(result: Result) -> ReportResult:
    """Returns the verdict of a result.

    - ``error`` if it could not be evaluated.
    - ``warn`` if its only action is ``warn``.
    - ``fail`` else, also for ``dryrun``: users try a policy with it, and look for its results.
    """
    if result.cause != "violation":
        return "error"
    return "warn" if set(result.actions) == {"warn"} else "fail"
