"""A walk through the console of a cluster that lives: roll-outs, exceptions, mutators, who is behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, required
from tests.patience import until
from tests.webhook.console import living
from tests.webhook.console.listing import Listing
from tests.webhook.console.running import RunningConsole


@pytest.fixture(scope="module")
def browser(program: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(*required(), tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RunningConsole]:
    with Listing(tmp_path, living.KIND) as listing:
        living.fill(listing)
        with RunningConsole(f"--kubeconfig={listing.kubeconfig}") as running:
            running.ready()
            until(lambda: is_whole(running), "all that the cluster holds is there to be shown")
            yield running


def is_whole(console: RunningConsole) -> bool:
    """Whether its picture has everything: kinds are listed one by one, statuses the last."""
    health = console.get("/health").body.decode()
    return (
        "deployments-have-owners" in str(console.json("/rollouts"))
        and "always-pull" in str(console.json("/policies"))
        and len(console.json("/exceptions")["exceptions"]) == len(living.EXCEPTIONS)
        and living.FAULT in health
        and health.count("It enforces everything.") == len(living.REPLICAS) - 1
    )


def come_to(browser: Browser, link: str, heading: str) -> str:
    """Follow the first link of this text to a page, and read it."""
    browser.run(
        "[...document.querySelectorAll('a')].find(one => one.innerText.trim() === arguments[0]).click()",
        link,
    )
    browser.until(f"return document.querySelector('h1')?.innerText.includes('{heading}')")
    return browser.texts("main")[0]


def test_a_walk_from_a_roll_out_by_its_exception_to_mutators_and_the_replica_that_is_behind(
    browser: Browser, console: RunningConsole
) -> None:
    browser.go(console.address)
    text = come_to(browser, "Roll-outs", "Roll-outs")
    assert "deployments-have-owners" in text
    assert browser.texts(".steps li") == [
        "2026-11-20T08:00:00Z dryrun",
        "2026-11-21T08:04:00Z warn",
    ]
    assert "the audit found 3 violations" in text
    assert "Now warn quiet=24h, then deny." in text

    text = come_to(browser, "RequiredLabel/deployments-have-owners", "deployments-have-owners")
    assert "legacy-billing" in text, "whom it leaves out"
    assert "waddle.dev/rollout-pause" in text
    assert "waddle.dev/rollout-abort" in text
    assert browser.texts(".steps li") != []

    text = come_to(browser, "Policies", "Policies")
    assert "always-pull" in text
    assert f"2 of 3\n{living.REPLICAS[-1]}: error" in text, "the generation is not what is behind"
    text = come_to(browser, "Assign/always-pull", "always-pull")
    assert "imagePullPolicy" in text

    text = come_to(browser, "Health", "Health")
    assert living.FAULT in text
    assert text.count("It enforces everything.") == len(living.REPLICAS) - 1
    come_to(browser, "RequiredLabel/pods-have-teams", "pods-have-teams")
    assert browser.complaints(console.address) == []


def test_a_walk_from_exceptions_to_the_group_that_they_are_from_and_back(
    browser: Browser, console: RunningConsole
) -> None:
    browser.go(console.address)
    text = come_to(browser, "Exceptions", "Exceptions")
    assert text.index("shop/moving") < text.index("shop/forgotten"), "what ends first"
    assert "it ends at 2098-01-01T00:00:00Z" in text
    assert "it has excused nothing for 40 days" in text

    text = come_to(browser, "ConstraintGroup/either-label", "either-label")
    assert "owner() || team()" in text
    assert "What is excused" in text
    assert "shop/moving" in text
    for replica in living.REPLICAS:
        assert replica in text

    text = come_to(browser, "Policies", "Policies")
    assert "ConstraintGroup/either-label" in text
    come_to(browser, "Exceptions", "Exceptions")
    text = come_to(browser, "PolicyException/shop/moving", "moving")
    assert "it must" in text, "the reason"
    assert browser.complaints(console.address) == []
