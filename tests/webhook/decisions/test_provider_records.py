"""Provider calls in records: provider, keys and duration; with a setting also the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson
import pytest

from tests.programs import ROOT
from tests.webhook.audit.made import constraint, snapshot, template
from tests.webhook.external_data.recorded import Answers, refused, response_of
from tests.webhook.mutation.documents import pod
from webhook import log
from webhook.api.admission import read_request
from webhook.api.gvk import gvk_of
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedReview
from webhook.decisions.configuration import parse
from webhook.decisions.exporter import hidden_values
from webhook.decisions.exporter.admission import RecordedPolicies, ReviewOutcome, audit_record
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.masking import Masking, parse_path
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import read_settings
from webhook.external_data.response import read_answer
from webhook.policies.replay import replay
from webhook.review.loops import review
from webhook.review.outcome import Found
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject
from webhook.review.walk import walk
from webhook.server import verdict

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.result import Responses
    from webhook.external_data.exchange import Ask, ProviderRequest, ProviderResponse

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


TELLING = PolicySet(
    snapshot(
        template(
            "Tells",
            """
violation[{"msg": msg}] {
  asked := external_data({"provider": "p", "keys": ["x"]})
  msg := json.marshal(asked.responses)
}
""",
        ),
        constraint("Tells", "a"),
    )
)


def recorded(
    obj: dict[str, Any], ask: Ask, policies: PolicySet = POLICIES, **settings: Any
) -> dict[str, Any]:
    """The record of the admission of an object."""
    request = admission(obj)
    found = review(policies, Subject(AugmentedReview(request)), ask=ask)
    return record_of(request, found.responses, policies, **settings)


def admission(obj: dict[str, Any]) -> AdmissionRequest:
    """Returns the request that creates an object."""
    kind = gvk_of(obj)
    return read_request(
        {
            "uid": "1",
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "operation": "CREATE",
            "namespace": "shop",
            "object": obj,
        }
    )


def record_of(
    request: AdmissionRequest, responses: Responses, policies: PolicySet, **settings: Any
) -> dict[str, Any]:
    """Returns the record of an answered request."""
    section = parse(orjson.dumps({"sidecarURL": "unix:///x", **settings}), "test")
    exporter = Exporter(read_settings(section), Origin(), log.Log(lambda _: None).logger("test"))
    AdmissionRecorder(exporter).answered(
        request, responses, policies.snapshot, 1.0, 1.5, verdict.judge("1", responses)
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


CHAIN = [
    f'k{n + 1} := external_data({{"provider": "p", "keys": [k{n}]}}).responses[0][1]'
    for n in range(6)
]
CHAINED = PolicySet(
    snapshot(
        template(
            "Chained",
            "\n".join(
                [
                    "k0 := input.review.object.spec.containers[0].image",
                    *CHAIN,
                    'violation[{"msg": k6}] { true }',
                ]
            ),
        ),
        constraint("Chained", "a"),
    )
)


def test_a_chain_of_cached_answers_is_replayed_to_its_end() -> None:
    """A cached answer takes no round: a decision may have more of them than there are rounds."""
    answers: dict[ProviderRequest, ProviderResponse] = {}

    def cached(request: ProviderRequest) -> ProviderResponse:
        answers[request] = response_of(request, f"{request.keys[0]}'")._replace(is_cached=True)
        return answers[request]

    request = admission(pod("x"))
    subject = Subject(AugmentedReview(request), limits=Limits(known=cached), answers=answers)
    found = walk(CHAINED, subject)
    assert isinstance(found, Found)
    included = {"includeObjects": True, "includeAnswers": True}
    record = record_of(request, found.responses, CHAINED, **included)
    assert record["results"][0]["message"] == "x''''''"
    replayed = replay([record], CHAINED)
    assert (replayed.replayed, replayed.changes, replayed.other_violations) == (1, [], 0)


@pytest.mark.parametrize("status", ["200 OK", 1e400, [200]])
def test_a_recorded_call_with_a_status_of_another_type_is_no_answer(status: object) -> None:
    record = recorded(pod("x"), Answers(refused), includeObjects=True, includeAnswers=True)
    record["externalData"][0]["statusCode"] = status
    (change,) = replay([record], POLICIES).changes
    assert "its answer was not recorded" in change.errors[0]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("0.00001234", "0.00001234"),
        ("1.5E-9", "1.5e-9"),
        ("1e25", "1e+25"),
        ("9007199254740993", "9007199254740992"),
    ],
)
def test_numbers_of_a_recorded_answer_are_shown_as_before(number: str, shown: str) -> None:
    body = f'{{"response": {{"items": [{{"key": "x", "value": [{number}]}}]}}}}'
    (item,) = read_answer(body.encode()).items
    answers = Answers(lambda request: response_of(request, item.value))
    record = recorded(pod("x"), answers, TELLING, includeObjects=True, includeAnswers=True)
    assert record["results"][0]["message"] == f'[["x",[{shown}]]]'
    replayed = replay([record], TELLING)
    assert (replayed.replayed, replayed.changes, replayed.other_violations) == (1, [], 0)


@pytest.mark.parametrize("settings", [{}, {"includeObjects": True, "includeAnswers": True}])
def test_keys_and_answers_about_a_secret_are_masked(settings: dict[str, Any]) -> None:
    record = recorded(SECRET, Answers(refused), **settings)
    assert "aHVzaA" not in str(record["externalData"])
    assert record["externalData"][0]["keys"] == ["**masked**"]
    assert "externalData.*.keys.*" in record["masked"]


ENV = "object.spec.containers[*].env[*].value"
QUOTED = PolicySet(
    snapshot(
        template(
            "Quotes",
            """
tokens := [e.value | e := input.review.object.spec.containers[_].env[_]]
images := [c.image | c := input.review.object.spec.containers[_]]
violation[{"msg": "refused"}] {
  keys := array.concat(array.concat(images, tokens), split(tokens[0], ":"))
  asked := external_data({"provider": "p", "keys": array.concat(keys, [concat("", ["Bearer ", tokens[0]])])})
  count(asked.errors) > 0
}
""",
        ),
        constraint("Quotes", "a"),
    )
)


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize(
    "mask", [{"mask": [ENV]}, {"maskKinds": [{"kinds": ["Pod"], "paths": [ENV]}]}]
)
def test_what_a_mask_hides_is_in_no_key_and_no_answer(mask: dict[str, Any], objects: bool) -> None:
    """Whole or in part, with or without the objects; other keys stay, and replay finds them."""
    obj = pod("registry/app")
    obj["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "jane:Hush-Hush"}]

    def answer(request: ProviderRequest) -> ProviderResponse:
        of_all = refused(request, f"{request.keys[1].lower()} is revoked")
        return of_all._replace(system_error="hush-hush failed")

    record = recorded(
        obj, Answers(answer), QUOTED, includeAnswers=True, includeObjects=objects, **mask
    )
    assert "hush" not in orjson.dumps(record).decode().lower()
    (call,) = record["externalData"]
    assert call["keys"] == ["registry/app", *["**masked**"] * 4]
    assert call["errors"][0] == ["registry/app", "**masked**"]
    assert call["systemError"] == "**masked**"
    paths = {f"externalData.*.{name}" for name in ("keys", "errors", "systemError")}
    assert paths <= set(record["masked"])


def test_a_mask_of_other_fields_leaves_keys_and_answers() -> None:
    obj = pod("registry/app") | {"metadata": {"name": "p", "annotations": {"note": "vip"}}}
    masks = ["object.metadata.annotations.note", "results[*].message", "object.spec.absent"]
    record = recorded(obj, Answers(refused), includeAnswers=True, mask=masks)
    assert record["externalData"][0]["keys"] == ["registry/app"]
    assert record["externalData"][0]["errors"] == [["registry/app", "unsigned"]]


def test_a_record_with_more_than_can_be_compared_has_no_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hidden_values, "COMPARED_CHARACTERS_MAX", 10)
    obj = pod("registry/app") | {"metadata": {"name": "p", "annotations": {"note": "x" * 10}}}
    masks = ["object.metadata.annotations.note"]
    record = recorded(obj, Answers(refused), includeAnswers=True, mask=masks)
    assert record["externalData"][0]["keys"] == ["**masked**"]
    assert record["externalData"][0]["errors"] == [["**masked**"] * 2]


def test_a_masked_user_is_no_key_of_a_mutation_s_record() -> None:
    fields = {"resourceKind": "Pod", "requestUsername": "jane@example.com"}
    call = {"provider": "p", "keys": ["jane@example.com", "other"], "statusCode": 200}
    record: dict[str, Any] = {**fields, "externalData": [call]}
    masking = Masking((parse_path("requestUsername"),))
    masking.mask_calls(record, object={}, oldObject=None, userInfo=None)
    masking.apply(record)
    assert record["externalData"][0]["keys"] == ["**masked**", "other"]
    assert record["masked"] == ["externalData.*.keys", "requestUsername"]


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
