"""The library has providers answered by files, values and functions of its caller's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import constraint, template
from tests.webhook.external_data.recorded import ANSWERS, POLICIES, SIGNED
from tests.webhook.mutation.documents import pod
from webhook.library import InvalidInputError, NoVerdictError, Policies

if TYPE_CHECKING:
    from pathlib import Path


def load(providers: Any) -> Policies:
    return Policies.load(values=POLICIES, providers=providers)


def answer(keys: list[str]) -> dict[str, Any]:
    return {"items": {key: ANSWERS["items"][key] for key in keys}}


async def answer_later(keys: list[str]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return answer(keys)


@pytest.mark.parametrize("given", [ANSWERS, answer, answer_later, "file"])
def test_a_provider_is_a_file_a_dictionary_or_a_function(given: Any, tmp_path: Path) -> None:
    if given == "file":
        given = tmp_path / "answers.json"
        given.write_text(json.dumps(ANSWERS))
    policies = load({"images": given})
    assert [one.message for one in policies.review(pod("good", "bad"))] == ["bad: not signed"]
    found = asyncio.run(policies.review_async(pod("bad")))
    assert [one.message for one in found] == ["bad: not signed"]


def test_a_function_runs_on_the_event_loop_of_who_awaits_the_review() -> None:
    loops: list[Any] = []

    async def noted(keys: list[str]) -> dict[str, Any]:
        loops.append(asyncio.get_running_loop())
        return await answer_later(keys)

    async def run() -> None:
        await load({"images": noted}).review_async(pod("bad"))
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(run())


def test_a_number_of_an_answer_is_as_a_provider_would_send_it() -> None:
    telling = SIGNED.replace('sprintf("%v: %v", asked.errors[_])', "json.marshal(asked.responses)")
    values = (template("Signed", telling), constraint("Signed", "all", kinds=["Pod"]))
    given = {"items": {"good": {"value": [2**53 + 1, 1.234e-5]}}}
    (found,) = Policies.load(values=values, providers={"images": given}).review(pod("good"))
    assert found.message == '[["good",[9007199254740992,0.00001234]]]'
    with pytest.raises(InvalidInputError, match="too large for a float64"):
        load({"images": {"items": {"good": {"value": 10**400}}}})


def test_who_is_not_given_is_named_and_what_is_no_answer_refused() -> None:
    with pytest.raises(NoVerdictError, match="no provider images answers here: give"):
        load({}).review(pod("bad"))
    with pytest.raises(InvalidInputError, match=r"providers\['images'\]: unknown field 'item'"):
        load({"images": {"item": {}}})
    with pytest.raises(InvalidInputError, match="systemError must be a string"):
        load({"images": {"systemError": False}})  # as YAML reads `systemError: no`
    with pytest.raises(InvalidInputError, match="must hold a value or an error"):
        load({"images": lambda _: {"items": {"bad": {}}}}).review(pod("bad"))
