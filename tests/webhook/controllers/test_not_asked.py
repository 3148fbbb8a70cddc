"""Policies whose requests are not sent are not reported as enforced; an added rule changes that."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.policies import constraint
from tests.webhook.controllers.session import (
    ALPHAS,
    CONFIGURATIONS,
    EVERYTHING,
    Session,
    configuration,
    enforced,
    session,
    state_of,
    until_says,
)
from webhook.api.shapes import conditions_of

ASKS = (CONFIGURATIONS.group, CONFIGURATIONS.plural)


def reason(replica: Session, *named: str) -> tuple[str, str]:
    """Reason and message of an object's condition Enforced."""
    held = conditions_of(replica.get(*named).get("status", {}))
    one: dict[str, Any] = next((item for item in held if item["type"] == "Enforced"), {})
    return one.get("reason", ""), one.get("message", "")


def test_a_rule_that_comes_and_goes_changes_what_is_said_without_a_restart(tmp_path: Path) -> None:
    """Not asked, then active, then not asked again; each with its reason."""

    async def run() -> None:
        def prepare(replica: Session) -> None:
            replica.make(*ASKS, configuration(apiGroups=["apps"]))

        async with session(tmp_path, *EVERYTHING, prepare=prepare, is_covered=False) as replica:
            await enforced(replica, "c")
            await replica.until(lambda: reason(replica, *ALPHAS, "c")[0] == "NotAsked", "not asked")
            assert not state_of(replica, *ALPHAS, "c")
            assert "no rule of asks sends CREATE, UPDATE of" in reason(replica, *ALPHAS, "c")[1]
            replica.change(*ASKS, "asks", webhooks=configuration()["webhooks"])
            await until_says(replica, "Active", *ALPHAS, "c")
            replica.drop(*ASKS, "asks")
            await replica.until(lambda: reason(replica, *ALPHAS, "c")[0] == "NotAsked", "not asked")
            assert "no ValidatingWebhookConfiguration" in reason(replica, *ALPHAS, "c")[1]

    asyncio.run(run())


@pytest.mark.parametrize(("kinds", "is_asked"), [(["Pod"], True), (["Widget"], False)])
def test_of_a_custom_kind_discovery_says_which_resource_it_is(
    tmp_path: Path, kinds: list[str], is_asked: bool
) -> None:
    """A rule that names other resources than those of a constraint's kinds sends nothing of them."""

    async def run() -> None:
        def prepare(replica: Session) -> None:
            replica.make(*ASKS, configuration(apiGroups=["*"], resources=["pods"]))

        async with session(tmp_path, *EVERYTHING, prepare=prepare, is_covered=False) as replica:
            await enforced(replica, "first")
            document = constraint("Alpha", "c", 0)
            document["spec"]["match"] = {
                "kinds": [{"apiGroups": ["", "example.com"], "kinds": kinds}]
            }
            replica.make(*ALPHAS, document)
            await replica.until(lambda: reason(replica, *ALPHAS, "c")[0], "a condition")
            assert (reason(replica, *ALPHAS, "c")[0] != "NotAsked") is is_asked

    asyncio.run(run())
