"""Provider calls in records: provider, keys and duration; with a setting also the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson
import pytest

from tests.programs import ROOT
from tests.webhook.audit.made import constraint, snapshot, template
from tests.webhook.external_data.recorded import Answers, refused
from tests.webhook.mutation.documents import pod
from webhook import log
from webhook.api.admission import read_request
from webhook.api.gvk import gvk_of
from webhook.constraint.review import AugmentedReview
from webhook.decisions.configuration import parse
from webhook.decisions.exporter.admission import RecordedPolicies, ReviewOutcome, audit_record
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import read_settings
from webhook.policies.replay import replay
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject
from webhook.server import verdict

if TYPE_CHECKING:
    from webhook.external_data.exchange import Ask

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "shop"},
    "data": {"password": "aHVzaA=="},
}
SCHEMA = orjson.loads((ROOT / "docs" / "decision-record.schema.json").read_bytes())


POLICIES = PolicySet(
    snapshot(
        template(
            "Asks",
            """
images := [c.image | c := input.review.object.spec.containers[_]]
values := [v | v := input.review.object.data[_]]
violation[{"msg": msg}] {
  asked := external_data({"provider": "p", "keys": array.concat(images, values)})
  msg := sprintf("%v", [count(asked.errors)])
}
""",
        ),
        constraint("Asks", "a"),
    )
)


def recorded(obj: dict[str, Any], ask: Ask, **settings: Any) -> dict[str, Any]:
    """The record of the admission of an object."""
    section = parse(orjson.dumps({"sidecarURL": "unix:///x", **settings}), "test")
    exporter = Exporter(read_settings(section), Origin(), log.Log(lambda _: None).logger("test"))
    kind = gvk_of(obj)
    request = read_request(
        {
            "uid": "1",
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "operation": "CREATE",
            "namespace": "shop",
            "object": obj,
        }
    )
    found = review(POLICIES, Subject(AugmentedReview(request)), ask=ask)
    responses = found.responses
    AdmissionRecorder(exporter).answered(
        request, responses, POLICIES.snapshot, 1.0, 1.5, verdict.judge("1", responses)
    )
    exporter.settle()
    record: dict[str, Any] = orjson.loads(bytes(exporter.outbox.take(10**6)).splitlines()[-1])
    jsonschema_rs.validator_for(SCHEMA).validate(record)
    return record


def test_a_record_says_whom_it_asked_what_and_how_that_went() -> None:
    ask = Answers(lambda one: refused(one)._replace(milliseconds=12.3456))
    record = recorded(pod("x", "y"), ask)
    assert record["results"][0]["message"] == "2"
    assert record["externalData"] == [
        {
            "provider": "p",
            "keys": ["x", "y"],
            "statusCode": 200,
            "cached": False,
            "millis": 12.346,
        }
    ]


def test_with_a_setting_it_says_what_they_said_and_replay_decides_again_by_it() -> None:
    record = recorded(pod("x"), Answers(refused), includeObjects=True, includeAnswers=True)
    assert record["externalData"][0] | {"millis": 0} == {
        "provider": "p",
        "keys": ["x"],
        "statusCode": 200,
        "cached": False,
        "millis": 0,
        "idempotent": True,
        "responses": [],
        "errors": [["x", "unsigned"]],
    }
    replayed = replay([record], POLICIES)
    assert (replayed.replayed, replayed.changes, replayed.other_violations) == (1, [], 0)
    without = recorded(pod("x"), Answers(refused), includeObjects=True)
    (change,) = replay([without], POLICIES).changes
    assert change.after == "error"
    assert "its answer was not recorded" in change.errors[0]
    assert not replay([without], POLICIES, Answers(refused)).changes


@pytest.mark.parametrize("settings", [{}, {"includeObjects": True, "includeAnswers": True}])
def test_keys_and_answers_about_a_secret_are_masked(settings: dict[str, Any]) -> None:
    record = recorded(SECRET, Answers(refused), **settings)
    assert "aHVzaA" not in str(record["externalData"])
    assert record["externalData"][0]["keys"] == ["**masked**"]
    assert "externalData.*.keys.*" in record["masked"]


def test_a_record_that_is_too_long_leaves_out_keys_and_answers() -> None:
    images = [f"{number}-{'x' * 200}" for number in range(20)]
    record = recorded(pod(*images), Answers(refused), includeAnswers=True, maxRecordBytes=3000)
    assert record["externalData"][0].keys() == {"provider", "statusCode", "cached", "millis"}
    assert "externalData" in record["truncated"]


def test_an_audit_s_record_says_it_too() -> None:
    found = review(
        POLICIES,
        Subject(AugmentedReview(read_request({"uid": "", "kind": {}, "object": pod("x")}))),
        ask=Answers(refused),
    )
    outcome = ReviewOutcome(policies=RecordedPolicies.of(POLICIES.snapshot))
    record = audit_record("i", "a", pod("x"), found.responses, outcome, include_answers=True)
    assert [one["errors"] for one in record["externalData"]] == [[["x", "unsigned"]]]
