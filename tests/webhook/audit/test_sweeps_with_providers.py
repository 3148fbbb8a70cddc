"""A sweep asks providers page by page, and reviews again what was set aside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.webhook.audit.made import POD, constraint, items, snapshot, template
from tests.webhook.audit.swept import RESOURCES, Given, RecordingSink
from tests.webhook.external_data.recorded import Answers, refused
from webhook import log
from webhook.audit.namespaces import Namespaces
from webhook.audit.reviewer import REQUESTS_AT_ONCE, Reviewer
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks, SweepEnd
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.constraint.limits import UNLIMITED
from webhook.review.policy_set import PolicySet

REGO = """
violation[{"msg": msg}] {
  asked := external_data({"provider": "p", "keys": [input.review.name]})
  msg := sprintf("%v: %v", asked.errors[_])
}
"""
POLICIES = snapshot(
    template("Asks", REGO), template("B"), constraint("Asks", "a", POD), constraint("B", "b", POD)
)
NAMESPACES = Namespaces(None, {"space": {"metadata": {"name": "space"}}})  # type: ignore[arg-type]
LOG = log.Log(lambda _: None).logger("test")


def sweep(names: list[str], ask: Answers | None) -> tuple[SweepEnd, RecordingSink]:
    """Returns the end of a sweep over Pods of these names, which are one page."""
    sink = RecordingSink()
    made = Sweep(
        "2026-01-01T00:00:00Z",
        Scope(PolicySet(POLICIES)),
        Given({POD: items(names, "space")}),
        NAMESPACES,
        Sinks([sink, Totals(20, [sink])]),
        LOG,
        limits=lambda: UNLIMITED,
        ask=None if ask is None else ask.ask,
    )
    return asyncio.run(made.run()), sink


def test_the_requests_of_a_page_go_out_at_once_and_each_object_is_reported_once() -> None:
    ask = Answers(refused)
    end, sink = sweep(["a", "b", "c"], ask)
    assert [sorted(one.keys for one in requests) for requests in ask.rounds] == [
        [("a",), ("b",), ("c",)]
    ]
    keys_of = {
        audited.identity.name: [request.keys for request in audited.responses.answers or ()]
        for audited in sink.all
        if audited.responses is not None
    }
    assert keys_of == {"a": [("a",)], "b": [("b",)], "c": [("c",)]}
    assert sink.totals == {("Asks", "a"): 3, ("B", "b"): 3}
    assert (end.reviewed, end.violations) == (3, 6)
    assert not end.undecided


def test_of_many_requests_some_go_out_at_a_time() -> None:
    ask = Answers(refused)
    names = [f"p{number}" for number in range(REQUESTS_AT_ONCE + 5)]
    end, sink = sweep(names, ask)
    assert [len(requests) for requests in ask.rounds] == [REQUESTS_AT_ONCE, 5]
    assert sink.totals["Asks", "a"] == end.reviewed == len(names)


def test_where_nobody_is_asked_the_constraint_is_undecided_and_others_are_not() -> None:
    end, sink = sweep(["a"], None)
    assert end.undecided == {("Asks", "a")}
    assert sink.totals == {("B", "b"): 1}


@pytest.mark.parametrize("ask", [Answers(refused), None])
def test_a_single_object_is_reviewed_with_the_answers(ask: Answers | None) -> None:
    reviewer = Reviewer(
        Scope(PolicySet(POLICIES)),
        NAMESPACES,
        LOG,
        lambda: UNLIMITED,
        None if ask is None else ask.ask,
    )
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **items(["a"], "space")[0]}
    responses = asyncio.run(reviewer.review(RESOURCES[POD], obj))
    assert responses is not None
    messages = [one.msg for one in responses.results]
    assert messages == (["a: unsigned", "always"] if ask else ["always"])
