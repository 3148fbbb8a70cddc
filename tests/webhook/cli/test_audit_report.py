"""The formats of ``waddle audit``, of objects that are in no file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import yaml

from tests.webhook.cli.code_scanning import code_scanning
from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.audit.sink import SweepEnd, identity_of
from webhook.audit.tally import Count
from webhook.cli.audit import report as audit_report
from webhook.cli.audit.run import AuditedViolation, AuditOutcome
from webhook.constraint.result import Excuse
from webhook.constraint.review import AugmentedObject


@pytest.fixture
def outcome():
    """Two violations of a Pod, a constraint without any, and a kind that may not be listed."""
    policies = client()
    policies.add_template(template())
    pods = {"kinds": [{"kinds": ["Pod"]}]}
    policies.add_constraint(constraint(name="denies", match=pods))
    policies.add_constraint(constraint(name="warns", match=pods, enforcementAction="warn"))
    policies.add_constraint(constraint(name="clean", match={"kinds": [{"kinds": ["Node"]}]}))
    reviewed = pod()
    responses = policies.snapshot.review(AugmentedObject(reviewed))
    gvk = identity_of(reviewed).gvk
    end = SweepEnd(
        "2026-01-01T00:00:00Z",
        policies.snapshot,
        frozenset([gvk]),
        unreadable=frozenset([gvk._replace(kind="Secret")]),
        reviewed=1,
    )
    totals = {item.key: Count(20) for item in policies.snapshot.constraints}
    findings = [AuditedViolation(identity_of(reviewed), result) for result in responses.results]
    return AuditOutcome(findings, totals, end)


def test_sarif_has_what_code_scanning_requires_of_objects_that_are_no_files(outcome):
    document = json.loads(audit_report.FORMATS["sarif"](outcome))

    code_scanning(document)
    (sweep,) = document["runs"]
    assert [rule["id"] for rule in sweep["tool"]["driver"]["rules"]] == [
        "K8sDeny/clean",
        "K8sDeny/denies",
        "K8sDeny/warns",
    ]
    location = sweep["results"][0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "cluster/v1/shop/Pod/web"
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "v1/Pod shop/web"
    (invocation,) = sweep["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "Secret" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_every_other_format_tells_the_same(outcome):
    found = {word: form(outcome) for word, form in audit_report.FORMATS.items()}

    assert json.loads(found["json"]) == yaml.safe_load(found["yaml"])
    assert len(json.loads(found["json"])["violations"]) == 2
    root = ET.fromstring(found["junit"])
    assert root.attrib == {"tests": "3", "failures": "2", "errors": "1"}
    assert found["github"].splitlines() == [
        "::error title=waddle::no right to list: /v1, Kind=Secret",
        "::error title=K8sDeny/denies (deny)::v1/Pod shop/web: no",
        "::warning title=K8sDeny/warns (warn)::v1/Pod shop/web: no",
        audit_report.summary(outcome),
    ]
    assert audit_report.as_table(outcome, 20).endswith(audit_report.summary(outcome))


def test_an_audit_by_other_policies_alone_does_not_count_constraints(outcome):
    outcome = replace(outcome, totals={})

    assert audit_report.summary(outcome) == "2 violations in 1 reviewed object"


def test_what_is_excused_is_reported_below_and_by_which_exception(outcome):
    first, *rest = outcome.findings
    excuse = Excuse("PolicyException", "shop", "for-web", "skip", "it must", "2100-01-01T00:00:00Z")
    excused = AuditedViolation(first.identity, first.result._replace(excuse=excuse))
    outcome = replace(outcome, findings=rest, excused=[excused])

    assert audit_report.as_table(outcome, 20).splitlines()[-3:] == [
        "excused: 1 violation",
        "  v1/Pod shop/web  K8sDeny/denies  no  (PolicyException shop/for-web)",
        "1 violation in 1 reviewed object, 1 more excused; 0 of 3 constraints violated",
    ]
    (item,) = audit_report.document_of(outcome)["excused"]
    assert item["exception"] == {
        "title": "PolicyException shop/for-web",
        "effect": "skip",
        "expires": "2100-01-01T00:00:00Z",
    }
    by = "no (excused by PolicyException shop/for-web until 2100-01-01T00:00:00Z: it must)"
    notice = f"::notice title=K8sDeny/denies (excused)::v1/Pod shop/web: {by}"
    assert notice in audit_report.FORMATS["github"](outcome).splitlines()
    root = ET.fromstring(audit_report.FORMATS["junit"](outcome))
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["skipped"]) == (
        ("3", "1", "1")
    )
    (skipped,) = root.iter("skipped")
    assert skipped.attrib == {"message": by}
    (sweep,) = json.loads(audit_report.FORMATS["sarif"](outcome))["runs"]
    assert [item["ruleId"] for item in sweep["results"]] == ["K8sDeny/warns"]
    notes = sweep["invocations"][0]["toolExecutionNotifications"]
    assert {
        "level": "note",
        "message": {"text": f"v1/Pod shop/web: K8sDeny/denies: {by}"},
    } in notes


def test_an_object_that_could_not_be_audited_is_missing_in_each_format_and_for_the_exit_code(
    outcome,
):
    assert outcome.ended is not None
    outcome.ended = replace(outcome.ended, unreadable=frozenset(), left_out=2)

    assert not outcome.whole
    assert audit_report.missing(outcome) == ["could not be audited: 2 objects"]
    (run,) = json.loads(audit_report.FORMATS["sarif"](outcome))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_what_an_exception_weakens_is_not_reported_as_an_action_of_all(outcome):
    """The first violation's action stood above all of its constraint."""
    first, *_ = outcome.findings
    excuse = Excuse("PolicyException", "shop", "for-web", "warn", "it must", "2100-01-01T00:00:00Z")
    weak = first.result._replace(enforcement_action="warn", excuse=excuse)
    outcome = replace(outcome, findings=[first, AuditedViolation(first.identity, weak)])

    by = "PolicyException shop/for-web until 2100-01-01T00:00:00Z"
    assert audit_report.as_table(outcome, 20).splitlines()[:3] == [
        "K8sDeny/denies (deny,warn): 2 violations",
        "  v1/Pod shop/web  no",
        f"  v1/Pod shop/web  no  (warn: {by})",
    ]
    assert f"no ({by}: it must)" in audit_report.FORMATS["sarif"](outcome)
