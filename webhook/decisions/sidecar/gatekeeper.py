"""The second format: one event for each violation, in the names of Gatekeeper's export.

The names are those of ``ExportMsg`` (gatekeeper:pkg/export/util) and of the two messages around an
audit run. A reader of Gatekeeper's export reads these events unchanged. Records without an event in
Gatekeeper (an allowed review, an error without a violation, a lifecycle event) are left out.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from webhook.api.names import AUDIT

_BRACKETS: Final = {
    "audit_started": "audit is started",
    "audit_finished": "audit is completed",
}


# Fields that record and event share, name and meaning.
_SHARED: Final = (
    "resourceGroup",
    "resourceAPIVersion",
    "resourceKind",
    "resourceNamespace",
    "resourceName",
    "resourceLabels",
)
_ADMISSION: Final = (
    "timestamp",
    "operation",
    "requestResource",
    "requestSubresource",
    "requestUsername",
    "requestUserUID",
    "requestUserGroups",
    "dryRun",
)


def events(line: bytes) -> list[bytes]:
    """Returns the events of one record's line, encoded; empty for other lines."""
    record = orjson.loads(line)
    return [orjson.dumps(event) for event in violation_events(record)]


def violation_events(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the events of one record."""
    event_type = record.get("eventType")
    if event_type in _BRACKETS:
        return [{"id": record.get("auditID", ""), "message": _BRACKETS[event_type]}]
    if event_type != "decision":
        return []
    audited = record.get("enforcementPoint") == AUDIT or "auditID" in record
    names = _SHARED if audited else _SHARED + _ADMISSION
    shared = {name: record[name] for name in names if name in record}
    run = record.get("auditID" if audited else "requestUID")
    shared["id"] = run or record.get("id", "")
    shared["eventType"] = "violation_audited" if audited else "violation_admission"
    return [{**shared, **_violation(result)} for result in record.get("results", ())]


def _violation(result: dict[str, Any]) -> dict[str, Any]:
    constraint = result.get("constraint", {})
    return {
        "group": constraint.get("group", ""),
        "version": constraint.get("version", ""),
        "kind": constraint.get("kind", ""),
        "name": constraint.get("name", ""),
        "namespace": constraint.get("namespace", ""),
        "constraintAnnotations": constraint.get("annotations", {}),
        "message": result.get("message", ""),
        "enforcementAction": result.get("enforcementAction", ""),
        "enforcementActions": result.get("enforcementActions", []),
        "details": result.get("details", {}),
    }
