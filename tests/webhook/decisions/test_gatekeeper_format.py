"""The second format: Gatekeeper's names, one event for each violation."""

from pathlib import Path

import orjson

from webhook.decisions.sidecar import gatekeeper

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "decisions"

EXPORT_MSG = {
    *("id", "details", "eventType", "group", "version", "kind", "name", "namespace", "message"),
    *("enforcementAction", "enforcementActions", "constraintAnnotations"),
    *("resourceGroup", "resourceAPIVersion", "resourceKind", "resourceNamespace"),
    *("resourceName", "resourceLabels"),
}
ADMISSION = {
    *("timestamp", "operation", "requestResource", "requestSubresource", "requestUsername"),
    *("requestUserUID", "requestUserGroups", "dryRun"),
}
"""JSON names of gatekeeper:pkg/export/util.ExportMsg."""


def test_the_golden_records_give_the_golden_events() -> None:
    _, *records, _ = (GOLDEN / "client.ndjson").read_bytes().splitlines()
    events = [event + b"\n" for line in records for event in gatekeeper.events(line)]
    assert b"".join(events) == (GOLDEN / "gatekeeper.ndjson").read_bytes()
    assert orjson.loads(events[0]).keys() == EXPORT_MSG | ADMISSION


def test_an_audited_violation_has_the_audit_s_id_and_type() -> None:
    record = {
        "eventType": "decision",
        "auditID": "2026-11-21T08:00:00Z",
        "resourceKind": "Pod",
        "timestamp": "t",
        "results": [{"message": "a"}, {"message": "b"}],
    }
    events = gatekeeper.violation_events(record)
    assert [event["message"] for event in events] == ["a", "b"]
    assert {event["id"] for event in events} == {"2026-11-21T08:00:00Z"}
    assert {event["eventType"] for event in events} == {"violation_audited"}
    assert "timestamp" not in events[0]


def test_an_audit_run_is_bracketed_as_gatekeeper_does() -> None:
    for event_type, message in (
        ("audit_started", "audit is started"),
        ("audit_finished", "audit is completed"),
    ):
        events = gatekeeper.violation_events({"eventType": event_type, "auditID": "run"})
        assert events == [{"id": "run", "message": message}]


def test_what_gatekeeper_has_no_event_for_gives_none() -> None:
    assert gatekeeper.violation_events({"eventType": "decision", "verdict": "allow"}) == []
    assert gatekeeper.violation_events({"eventType": "lifecycle"}) == []
