"""The effect of each exception and group on recorded decisions, at both commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import policies
from tests.conformance.gatekeeper import waddle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LABELLED = """package labelled
violation[{"msg": msg}] {
  not input.review.object.metadata.labels[input.parameters.label]
  msg := sprintf("no label %v", [input.parameters.label])
}
"""
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}}
ALL = {"waddle.dev/exceptions": "all"}


def labelled(name: str) -> dict[str, Any]:
    made = policies.constraint("Labelled", name, parameters={"label": name})
    made["metadata"]["annotations"] = ALL
    return made


STANDING = [policies.template("Labelled", LABELLED, schema=SCHEMA), *map(labelled, ("own", "team"))]
GROUP = {
    "apiVersion": "waddle.dev/v1alpha1",
    "kind": "ConstraintGroup",
    "metadata": {"name": "either"},
    "spec": {
        "members": {
            name: {"kind": "Labelled", "parameters": {"label": name}} for name in ("a", "b")
        },
        "expression": "a() || b()",
        "message": "neither label",
    },
}


def record(name: str, labels: str, *missing: str) -> dict[str, Any]:
    """The decision about a Pod with such labels, by the constraints that stand."""
    metadata = {"name": name, "namespace": "shop", "labels": dict.fromkeys(labels.split(), "x")}
    results = [
        {
            "constraint": {"kind": "Labelled", "name": one},
            "message": f"no label {one}",
            "enforcementAction": "deny",
            "enforcementActions": [],
        }
        for one in missing
    ]
    return {
        "eventType": "decision",
        "id": name,
        "timestamp": "2026-11-01T10:00:00Z",
        "enforcementPoint": "validation.gatekeeper.sh",
        "verdict": "deny" if missing else "allow",
        "constraintsEvaluated": 2,
        "operation": "CREATE",
        "resourceKind": "Pod",
        "resourceAPIVersion": "v1",
        "resourceName": name,
        "resourceNamespace": "shop",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
        "results": results,
    }


RECORDS = [
    record("web-both", "a", "own", "team"),
    record("web-one", "team a", "own"),
    record("db-none", "own team"),
    record("db-both", "", "own", "team"),
]


@pytest.fixture(params=["check", "replay"])
def replayed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Returns a function that replays the records with more policies, as JSON and as text."""

    def ask(*more: Any, records: Any = RECORDS) -> tuple[dict[str, Any], str]:
        file, log = tmp_path / "policies.yaml", tmp_path / "records.jsonl"
        file.write_text(yaml.safe_dump_all([*STANDING, *more]))
        log.write_text("".join(json.dumps(one) + "\n" for one in records))
        command = ("decisions", "replay", log, "--policies", file)
        if request.param == "check":
            command = ("check", "-f", file, "--decisions", log)
        document = json.loads(waddle(*map(str, command), "-o", "json").stdout)
        return document.get("decisions", document), waddle(*map(str, command)).stdout

    return ask


def changes(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    every = document["changes"] if "changes" in document else document["changed"]
    return {one["id"]: (one["before"], one["after"]) for one in every}


def totals(document: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        one["name"]: (one["added"], one["removed"])
        for one in document["constraints"]
        if one["added"] or one["removed"]
    }


def excusing(**spec: Any) -> dict[str, Any]:
    return policies.exception("old", "Labelled/own", match={"name": "web-*"}, **spec)


def test_an_exception_says_what_it_would_have_excused_also_where_the_verdict_stays(replayed):
    document, text = replayed(excusing())
    assert changes(document) == {"web-one": ("deny", "allow")}
    assert totals(document) == {"own": (0, 2)}
    assert document["excused"] == {"ClusterPolicyException old": 2}
    assert "skip by ClusterPolicyException old: Labelled/own: no label own" in text
    assert "ClusterPolicyException old excuses 2 violations" in text


def test_one_that_weakens_changes_verdicts_and_takes_no_violation_away(replayed):
    document, text = replayed(excusing(effect="warn"))
    assert changes(document) == {"web-one": ("deny", "warn")}
    assert totals(document) == {}
    assert document["excused"] == {"ClusterPolicyException old": 2}
    assert "warn by ClusterPolicyException old: Labelled/own: no label own" in text


def test_one_that_was_not_in_force_then_would_have_changed_nothing(replayed):
    document, _ = replayed(excusing(notBefore="2026-11-01T10:00:01Z"))
    assert (changes(document), totals(document), document.get("excused")) == ({}, {}, None)


def test_what_was_excused_then_by_the_same_is_no_change(replayed):
    (told_of,) = record("web-old", "team", "own")["results"]
    before = record("web-old", "team") | {"excused": [told_of]}
    document, _ = replayed(excusing(), records=[before])
    assert (changes(document), document.get("excused")) == ({}, None)


def test_a_group_says_what_it_would_have_refused_also_where_the_verdict_stays(replayed):
    document, text = replayed(GROUP)
    assert changes(document) == {"db-none": ("allow", "deny")}
    assert totals(document) == {"either": (2, 0)}
    assert "+ ConstraintGroup/either: neither label" in text.replace(
        "[ConstraintGroup/either]", "ConstraintGroup/either:"
    )
    assert "ConstraintGroup/either: +2 -0" in text


def test_a_policy_whose_action_changes_is_named(replayed):
    document, text = replayed(
        {**labelled("own"), "spec": {**STANDING[1]["spec"], "enforcementAction": "warn"}}
    )
    assert changes(document) == {"web-one": ("deny", "warn")}
    (change,) = document["changes"] if "changes" in document else document["changed"]
    assert change["actions"] == [
        {
            "kind": "Labelled",
            "name": "own",
            "message": "no label own",
            "before": "deny",
            "after": "warn",
        }
    ]
    assert "    deny then warn: Labelled/own: no label own" in text.splitlines()


def test_a_check_counts_an_action_that_changes_and_nothing_of_policies_that_are_not_there(tmp_path):
    own = labelled("own")
    own["spec"]["enforcementAction"] = "warn"
    file, log = tmp_path / "policies.yaml", tmp_path / "records.jsonl"
    file.write_text(yaml.safe_dump_all([STANDING[0], own]))
    records = [record("one", "team", "own"), record("other", "own", "team")]
    log.write_text("".join(json.dumps(item) + "\n" for item in records))
    run = waddle("check", "-f", str(file), "--decisions", str(log), "-o", "json")
    assert changes(json.loads(run.stdout)["decisions"]) == {"one": ("deny", "warn")}


def test_a_decision_that_was_delivered_twice_counts_once(replayed):
    delivered = [
        one | {"podUID": "p", "process": process, "sequence": number}
        for process in ("first", "restarted")
        for number, one in enumerate(RECORDS, 1)
    ]
    document, _ = replayed(excusing(), GROUP, records=[*delivered, *delivered[2:]])
    assert document["replayed"] == 2 * len(RECORDS)
    assert document["excused"] == {"ClusterPolicyException old": 4}
    assert totals(document)["own"] == (0, 4)


def test_a_record_of_another_place_is_left_out_and_the_others_are_replayed(replayed):
    """It ended the command with a traceback: a later version may have places of its own."""
    later = RECORDS[0] | {"enforcementPoint": "later.waddle.dev", "specVersion": "1.7"}
    document, _ = replayed(records=[later, *RECORDS[1:]])
    assert (document["replayed"], changes(document)) == (len(RECORDS) - 1, {})


def test_fields_of_wrong_types_end_no_replay(replayed):
    call = {"provider": "p", "keys": ["k"], "idempotent": True, "statusCode": []}
    strange = json.loads(json.dumps(RECORDS[0])) | {"externalData": [call]}
    strange["results"][0] |= {"enforcementAction": "scoped", "enforcementActions": 1}
    document, _ = replayed(records=[strange])
    assert (document["replayed"], changes(document)) == (1, {})


CONFLICTING = """package conflicting
word = "a" { true }
word = "b" { true }
violation[{"msg": msg}] { msg := word }
"""


@pytest.mark.parametrize(
    ("on_error", "changed"), [("allow", {}), ("reject", {"db-none": ("allow", "error")})]
)
def test_a_policy_that_fails_takes_a_verdict_away_only_if_it_refuses(replayed, on_error, changed):
    """As when it was recorded: the server let the request in, with a warning."""
    failing = policies.constraint("Conflicting", "fails")
    failing["metadata"]["annotations"] = {"waddle.dev/on-error": on_error}
    template = policies.template("Conflicting", CONFLICTING)
    document, _ = replayed(template, failing, records=[record("db-none", "own team")])
    assert changes(document) == changed
