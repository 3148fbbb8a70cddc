"""The parts of a record: names, versions, and the events that are not decisions.

docs/decisions.md describes every field; docs/decision-record.schema.json and decisions.proto define
the same for machines.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from webhook.decisions.wire.rows import timestamp

SPEC_VERSION: Final = "1.0"
"""Minor versions add fields; a major version may change the meaning of fields."""

DecisionVerdict = Literal["allow", "warn", "dryrun", "deny", "error"]


def audit_started(decision_id: str, audit_id: str) -> dict[str, Any]:
    """Returns the record that opens an audit run."""
    return {
        "eventType": "audit_started",
        "id": decision_id,
        "timestamp": timestamp(),
        "auditID": audit_id,
    }


def audit_finished(
    decision_id: str, audit_id: str, *, reviewed: int, violations: int, duration_ns: int
) -> dict[str, Any]:
    """Returns the record that closes an audit run; ``reviewed`` counts objects."""
    return {
        "eventType": "audit_finished",
        "id": decision_id,
        "timestamp": timestamp(),
        "auditID": audit_id,
        "reviewed": reviewed,
        "violations": violations,
        "durationNs": duration_ns,
    }


def lifecycle(decision_id: str, event: str, **details: str | int) -> dict[str, Any]:
    """Returns a record of the process itself: it started, took other policies, or is stopping."""
    return {
        "eventType": "lifecycle",
        "id": decision_id,
        "timestamp": timestamp(),
        "event": event,
        "details": details,
    }
