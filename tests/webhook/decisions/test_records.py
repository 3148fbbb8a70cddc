"""Records made of reviews: what they say of verdicts, templates and audits."""

import sys
from typing import Any

import jsonschema_rs
import orjson
import pytest

from tests.policies import exception
from tests.programs import ROOT
from webhook import log
from webhook.api.admission import read_request
from webhook.cli.clients import new_client
from webhook.cli.decisions import describe
from webhook.constraint.client import Client
from webhook.constraint.result import Responses
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.decisions.configuration import parse
from webhook.decisions.exporter import record as events
from webhook.decisions.exporter.admission import ReviewOutcome, admission_record, audit_record
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.wire.rows import expanded, timestamp
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject
from webhook.server import verdict
from webhook.serving.recorder import Reviewed

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}


def client(*constraints: tuple[str, str]) -> Client:
    """A template that always finds something, and constraints with these actions."""
    found = new_client()
    found.add_template(
        {
            "apiVersion": "templates.gatekeeper.sh/v1",
            "kind": "ConstraintTemplate",
            "metadata": {"name": "always", "generation": 7},
            "spec": {
                "crd": {"spec": {"names": {"kind": "Always"}}},
                "targets": [
                    {
                        "target": "admission.k8s.gatekeeper.sh",
                        "rego": 'package always\nviolation[{"msg": "no", "details": {"a": 1}}] { true }',
                    }
                ],
            },
        }
    )
    for name, action in constraints:
        found.add_constraint(
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": "Always",
                "metadata": {"name": name, "generation": 3, "annotations": {"x": "y"}},
                "spec": {"enforcementAction": action},
            }
        )
    return found


def lines_of(exporter: Exporter) -> list[dict[str, Any]]:
    """The records that are queued."""
    exporter.settle()
    return [
        orjson.loads(line) for line in expanded(bytes(exporter.outbox.take(10**6))).splitlines()
    ]


def request(**fields: Any) -> Any:
    return read_request(
        {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": "n",
            "userInfo": {"username": "alice", "uid": "7", "groups": ["g"]},
            "object": POD,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ((), "allow"),
        (("dryrun",), "dryrun"),
        (("dryrun", "warn"), "warn"),
        (("warn", "deny", "dryrun"), "deny"),
    ],
)
def test_the_gravest_action_is_the_verdict(actions: tuple[str, ...], expected: str) -> None:
    snapshot = client(*((f"c{number}", action) for number, action in enumerate(actions))).snapshot
    reviewed = request()
    responses = snapshot.review(AugmentedReview(reviewed))
    record = admission_record("id", reviewed, responses, ReviewOutcome())
    assert record["verdict"] == expected
    assert record["constraintsEvaluated"] == len(actions)


def test_a_deletion_s_record_is_about_the_old_object() -> None:
    reviewed = request(operation="DELETE", object=None, oldObject=POD, name="")
    record = admission_record("id", reviewed, None, ReviewOutcome())
    assert record["resourceName"] == "p"


def test_an_audit_s_record_has_the_run_and_the_audit_s_point() -> None:
    snapshot = client(("c", "deny")).snapshot
    responses = snapshot.review(AugmentedObject(POD))
    record = audit_record("id", "run-1", POD, responses, ReviewOutcome(), include_objects=True)
    assert record["auditID"] == "run-1"
    assert record["enforcementPoint"] == "audit.gatekeeper.sh"
    assert record["verdict"] == "deny"
    assert record["resourceName"] == "p"
    assert record["object"] is POD
    assert "allowed" not in record


def test_a_recorder_tells_generations_and_the_policies_that_decided() -> None:
    """Each queued event is valid by the published schema."""
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(pod_uid="u"), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    policies = client(("c", "deny"))
    reviewed = request()
    for _ in range(2):
        snapshot = policies.snapshot
        responses = snapshot.review(AugmentedReview(reviewed))
        answer = verdict.judge(reviewed.uid, responses)
        recorded = recorder.answered(reviewed, responses, snapshot, 1.0, 1.5, answer)
        assert recorded.decision_id
    recorder.unanswered(Reviewed(reviewed, None, snapshot, (1.0, 1.5)), 504, "too late")
    for event in (
        events.audit_started("i", "run"),
        events.audit_finished("i", "run", reviewed=1, violations=2, duration_ns=3),
    ):
        assert exporter.offer(event)
    lines = lines_of(exporter)
    validator = jsonschema_rs.validator_for(
        orjson.loads((ROOT / "docs" / "decision-record.schema.json").read_bytes())
    )
    for line in lines:
        validator.validate(line)
    policies_event, first, second, failed, *_ = lines
    assert policies_event["event"] == "policies"
    assert policies_event["details"]["constraints"] == 1
    assert first["results"][0]["templateGeneration"] == 7
    assert first["results"][0]["constraint"]["generation"] == 3
    assert first["results"][0]["constraint"]["annotations"] == {"x": "y"}
    assert first["queueDurationNs"] == 500_000_000
    assert recorded.decision_id == second["id"]
    assert (failed["verdict"], failed["errors"]) == ("error", ["too late"])


@pytest.mark.parametrize("actions", [(), ("deny",), ("warn", "dryrun")])
def test_records_say_which_entry_asked(actions: tuple[str, ...]) -> None:
    """Of what is written as a row, with results and without, and of what no policy decided."""
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(pod_uid="u"), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    snapshot = client(*((f"c{number}", action) for number, action in enumerate(actions))).snapshot
    for entry in ("fail", "ignore", ""):
        reviewed = request()._replace(failure_policy=entry)
        responses = snapshot.review(AugmentedReview(reviewed))
        answer = verdict.judge(reviewed.uid, responses)
        recorder.answered(reviewed, responses, snapshot, 1.0, 1.5, answer)
        recorder.unanswered(Reviewed(reviewed, None, snapshot, (1.0, 1.5)), 504, "too late")
    decisions = [line for line in lines_of(exporter) if line["eventType"] == "decision"]
    entries = [line.get("failurePolicy") for line in decisions]
    assert entries == ["fail", "fail", "ignore", "ignore", None, None]
    schema = orjson.loads((ROOT / "docs" / "decision-record.schema.json").read_bytes())
    for line in decisions:
        jsonschema_rs.validator_for(schema).validate(line)


def test_nothing_of_a_request_is_kept_once_it_is_answered() -> None:
    """The next one is decoded into its memory, which is still in the processor's caches."""
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    snapshot = client(("c", "deny")).snapshot
    reviewed = request()
    responses = snapshot.review(AugmentedReview(reviewed))
    answer = verdict.judge(reviewed.uid, responses)
    held = [reviewed, reviewed.document, reviewed.object, responses]
    before = [sys.getrefcount(one) for one in held]
    recorder.answered(reviewed, responses, snapshot, 1.0, 1.5, answer)
    assert [sys.getrefcount(one) for one in held] == before
    recorder.unanswered(Reviewed(reviewed, None, snapshot, (1.0, 1.5)), 504, "too late")
    assert [sys.getrefcount(one) for one in held] == before
    assert exporter.queued == 3


def test_a_constraint_that_changes_is_described_anew() -> None:
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    policies = client(("c", "deny"))
    reviewed = request()
    for generation in (3, 4):
        policies.add_constraint(
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": "Always",
                "metadata": {"name": "c", "generation": generation},
                "spec": {"enforcementAction": ["deny", "warn"][generation % 2]},
            }
        )
        for _ in range(2):
            snapshot = policies.snapshot
            responses = snapshot.review(AugmentedReview(reviewed))
            answer = verdict.judge(reviewed.uid, responses)
            recorder.answered(reviewed, responses, snapshot, 1.0, 1.5, answer)
    lines = lines_of(exporter)
    generations = [
        line["results"][0]["constraint"]["generation"] for line in lines if "results" in line
    ]
    assert generations == [3, 3, 4, 4]


def test_a_bug_in_recording_is_counted_and_the_answer_stands() -> None:
    lines: list[bytes] = []
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(), log.Log(lines.append).logger("test"))
    reviewed = request()
    answer = verdict.allowed(reviewed.uid)
    broken: Any = object()  # no responses at all
    recorded = AdmissionRecorder(exporter).answered(reviewed, broken, None, 0.0, 0.0, answer)
    assert recorded.allowed is True
    assert exporter.counters.dropped == {"bug": 1}
    assert exporter.counters.offered == 1
    assert b"a decision was not recorded" in lines[0]


def test_a_decision_without_room_is_counted_and_no_record_of_it_is_made() -> None:
    """A sidecar that hangs costs an admission no more than looking whether there is room."""
    settings = read_settings(parse(b"{sidecarURL: unix:///s, queue: {maxRecords: 1}}", "test"))
    exporter = Exporter(settings, Origin(), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    recorder.event("started")
    reviewed = request()
    answer = verdict.allowed(reviewed.uid)
    unreadable: Any = object()  # making a record of it would be a bug, and counted as one
    recorded = recorder.answered(reviewed, unreadable, None, 0.0, 0.0, answer)
    assert recorded.decision_id == exporter.origin.process + "-2"
    recorder.unanswered(Reviewed(reviewed, unreadable, None, (0.0, 0.0)), 504, "too late")
    assert exporter.counters.dropped == {"queue_full": 2}
    assert exporter.counters.offered == 3
    exporter.outbox.acknowledge(1)
    recorder.event("stopping")
    (line,) = bytes(exporter.outbox.take(10**6)).splitlines()
    assert orjson.loads(line)["sequence"] == 4, "the sidecar sees the gap"


def test_what_a_rule_leaves_out_is_counted_as_that_in_a_full_queue_too() -> None:
    text = b"{sidecarURL: unix:///s, queue: {maxRecords: 1}, rules: [{verdicts: [allow]}]}"
    exporter = Exporter(
        read_settings(parse(text, "test")), Origin(), log.Log(lambda _: None).logger("test")
    )
    recorder = AdmissionRecorder(exporter)
    recorder.event("started")
    reviewed = request()
    answer = verdict.allowed(reviewed.uid)
    recorder.answered(reviewed, Responses(), None, 0.0, 0.0, answer)
    assert exporter.counters.dropped == {"rule": 1}


def test_timestamps_are_rfc_3339_in_utc_with_microseconds() -> None:
    assert timestamp(1795242550.25) == "2026-11-21T06:29:10.250000Z"
    assert timestamp(1795242550.5) == "2026-11-21T06:29:10.500000Z"
    assert timestamp(1795242551.0) == "2026-11-21T06:29:11.000000Z"


@pytest.mark.parametrize("options", ["", "\nmask: [results.nothing]"])
def test_what_is_excused_is_recorded_with_its_exception_and_changes_the_verdict(
    options: str,
) -> None:
    """As rows, and where each record is made by itself."""
    settings = read_settings(parse(f"sidecarURL: unix:///s{options}".encode(), "test"))
    exporter = Exporter(settings, Origin(pod_uid="u"), log.Log(lambda _: None).logger("test"))
    recorder = AdmissionRecorder(exporter)
    policies, reviewed = client(("a", "deny"), ("b", "deny")), request()
    for effect in ("skip", "warn"):
        of_both = exception("e", "Always/*", match={"name": "p"}, effect=effect, ticket="T-1")
        stages = (Excusing([read_exception(of_both)]),)
        subject = Subject(AugmentedReview(reviewed), mutates=False)
        responses = review(PolicySet(policies.snapshot, stages=stages), subject).responses
        answer = verdict.judge(reviewed.uid, responses)
        assert answer.allowed
        recorder.answered(reviewed, responses, policies.snapshot, 1.0, 1.5, answer)
    validator = jsonschema_rs.validator_for(
        orjson.loads((ROOT / "docs" / "decision-record.schema.json").read_bytes())
    )
    skipped, warned = (one for one in lines_of(exporter) if one["eventType"] == "decision")
    for record in (skipped, warned):
        validator.validate(record)
        assert [one["constraint"]["name"] for one in record["excused"]] == ["a", "b"]
        assert record["excused"][0]["exception"]["ticket"] == "T-1"
        assert record["excused"][0]["message"] == "no"
    assert (skipped["verdict"], "results" in skipped) == ("allow", False)
    assert warned["verdict"] == "warn"
    assert [one["enforcementAction"] for one in warned["results"]] == ["warn", "warn"]
    described = describe(skipped)
    assert "    [Always/a] excused by ClusterPolicyException e: no" in described


@pytest.mark.parametrize("options", ["", "\nmask: [results.nothing]"])
def test_what_was_there_before_an_update_is_recorded_as_existing(options: str) -> None:
    """As rows, and where each record is made by itself."""
    settings = read_settings(parse(f"sidecarURL: unix:///s{options}".encode(), "test"))
    exporter = Exporter(settings, Origin(pod_uid="u"), log.Log(lambda _: None).logger("test"))
    policies = client(("a", "deny"))
    (document,) = (dict(one.document) for one in policies.snapshot.constraints)
    document["metadata"] = document["metadata"] | {"annotations": {"waddle.dev/existing": "allow"}}
    policies.add_constraint(document)
    updated = request(operation="UPDATE", oldObject=POD)
    for reviewed in (updated, request()):
        subject = Subject(AugmentedReview(reviewed), mutates=False)
        responses = review(PolicySet(policies.snapshot), subject).responses
        answer = verdict.judge(reviewed.uid, responses)
        AdmissionRecorder(exporter).answered(
            reviewed, responses, policies.snapshot, 1.0, 1.5, answer
        )
    records = [one for one in lines_of(exporter) if one["eventType"] == "decision"]
    assert [
        (one["verdict"], one["results"][0]["enforcementAction"], one["results"][0].get("existing"))
        for one in records
    ] == [("warn", "warn", True), ("deny", "deny", None)]
