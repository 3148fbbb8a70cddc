"""Compares our records and Gatekeeper's log of the same requests."""

import json
from typing import Any

from tests.webhook.cli.commands import DECISION_RECORD, LOGGED
from webhook.decisions.comparison import compare

LINE = json.dumps(LOGGED)


def test_a_violation_that_both_reported_is_agreed_and_a_record_delivered_twice_counts_once():
    assert compare([DECISION_RECORD, DECISION_RECORD], [LINE]).document() == {
        "agreed": 1,
        "onlyWaddle": [],
        "onlyGatekeeper": [],
    }


def test_one_that_one_of_them_reported_more_often_is_reported_as_often_as_it_differs():
    found = compare(
        [DECISION_RECORD, DECISION_RECORD | {"sequence": 2}, DECISION_RECORD | {"sequence": 3}],
        [LINE],
    )
    (item,) = found.document()["onlyWaddle"]
    assert (found.agreed, item["count"], item["message"]) == (1, 2, "no: not this one")


def test_another_message_or_action_or_user_is_no_agreement():
    for change in (
        {"msg": "denied admission: yes"},
        {"constraint_action": "warn"},
        {"request_username": "eve"},
    ):
        found = compare([DECISION_RECORD], [json.dumps(LOGGED | change)])
        assert (found.agreed, len(found.only_ours), len(found.only_theirs)) == (0, 1, 1), change


def test_audits_other_lines_and_what_is_no_json_are_passed_over():
    lines = ["I1122 klog", "[]", "{", json.dumps(LOGGED | {"process": "audit"}), '{"msg":"up"}']
    records: list[dict[str, Any]]
    records = [
        DECISION_RECORD | {"enforcementPoint": "audit.gatekeeper.sh"},
        {"eventType": "lifecycle"},
    ]
    found = compare(records, lines)
    assert not found.ours
    assert not found.theirs
