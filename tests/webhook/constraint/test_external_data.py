"""``external_data``: what a call gets, what is asked first, and what of an evaluation is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from tests.webhook.external_data.recorded import Answers, good, response_of
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedObject
from webhook.external_data.exchange import (
    REQUEST_KEYS_MAX,
    REQUESTS_MAX,
    ROUNDS_MAX,
    Answering,
    ProviderRequest,
    ProviderResponse,
    failure,
    no_provider,
)
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence


def p(keys: str) -> str:
    """A call for keys."""
    return f'external_data({{"provider": "p", "keys": {keys}}})'


ONE = p('["k"]')


def policies(rego: str) -> PolicySet:
    """Returns a template with one constraint."""
    return PolicySet(client(template(rego=f"package p\n{rego}"), constraint()).snapshot)


def messages(rego: str, known: Answering | None) -> list[str]:
    """Returns the violations of a Pod with these known answers."""
    snapshot = policies(rego).snapshot
    answer = snapshot.review(AugmentedObject(pod()), limits=Limits(known=known))
    assert not answer.faults
    return [result.msg for result in answer.results]


def one(call: str) -> str:
    return f'violation[{{"msg": m}}] {{ m := json.marshal({call}) }}'


EMPTY = '{"errors":[],"responses":[],"status_code":0,"system_error":""}'
GOOD = '{"errors":[],"responses":[["k","good"]],"status_code":200,"system_error":""}'


@pytest.mark.parametrize(
    ("operand", "answer"),
    [
        ('{"provider": "p", "keys": ["k"]}', [GOOD]),
        ('{"Provider": "p", "KEYS": ["k"], "more": 1}', [GOOD]),
        ('{"provider": "p", "keys": []}', [EMPTY]),
        ('{"provider": "p", "keys": null}', [EMPTY]),
        ('{"provider": "p"}', [EMPTY]),
        ("{}", [EMPTY]),
        ("null", [EMPTY]),
        ('{"provider": "p", "keys": [null]}', [GOOD.replace('"k"', '""')]),
        ('{"provider": "p", "KEYS": ["k", "l"], "keys": [null]}', [GOOD]),
        ('{"provider": "p", "KEYS": ["l"], "Keys": null, "keys": ["k"]}', [GOOD]),
        ('{"provider": "p", "keys": {"k"}}', []),
        ('{"provider": "p", "keys": set()}', []),
        ('{"provider": "p", "keys": [1]}', []),
        ('{"provider": "p", "keys": "k"}', []),
        ('{"provider": 1, "keys": ["k"]}', []),
        ('{"provider": "p", "keys": ["k"], 1: 2}', []),
        ('{"provider": "p", "keys": ["k"], "more": {1}}', []),
        (r'{"provider": "p", "keys": ["\u0001"]}', []),
        (r'{"provider": "p", "keys": ["\u007f"]}', []),
        (r'{"provider": "p", "keys": ["\n"]}', [GOOD.replace('"k"', r'"\n"')]),
        ('["p"]', []),
        ('"p"', []),
        ("true", []),
    ],
)
def test_operands_are_read_as_opa_hands_them_to_go(operand: str, answer: list[str]) -> None:
    assert messages(one(f"external_data({operand})"), good) == answer


def test_lists_of_what_was_not_sent_are_null() -> None:
    assert messages(one(ONE), lambda _: failure("gone", 400)) == [
        '{"errors":null,"responses":null,"status_code":400,"system_error":"gone"}'
    ]


def test_errors_and_values_of_any_kind_stand_in_their_lists() -> None:
    answer = ProviderResponse((("a", None), ("b", {"c": [1]})), (("d", "unknown"),), 207, "half")
    assert messages(one(p('["a", "b", "d", "e"]')), lambda _: answer) == [
        (
            '{"errors":[["d","unknown"]],"responses":[["a",null],["b",{"c":[1]}]],'
            '"status_code":207,"system_error":"half"}'
        )
    ]


# --- rounds ---------------------------------------------------------------------------------------


def reviewed(rego: str, ask: Any, **document: Any) -> Any:
    return review(policies(rego), Subject(AugmentedObject(pod() | document)), ask=ask)


@pytest.mark.parametrize(
    "rule",
    [
        '{ not good("k"); m := "bad" }',
        '{ count({x | x := "k"; not good(x)}) > 0; m := "bad" }',
        '{ verdict := [good(x) | x := "k"]; verdict == []; m := "bad" }',
        '{ object.get({x: good(x) | x := "k"}, "k", "none") == "none"; m := "bad" }',
        '{ worst == "bad"; m := "bad" }',
    ],
)
def test_no_form_takes_a_missing_answer_for_a_false_one(rule: str) -> None:
    rego = f"""good(k) {{ {p("[k]")}.responses[_][1] == "good" }}
worst = "good" {{ good("k") }} else = "bad" {{ true }}
violation[{{"msg": m}}] {rule}"""
    provider = Answers()
    assert reviewed(rego, provider).responses.results == ()
    assert provider.rounds == [(ProviderRequest("p", ("k",)),)]
    bad = Answers(lambda request: response_of(request, "bad"))
    assert [one.msg for one in reviewed(rego, bad).responses.results] == ["bad"]


def test_a_call_for_each_of_many_is_asked_in_one_round() -> None:
    rego = f"""violation[{{"msg": m}}] {{
	image := input.review.object.images[_]
	{p("[image]")}.responses[_][1] == "good"
	m := image
}}"""
    provider = Answers()
    images = [f"i{number}" for number in range(9)]
    outcome = reviewed(rego, provider, images=images)
    assert [one.msg for one in outcome.responses.results] == images
    assert [len(requests) for requests in provider.rounds] == [9]


def test_the_first_request_goes_out_at_once_and_the_others_together() -> None:
    """The first answer's cost is over when the last arrives; each turn of sending costs."""
    names = {f"K8s{key}": p(f'["{key}"]') for key in "abc"} | {"K8sZ": "true"}
    documents = [
        document
        for kind, call in names.items()
        for document in (template(kind, f"package p\n{one(call)}"), constraint(kind))
    ]
    events: list[tuple[str, ...]] = []

    def known(request: ProviderRequest) -> None:
        events.append(("evaluated", *request.keys))

    def begin(requests: Sequence[ProviderRequest]) -> None:
        events.extend(("sent", *request.keys) for request in requests)

    client(*documents).snapshot.review(
        AugmentedObject(pod()), limits=Limits(known=known, begin=begin)
    )
    assert [event[0] for event in events] == [
        "evaluated",
        "sent",
        *["evaluated"] * 2,
        *["sent"] * 2,
    ]
    assert len(set(events)) == len(events)


def test_another_provider_is_not_asked_for_what_hangs_on_the_first() -> None:
    rego = f"""known {{ {ONE}.responses[_][1] == "good" }}
violation[{{"msg": "bad"}}] {{
	not known
	external_data({{"provider": "q", "keys": ["secret"]}}).status_code == 200
}}"""
    provider = Answers()
    assert reviewed(rego, provider).responses.results == ()
    assert [[one.provider for one in requests] for requests in provider.rounds] == [["p"]]


def test_chained_keys_take_a_round_each_and_fail_beyond_the_last() -> None:
    def chained(calls: int) -> str:
        steps = [f"r{at + 1} := {p(f'[r{at}]')}.responses[_][1]" for at in range(calls)]
        return f'violation[{{"msg": r{calls}}}] {{ r0 := "x"; {"; ".join(steps)} }}'

    def longer_by_one(request: ProviderRequest) -> ProviderResponse:
        return ProviderResponse(((request.keys[0], request.keys[0] + "x"),), (), 200)

    longer = Answers(longer_by_one)
    assert [one.msg for one in reviewed(chained(ROUNDS_MAX), longer).responses.results] == [
        "x" * (ROUNDS_MAX + 1)
    ]
    assert len(longer.rounds) == ROUNDS_MAX
    rego = f"""at(key) = r {{ r := {p("[key]")} }}
violation[{{"msg": m}}] {{
	a := at("x").responses[0][1]; b := at(a).responses[0][1]; c := at(b).responses[0][1]
	d := at(c).responses[0][1]; last := at(d)
	m := sprintf("%v %v", [last.status_code, last.system_error])
}}"""
    messages = [one.msg for one in reviewed(rego, longer).responses.results]
    assert messages == ["500 the review has already asked 4 times, and may not ask again"]


def test_too_many_keys_are_not_asked() -> None:
    provider = Answers()
    rego = (
        f"keys := [format_int(n, 10) | n := numbers.range(1, {REQUEST_KEYS_MAX + 1})[_]]\n"
        'violation[{"msg": m}] { m := external_data({"provider": "p", "keys": keys}).system_error }'
    )
    assert [one.msg for one in reviewed(rego, provider).responses.results] == [
        "1001 keys are asked for at once, and 1000 may be"
    ]
    assert provider.rounds == []


def test_more_calls_than_go_out_at_once_take_another_round() -> None:
    rego = f"""violation[{{"msg": image}}] {{
	image := input.review.object.images[_]
	{p("[image]")}.responses[_][1] == "good"
}}"""
    provider = Answers()
    images = [f"i{number}" for number in range(REQUESTS_MAX + 3)]
    outcome = reviewed(rego, provider, images=images)
    assert len(outcome.responses.results) == len(images)
    assert [len(requests) for requests in provider.rounds] == [REQUESTS_MAX, 3]


def test_a_large_operand_is_paid_for_before_it_is_read() -> None:
    rego = (
        'violation[{"msg": m}] { big := numbers.range(1, 100000)\n'
        'm := external_data({"provider": "p", "keys": [], "more": big}).system_error }'
    )
    subject = Subject(AugmentedObject(pod()), limits=Limits(steps=300_000))
    outcome = review(policies(rego), subject, ask=Answers())
    assert "budget" in str(outcome.responses)


def test_without_anybody_to_ask_there_is_no_verdict_and_the_provider_is_named() -> None:
    outcome = reviewed(f'violation[{{"msg": "bad"}}] {{ not {ONE}.x }}', None)
    assert [fault.message for fault in outcome.responses.faults] == [
        "external_data: no provider p answers here"
    ]
    assert outcome.responses.results == ()
    advised = reviewed(one(ONE), lambda request: {request[0]: no_provider("p", "give answers")})
    assert advised.responses.faults[0].message.endswith("here: give answers")


def test_what_is_printed_is_printed_once() -> None:
    lines: list[str] = []
    rego = f'violation[{{"msg": "m"}}] {{ print("asking"); {ONE}.status_code == 200 }}'
    limits = Limits(print_=lambda _, line: lines.append(line))
    subject = Subject(AugmentedObject(pod()), limits=limits)
    assert review(policies(rego), subject, ask=Answers()).responses.results
    assert lines == ["asking"]
