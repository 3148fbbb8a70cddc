"""One replica tries a new policy in a bounded process before any replica enforces it."""

import contextlib
import copy
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bounded_trials import end_trials
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.gate import Gate
from tests.system.replicas import (
    CRD_PATH,
    CRDS,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
)
from webhook.api.revision import digest_of, name_of

REVISIONS = "/apis/policy.waddle.dev/v1alpha1/policyrevisions"
ENDED = 'waddle_policy_trials_total{outcome="ended"}'

LARGE = "package large\n" + "\n".join(
    f'violation[{{"msg": "m{i}"}}] {{ input.review.object.spec.a{i} == {i} }}'
    for i in range(18_000)
)
"""1.3 MB, which takes 9 s of a processor, of 5 that a process has that tries it."""


def outcomes(plane: Plane, name: str) -> dict[int, dict[str, Any]]:
    """The outcomes of an object's generations."""
    return {
        item["spec"]["generation"]: item.get("status", {}).get("outcome", {})
        for item in plane.api.request("GET", REVISIONS)["items"]
        if item["spec"]["subject"]["name"] == name
    }


def verdicts(plane: Plane, name: str) -> dict[int, str]:
    """Returns the verdicts, by generation."""
    return {number: found.get("verdict", "") for number, found in outcomes(plane, name).items()}


def test_what_is_enforced_has_its_outcome_in_its_revision_already(
    plane: Plane, trio: list[Replica]
) -> None:
    """Of a template and of constraints: whoever denies has read or written it."""
    plane.put_template(template("Tried"))
    plane.put_constraint(constraint("tried-words", "first", "Tried"))
    until(lambda: any(replica.denies("first") for replica in trio), "one denies")
    assert verdicts(plane, "tried") == {1: "passed"}
    assert verdicts(plane, "tried-words")[1] == "passed"
    found = outcomes(plane, "tried")[1]
    assert found["triedBy"]["pod"] in {replica.name for replica in trio}
    assert found["memoryBytes"] > 1 << 20
    until(lambda: all(replica.denies("first") for replica in trio), "all deny")
    plane.put_constraint(constraint("tried-words", "second", "Tried"))
    until(lambda: any(replica.denies("second") for replica in trio), "one denies what is new")
    assert verdicts(plane, "tried-words")[2] == "passed"
    plane.delete_template("tried")


def test_what_goes_beyond_its_bounds_at_one_replica_is_tried_by_no_other(
    plane: Plane, trio: list[Replica], start: StartReplica, request: pytest.FixtureRequest
) -> None:
    """A later replica does not try it either; all name the trier, and the old policy stays."""
    request.addfinalizer(lambda: plane.delete_template("large"))
    made = plane.put_template(template("Large"))
    plane.put_constraint(constraint("words", "large", "Large"))
    until(lambda: all(replica.denies("large") for replica in trio), "all deny")
    before = [(replica.metric(ENDED) or 0) for replica in trio]

    path = f"{TEMPLATES}/large"
    # The word of a replica counts with the others once they know of it, by its statuses.
    until(lambda: generations(plane, path) == [1, 1, 1], "each knows of the others")
    hostile = plane.put_template(template("Large", LARGE))

    def messages() -> set[str]:
        entries = plane.by_pod(path)
        return {
            error["message"]
            for entry in entries
            if entry["observedGeneration"] == 2
            for error in entry.get("errors", ())
        }

    until(lambda: verdicts(plane, "large").get(2) == "trying", "one says that it is at it")
    ended: set[int] = set()

    def is_ended() -> bool:
        ended.update(end_trials(replica.process.pid for replica in trio))
        return verdicts(plane, "large").get(2) == "ended"

    until(is_ended, "its outcome stands")
    until(lambda: generations(plane, path) == [2, 2, 2], "all have seen it")
    assert len(ended) == 1
    found = outcomes(plane, "large")[2]
    by = f"(tried by {found['triedBy']['pod']})"

    def all_name_the_trier() -> bool:
        entries = [entry.get("errors") for entry in plane.by_pod(path)]
        return all(entries) and len(messages()) == 1 and all(m.endswith(by) for m in messages())

    until(all_name_the_trier, lambda: f"all name who tried it: {messages()}")
    assert all("policy is too large: it takes more than" in message for message in messages())
    after = [(replica.metric(ENDED) or 0) for replica in trio]
    assert sum(after) - sum(before) == 1
    assert all(replica.denies("large") for replica in trio)

    later = start("later", "--operation=webhook", "--operation=status").wait_ready()
    assert later.denies("large")
    assert not later.metric(ENDED)
    # The next enforceable revision drops the unenforceable ones.
    plane.put_template(template("Large", template("Large")["spec"]["targets"][0]["rego"] + "\n"))
    until(lambda: verdicts(plane, "large").get(3) == "passed", "it is mended")
    until(lambda: 2 not in verdicts(plane, "large"), "the faulty one is dropped")
    name = name_of(made, digest_of(made))
    assert name in [
        item["metadata"]["name"] for item in plane.api.request("GET", REVISIONS)["items"]
    ]
    assert hostile["metadata"]["generation"] == 2


def test_a_large_policy_is_tried_by_one_though_the_api_server_is_long_in_taking_its_word(
    empty_plane: Plane, tmp_path: Path
) -> None:
    """Each of them would spend seconds of a processor on what one of them knows to be too large."""
    plane = empty_plane
    with contextlib.ExitStack() as stack:
        gate = Gate(plane.api, tmp_path)
        stack.callback(gate.close)
        flags = (*ALL_OPERATIONS, f"--kubeconfig={gate.kubeconfig}")
        pair = []
        for number in range(2):
            stack.callback(plane.delete_pod, f"claims-{number}")
            pair.append(stack.enter_context(Replica(plane, f"claims-{number}", *flags)))
        for replica in pair:
            replica.wait_ready()
        stack.callback(plane.delete_template, "claimed")
        plane.put_template(template("Claimed"))
        path = f"{TEMPLATES}/claimed"
        # The word of a replica counts with the others once they know of it, by its statuses.
        until(lambda: generations(plane, path) == [1, 1], "each knows of the other")
        gate.hold(is_about_revisions)
        plane.put_template(template("Claimed", LARGE.replace("package large", "package claimed")))
        gate.wait_for(2)
        gate.open()

        def is_ended() -> bool:
            end_trials(replica.process.pid for replica in pair)
            return verdicts(plane, "claimed").get(2) == "ended"

        until(is_ended, "its outcome stands")
        until(lambda: generations(plane, path) == [2, 2], "both have seen it")
        until(lambda: any(replica.metric(ENDED) for replica in pair), "one counts it")
        assert sum(replica.metric(ENDED) or 0 for replica in pair) == 1


def generations(plane: Plane, path: str) -> list[int]:
    """Returns the generation of an object that each replica has seen."""
    return [one["observedGeneration"] for one in plane.by_pod(path)]


def is_about_revisions(path: str) -> bool:
    """Whether a request is about revisions, and no list or watch of them."""
    return "/policyrevisions" in path and "watch=" not in path and "limit=" not in path


def test_of_generations_that_cannot_be_enforced_the_newest_alone_is_kept(
    plane: Plane, trio: list[Replica]
) -> None:
    """Of a template that never could be, too."""
    broken = template("Refused", "package refused\nviolation[{")
    for number in range(1, 4):
        document = copy.deepcopy(broken)
        document["spec"]["targets"][0]["rego"] += "\n" * number
        plane.put_template(document)
        until(lambda number=number: verdicts(plane, "refused").get(number) == "refused", "tried")
    until(lambda: verdicts(plane, "refused") == {3: "refused"}, "the others are dropped")
    assert outcomes(plane, "refused")[3]["message"]
    assert len(trio) == 3
    plane.delete_template("refused")


def test_a_replica_that_stands_still_keeps_no_policy_from_the_others(
    plane: Plane, trio: list[Replica]
) -> None:
    """Whichever of three is first in turn: of six changes some are the stopped one's."""
    plane.put_template(template("Still"))
    plane.put_constraint(constraint("words", "still-0", "Still"))
    until(lambda: all(replica.denies("still-0") for replica in trio), "all deny")
    stopped, *others = trio
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        for number in range(1, 7):
            plane.put_constraint(constraint(f"words-{number}", f"still-{number}", "Still"))
        for number in range(1, 7):
            for replica in others:
                until(lambda r=replica, n=number: r.denies(f"still-{n}"), "each denies")
    finally:
        stopped.process.send_signal(signal.SIGCONT)
    until(lambda: stopped.denies("still-6"), "so does the one that stood still")
    plane.delete_template("still")


def test_without_a_place_for_outcomes_policies_are_enforced_as_ever(
    empty_plane: Plane,
) -> None:
    """The cluster has an earlier CRD, which keeps no outcomes; replicas report that."""
    crd = yaml.safe_load((CRDS / "policyrevisions.yaml").read_text())
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    del crd["spec"]["versions"][0]["additionalPrinterColumns"]
    empty_plane.api.apply(f"{CRD_PATH}/{crd['metadata']['name']}", crd)
    until(lambda: is_pruned(empty_plane), "the API server drops what it does not know")
    with Replica(empty_plane, "lonely", *ALL_OPERATIONS) as replica:
        replica.wait_ready()
        empty_plane.put_template(template("Placeless"))
        empty_plane.put_constraint(constraint("words", "placeless", "Placeless"))
        until(lambda: replica.denies("placeless"), "it denies")
        replica.wait_for("the outcome of a trial was not written")
        events = [event for event in replica.events if "keeps no outcome" in event.get("error", "")]
        assert {event["msg"] for event in events} == {"the outcome of a trial was not written"}
        empty_plane.delete_template("placeless")
    empty_plane.delete_pod("lonely")
    whole = yaml.safe_load((CRDS / "policyrevisions.yaml").read_text())
    empty_plane.api.apply(f"{CRD_PATH}/{whole['metadata']['name']}", whole)
    until(lambda: not is_pruned(empty_plane), "the API server keeps it again")


def is_pruned(plane: Plane) -> bool:
    """Whether a revision that is made now loses its status; it is not kept."""
    subject = {"apiVersion": "v1", "kind": "None", "name": "none", "uid": "none"}
    body = {
        "apiVersion": "policy.waddle.dev/v1alpha1",
        "kind": "PolicyRevision",
        "metadata": {"name": "none"},
        "spec": {"subject": subject, "generation": 1, "digest": "0" * 16, "content": "{}"},
        "status": {"outcome": {"verdict": "passed"}},
    }
    return "status" not in plane.api.request("POST", f"{REVISIONS}?dryRun=All", body)
