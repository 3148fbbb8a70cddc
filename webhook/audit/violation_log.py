"""The audit in the log, with Gatekeeper's events and fields (pkg/logging, pkg/audit)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import labels_of
from webhook.audit.sink import Audited, AuditSink, SweepEnd, SweepStart
from webhook.audit.tally import ConstraintKey, Count, truncated
from webhook.constraint.result import logged_violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.constraint import Constraint
    from webhook.log import Logger


class ViolationLog(AuditSink):
    """A sink, and a receiver of totals: a line for each begin and end of a sweep, and violation."""

    def __init__(self, log: Logger) -> None:
        self._log = log

    async def start(self, start: SweepStart) -> None:
        """``audit_started``."""
        self._write(
            "auditing constraints and violations", start.audit_id, event_type="audit_started"
        )

    async def audited(self, audited: Audited) -> None:
        """``violation_audited``, once for each result."""
        results = audited.responses.results
        if not results:
            return
        identity = audited.identity
        labels = labels_of(audited.object)
        for result in results:
            self._write(
                truncated(result.msg),
                audited.audit_id,
                details=result.details,
                event_type="violation_audited",
                **logged_violation(result, identity.gvk, identity.namespace, identity.name),
                constraint_namespace="",
                constraint_enforcement_actions=list(result.scoped_actions),
                constraint_annotations=_annotations(result.constraint),
                resource_labels=labels,
            )

    async def end(self, end: SweepEnd) -> None:
        """Logs ``audit_finished``, with the parts that were not done."""
        self._write(
            "auditing is complete",
            end.audit_id,
            event_type="audit_finished",
            duration=f"{end.duration_ns / 1e9:.3f}s",
            reviewed=end.reviewed,
            unchanged=end.recalled,
            passed_over=end.passed_over,
            left_out=end.left_out,
            stranded=end.stranded,
            violations=end.violations,
            kinds=len(end.complete),
            kinds_failed=sorted(map(str, end.failed)),
            kinds_unreadable=sorted(map(str, end.unreadable)),
            constraints_undecided=sorted(f"{kind}/{name}" for kind, name in end.undecided),
        )

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """``constraint_audited``, once for each constraint that has violations."""
        constraints = {constraint.key: constraint for constraint in end.snapshot.constraints}
        for key, count in totals.items():
            if not count.total:
                continue
            constraint = constraints[key]
            self._write(
                "audit results for constraint",
                end.audit_id,
                event_type="constraint_audited",
                **constraint.logged_fields,
                constraint_namespace="",
                constraint_action=constraint.enforcement_action,
                constraint_status="enforced",
                constraint_violations=str(count.total),
            )

    def _write(self, message: str, audit_id: str, **fields: Any) -> None:
        self._log.info(message, process="audit", audit_id=audit_id, semantic=True, **fields)


def _annotations(constraint: Constraint) -> Mapping[str, str]:
    return (constraint.document.get("metadata") or {}).get("annotations") or {}
