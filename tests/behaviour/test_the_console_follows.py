"""`waddle console` at an API server that lists and watches: what is there is shown, and goes."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.consoles import CONSTRAINTS, in_namespace, template
from tests.patience import PATIENCE_SECONDS, until
from tests.webhook.console.assembled import KIND, pod, policy, report, status_by
from tests.webhook.console.listing import Listing
from tests.webhook.console.pictures import HOSTILE, SCRIPT
from tests.webhook.console.running import RunningConsole
from webhook.api import pod_status
from webhook.cli.cluster_access import TEMPLATES
from webhook.cluster.kinds import PODS
from webhook.controllers.status_kinds import status_resource
from webhook.reports.report_api import WGPOLICY


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[Listing]:
    with Listing(tmp_path, KIND) as served:
        served.put(TEMPLATES, template())
        served.put(CONSTRAINTS, policy())
        yield served


@pytest.fixture
def console(listing: Listing) -> Iterator[RunningConsole]:
    with RunningConsole("--kubeconfig", str(listing.kubeconfig)) as running:
        yield running.ready()


def test_policies_replicas_and_reports_come_and_go(listing: Listing, console: RunningConsole):
    path = f"/policy?kind={KIND}&name=owner"
    until(lambda: console.get(path).status == 200, "the constraint")
    assert console.json(path)["policy"]["state"] == "pending"
    listing.put(PODS, in_namespace(pod("a")))
    listing.put(status_resource(pod_status.CONSTRAINT), status_by("a", policy()))
    until(lambda: console.json(path)["policy"]["state"] == "active", "a replica enforces it")
    assert console.json("/")["replicas"] == {"total": 1, "ready": 1, "terminating": 0, "differ": 0}
    reports = [
        report(text, {"result": "fail", "message": text, "properties": {"action": "deny"}})
        for text in HOSTILE
    ]
    for index, item in enumerate(reports):
        item["metadata"]["name"] = f"r{index}"
    listing.put(WGPOLICY.namespaced, *reports)
    until(lambda: len(console.json("/violations")["rows"]) == len(HOSTILE), "the violations")
    assert SCRIPT.encode() not in console.get("/violations").body
    listing.delete(WGPOLICY.namespaced, reports[0])
    until(lambda: len(console.json("/violations")["rows"]) == len(HOSTILE) - 1, "one has gone")
    listing.delete(CONSTRAINTS, policy())
    until(lambda: console.get(path).status == 404, "the constraint has gone")


def replica(name: str) -> Any:
    """A replica that answers probes."""
    made = in_namespace(pod(name))
    ports = [{"name": "health", "containerPort": 9440}]
    made["spec"] = {"containers": [{"name": "webhook", "ports": ports}]}
    made["status"] = {**made["status"], "podIP": "10.0.0.1"}
    return made


def test_replicas_are_asked_for_their_reports_only_while_a_page_shows_them(
    listing: Listing, console: RunningConsole
):
    """A page does not wait for a replica that is silent; the one after it has the report."""
    listing.reports["a"] = "[!]the clock is wrong\n[+]policies ok\n"
    listing.put(PODS, replica("a"), replica("b"))
    until(lambda: console.json("/")["replicas"]["total"] == 2, "the replicas")
    for path in ("/policies", "/violations", "/rollouts"):
        console.json(path)
    assert listing.reported == [], "no page has shown a report"

    def notes() -> dict[str, list[str]]:
        return {item["name"]: item["notes"] for item in console.json("/health")["replicas"]}

    assert notes()["b"], "it has not come"
    listing.reports["b"] = "[+]policies ok\n"
    until(lambda: notes() == {"a": ["the clock is wrong"], "b": []}, "the reports")


def test_an_open_page_of_health_follows_what_replicas_report(
    listing: Listing, console: RunningConsole
):
    """Nothing else changes, so the sign of life of the page's stream reads the reports."""
    listing.reports["a"] = "[+]policies ok\n"
    listing.put(PODS, replica("a"))
    assert b'data-events="/events?replicas"' in console.get("/health").body

    def notes() -> list[list[str]]:
        return [item["notes"] for item in console.json("/health")["replicas"]]

    until(lambda: notes() == [[]], "the report")
    listing.reports["a"] = "[!]the clock is wrong\n[+]policies ok\n"
    address = f"{console.address}/events?replicas"
    with urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as stream:
        numbers = (line for line in stream if line.startswith(b"data: "))
        assert next(numbers) != next(numbers)
    assert notes() == [["the clock is wrong"]]


def test_the_playground_compiles_what_the_cluster_holds(listing: Listing, console: RunningConsole):
    form = {"mode": "review", "input": "{apiVersion: v1, kind: Pod, metadata: {name: a}}"}

    def denied() -> bool:
        outcome = console.post("/playground?format=json", form).json()["outcome"]
        return bool(outcome["reviews"][0]["allowed"] is False)

    until(denied, "the constraint of the cluster denies it")
    listing.put(CONSTRAINTS, policy(spec={"parameters": {"label": "other"}}))
    until(lambda: not denied(), "it does not any more")


def test_what_may_not_be_read_or_is_not_served_is_said(listing: Listing, console: RunningConsole):
    def states() -> dict[str, str]:
        return {item["kind"]: item["state"] for item in console.json("/health")["kinds"]}

    until(lambda: any("followed" in one for one in states().values()), "what is followed")
    until(
        lambda: all("not known yet" not in one for one in states().values()), "every kind is told"
    )
    [revisions] = [state for kind, state in states().items() if "PolicyRevision" in kind]
    assert revisions.startswith("not served")
    until(lambda: console.json("/")["shown"]["trouble"] == [], "nothing is wrong")


def test_an_api_server_that_goes_away_leaves_what_was_known_and_is_reported(tmp_path: Path):
    with Listing(tmp_path, KIND) as listing:
        listing.put(TEMPLATES, template())
        console = RunningConsole("--kubeconfig", str(listing.kubeconfig))
        with console:
            console.ready()
            until(lambda: console.json("/policies")["policies"], "the template")
            listing.__exit__()
            until(
                lambda: "cannot be asked" in str(console.json("/")["shown"]["trouble"]), "trouble"
            )
            assert [item["name"] for item in console.json("/policies")["policies"]] == [
                "requiredlabel"
            ]
            assert b"cannot be asked" in console.get("/policies").body
