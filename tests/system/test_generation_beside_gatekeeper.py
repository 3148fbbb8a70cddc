"""Both generate policies of the same template on one cluster: no fights, then a takeover."""

from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loadtest.bench.gatekeeper import POD
from tests.patience import until
from tests.system.beside import run
from tests.system.conftest import ALL_OPERATIONS
from tests.system.generated import (
    BINDINGS,
    NO_WAIT,
    POLICIES,
    UNLIKE,
    InCel,
    constraint,
    refusal,
    state,
    template,
)
from tests.system.peer import Gatekeeper
from tests.system.replicas import CONSTRAINTS, STATUSES, TEMPLATES, Plane, config_map
from tests.system.rounds import PREFIX, Rounds, others
from webhook.controllers.generate.objects import REWRITES_MAX

NAMES = [f"generates-{number}" for number in range(2)]

GENERATE = "--operation=webhook,generate"
"""The operations of a replica beside Gatekeeper that also generates policies."""


@pytest.mark.slow(40)
def test_beside_a_gatekeeper_that_generates_nobody_fights_and_then_waddle_takes_over(
    peers_plane: Plane, tmp_path: Path
) -> None:
    """The names are the same, and the API server refuses the same all along."""
    plane = peers_plane
    with ExitStack() as stack, closing(Rounds(plane, InCel(plane))) as rounds:
        peer = Gatekeeper(plane, tmp_path, ("webhook", "status", "generate"), NO_WAIT)
        stack.enter_context(peer)
        plane.put_template(template("Shared", UNLIKE))
        plane.put_constraint(constraint("one", "Shared", "bad"))
        until(lambda: "denied: bad" in refusal(plane, config_map("bad")), "the API server refuses")
        theirs = generated(plane)

        run(plane, stack, ["serves"], "--operation=webhook", NO_WAIT)
        written = partial(policies_written, plane)
        rounds.rest(["serves", POD], written, shown=[POD])
        assert policies_written(plane) == [], "who does not generate writes none"
        run(plane, stack, NAMES, GENERATE, NO_WAIT)
        rounds.rest(["serves", *NAMES, POD], written, shown=[POD])
        most = REWRITES_MAX * len(NAMES)
        assert len(policies_written(plane)) <= most, policies_written(plane)
        assert generated(plane).keys() == theirs.keys(), "no other names"
        until(lambda: all(says_how_it_is(plane, name) for name in NAMES), "each says how it is")
        assert not refusal(plane, config_map("good"))
        assert "denied: bad" in refusal(plane, config_map("bad"))

        peer.stop()
        for name in ("serves", *NAMES):
            plane.delete_pod(name)
        stack.pop_all().close()
        names = [f"after-{number}" for number in range(2)]
        after = run(plane, stack, names, *ALL_OPERATIONS, NO_WAIT)
        taken = ["generated"] * len(after)
        until(lambda: state(plane, f"{TEMPLATES}/shared") == taken, "all say so of the template")
        until(lambda: state(plane, f"{CONSTRAINTS}/shared/one") == taken, "and of the constraint")
        ours = generated(plane)
        assert ours.keys() == theirs.keys()
        assert ours["gatekeeper-shared-one"] == theirs["gatekeeper-shared-one"]
        policy, before = ours["gatekeeper-shared"], theirs["gatekeeper-shared"]
        for part in ("paramKind", "matchConstraints", "validations"):
            assert policy[part] == before[part]
        names_of = {
            part: [[item["name"] for item in given[part]] for given in (before, policy)]
            for part in ("matchConditions", "variables")
        }
        assert names_of["variables"][0] == names_of["variables"][1]
        # Gatekeeper's policies refuse updates that only remove finalizers.
        spared = "gatekeeper_internal_match_not_released"
        assert [*names_of["matchConditions"][0], spared] == names_of["matchConditions"][1]
        assert (before["failurePolicy"], policy["failurePolicy"]) == ("Fail", "Ignore")
        assert "denied: bad" in refusal(plane, config_map("bad"))
        rounds.rest(names, written)
        plane.delete_templates()


def generated(plane: Plane) -> dict[str, Any]:
    """Returns the generated objects by name, without those of rounds."""
    return {
        one["metadata"]["name"]: one["spec"]
        for place in (POLICIES, BINDINGS)
        for one in plane.api.request("GET", place)["items"]
        if PREFIX not in one["metadata"]["name"]
    }


def says_how_it_is(plane: Plane, name: str) -> bool:
    """Whether a replica's own status of the template says whose policy there is by now.

    Who wrote last is chance; where that is Gatekeeper, each replica has let it be.
    """
    ours = generated(plane)["gatekeeper-shared"]["failurePolicy"] == "Ignore"
    expected = "" if ours else "is written by somebody else, too"
    for one in plane.api.request("GET", f"{STATUSES}/constrainttemplatepodstatuses")["items"]:
        if one["status"]["id"] == name:
            status = one["status"].get("vapGenerationStatus", {})
            warning = status.get("warning", "")
            return status.get("state") == ("generated" if ours else "error") and expected in warning
    return False


def policies_written(plane: Plane) -> list[str]:
    """Returns the replicas' writes of policies and bindings."""
    return [line for line in others(plane.writes()) if "validatingadmission" in line]
