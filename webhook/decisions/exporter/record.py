"""What a record is: names, versions and the events that are no decision.

docs/decisions.md describes every field; docs/decision-record.schema.json and
decisions.proto say the same to machines.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Any, Final, Literal

SPEC_VERSION: Final = "1.0"
"""Minor versions add fields; a major version may change what one means."""

EventType = Literal["decision", "audit_started", "audit_finished", "lifecycle"]
Verdict = Literal["allow", "warn", "dryrun", "deny", "error"]


_second = (-1, "")
"""The last second that was written, and its text: each costs a third of isoformat."""


def timestamp(now: float | None = None) -> str:
    """Now, or ``now`` in seconds since 1970: RFC 3339 with microseconds, UTC."""
    global _second  # noqa: PLW0603  # a pair, replaced whole: threads may have it made twice
    if now is None:
        now = time.time()
    whole = int(now)
    second, text = _second
    if whole != second:
        text = dt.datetime.fromtimestamp(whole, dt.UTC).isoformat(timespec="seconds")[:19]
        _second = whole, text
    return f"{text}.{int((now - whole) * 1e6):06d}Z"


def audit_started(decision_id: str, audit_id: str) -> dict[str, Any]:
    """The record that opens an audit run."""
    return {
        "eventType": "audit_started",
        "id": decision_id,
        "timestamp": timestamp(),
        "auditID": audit_id,
    }


def audit_finished(
    decision_id: str, audit_id: str, *, reviewed: int, violations: int, duration_ns: int
) -> dict[str, Any]:
    """The record that closes an audit run; ``reviewed`` counts objects."""
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
    """A record of the process itself: it started, took other policies, or is stopping."""
    return {
        "eventType": "lifecycle",
        "id": decision_id,
        "timestamp": timestamp(),
        "event": event,
        "details": details,
    }
