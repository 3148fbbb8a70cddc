"""Unsent requests make a policy NotAsked; with the missing rule it is enforced."""

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest

from tests import policies
from tests.catch_all_webhooks import EVERYTHING, NOBODY
from tests.patience import PATIENCE_SECONDS, until
from tests.system.admission_calls import dry_run, register_both
from tests.system.condition_reading import conditions, events, holds, says
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    WEBHOOKS,
    Plane,
    Replica,
    constraint,
    template,
)
from webhook.api.shapes import Json

OTHERS = f"{NOBODY} && request.resource.resource != 'leases'"


def rules(plane: Plane, expression: str) -> None:
    """The condition of the configuration that would send everything."""
    path = f"{WEBHOOKS}/{EVERYTHING}"
    document = plane.api.request("GET", path)
    document["webhooks"][0]["matchConditions"][0]["expression"] = expression
    plane.api.request("PUT", path, document)


def waddle(plane: Plane, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command on the plane."""
    cluster = ("--kubeconfig", str(plane.cluster.kubeconfig), "-n", NAMESPACE)
    return subprocess.run(
        [sys.executable, "-m", "webhook", *arguments, *cluster],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )


def on_leases(name: str, kind: str = "Leased") -> Json:
    """A constraint on Leases."""
    match = {"kinds": [{"apiGroups": ["coordination.k8s.io"], "kinds": ["Lease"]}]}
    document: dict[str, Any] = policies.constraint(kind, name, parameters={"word": name})
    document["spec"]["match"] = match
    return document


@pytest.mark.slow
def test_a_constraint_on_leases_is_not_asked_until_they_are_sent(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """Conditions, an Event, the metric, status and wait say so; without a restart all is well again."""
    path = f"{CONSTRAINTS}/leased/leases"
    fourth = start("waddle-asked", *ALL_OPERATIONS).wait_ready()
    plane.mark_pod(fourth.name, ready=True)  # so that `wait` counts one
    rules(plane, OTHERS)
    made = plane.put_template(template("Leased"))
    try:
        until(lambda: plane.is_generated("leased", made["metadata"]["uid"]), "its CRD is there")
        uid = plane.put_constraint(on_leases("leases"))["metadata"]["uid"]
        until(
            lambda: says(plane, path, "Enforced", "4/4 replicas at generation 1, but no request"),
            "nobody is asked",
        )
        assert holds(plane, path)
        assert conditions(plane, path)["Enforced"]["reason"] == "NotAsked"
        message = conditions(plane, path)["Enforced"]["message"]
        assert f"the matchCondition nobody of {EVERYTHING} leaves out leases" in message
        table = plane.api.request(
            "GET", path, accept="application/json;as=Table;g=meta.k8s.io;v=v1"
        )
        names = [column["name"] for column in table["columnDefinitions"]]
        shown = dict(zip(names, table["rows"][0]["cells"], strict=True))
        assert (shown["state"], shown["reason"]) == (None, "NotAsked"), shown
        until(lambda: "NotAsked" in events(plane, uid), "an Event says so")
        assert events(plane, uid)["NotAsked"]["type"] == "Warning"
        metric = 'waddle_policies{kind="constraint",state="notasked"}'
        for replica in (*trio, fourth):
            until(lambda replica=replica: replica.metric(metric) == 1, "so does a metric")
        status = waddle(plane, "status")
        assert "Leased/leases: NotAsked: the matchCondition" in status.stdout, status

        def says_so() -> bool:  # in three seconds it may not have asked everything yet
            wait = waddle(plane, "wait", "Leased/leases", "--timeout", "3s")
            assert wait.returncode == 1, wait
            return "NotAsked: the matchCondition" in wait.stderr

        until(says_so, "wait says why")

        rules(plane, NOBODY)
        until(lambda: holds(plane, path, "Active", "Enforced"), "it is enforced")
        wait = waddle(plane, "wait", "Leased/leases", f"--timeout={PATIENCE_SECONDS:.0f}s")
        assert wait.returncode == 0, wait
    finally:
        rules(plane, NOBODY)
        plane.delete_template("leased")


TWO_ENTRIES = "two-entries"
SECRET = "c2VjcmV0"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def started(stack: ExitStack, plane: Plane, name: str) -> Replica:
    """A replica that is ready until the test ends, or kills it."""
    stack.callback(plane.delete_pod, name)
    replica = stack.enter_context(Replica(plane, name, *ALL_OPERATIONS)).wait_ready()
    plane.mark_pod(name, ready=True)
    return replica


def reported_unsent(plane: Plane, name: str) -> str:
    """Returns the reason why no replica gets a constraint's requests; empty if one does."""
    found = conditions(plane, f"{CONSTRAINTS}/sent/{name}").get("Enforced") or {}
    return str(found["message"]) if found.get("reason") == "NotAsked" else ""


def denials(plane: Plane) -> tuple[bool, bool]:
    """Whether policies deny a ConfigMap and a Secret."""
    return (
        "[opened]" in dry_run(plane, "configmaps", data={"deny": "opened"}),
        "[closed]" in dry_run(plane, "secrets", data={"deny": SECRET}),
    )


@pytest.mark.slow(60)
def test_who_starts_after_all_were_killed_says_what_is_no_longer_asked(
    silent_plane: Plane, proxy: Proxy
) -> None:
    """An entry fails open and one closed; both change meanwhile, and the API server restarts."""
    plane = silent_plane
    with ExitStack() as stack:
        stack.callback(plane.api.request, "DELETE", f"{WEBHOOKS}/{TWO_ENTRIES}")
        register_both(plane, TWO_ENTRIES, proxy.port, ignore=["configmaps"], fail=["secrets"])
        replicas = [started(stack, plane, f"sent-{number}") for number in range(3)]
        proxy.replicas = list(replicas)
        put_policies(stack, plane)
        until(lambda: reported_unsent(plane, "leases"), "no requests are sent about Leases")
        for name in ("opened", "closed"):
            path = f"{CONSTRAINTS}/sent/{name}"
            until(lambda path=path: says(plane, path, "Enforced", "3/3 replicas"), "all say so")
            assert not reported_unsent(plane, name)
        until(lambda: denials(plane) == (True, True), "both are enforced")

        for replica in replicas:
            replica.kill()
        # Each constraint is now asked about by the entry of the others.
        register_both(plane, TWO_ENTRIES, proxy.port, ignore=["secrets"], fail=["configmaps"])
        plane.cluster.restart()
        assert "failed calling webhook" in dry_run(plane, "configmaps", data={"deny": "opened"})
        assert dry_run(plane, "secrets") == "admitted"
        lease = {"metadata": {"name": "tried"}, "spec": {"holderIdentity": "me"}}
        plane.api.request("POST", f"{LEASES}?dryRun=All", lease)

        proxy.replicas = [started(stack, plane, "sent-again")]
        for name in ("opened", "closed", "leases"):
            until(
                lambda name=name: reported_unsent(plane, name),
                f"{name} is said not to be asked about",
            )
        assert "configmaps" in reported_unsent(plane, "opened")
        assert "secrets" in reported_unsent(plane, "closed")
        assert "leases" in reported_unsent(plane, "leases")
        assert denials(plane) == (False, False)

        register_both(plane, TWO_ENTRIES, proxy.port, ignore=["configmaps"], fail=["secrets"])
        for name in ("opened", "closed"):
            until(
                lambda name=name: not reported_unsent(plane, name), f"{name} is asked about again"
            )
        until(lambda: denials(plane) == (True, True), "both are enforced again")


def put_policies(stack: ExitStack, plane: Plane) -> None:
    """A template with a constraint on ConfigMaps, one on Secrets that fails closed, and one on Leases."""
    made = plane.put_template(template("Sent"))
    stack.callback(plane.delete_template, "sent")
    until(lambda: plane.is_generated("sent", made["metadata"]["uid"]), "its CRD is there")
    closed = constraint("closed", SECRET, "Sent")
    closed["spec"]["match"]["kinds"][0]["kinds"] = ["Secret"]
    closed["metadata"]["annotations"] = {"waddle.dev/failure-policy": "fail"}
    for one in (constraint("opened", "opened", "Sent"), closed, on_leases("leases", "Sent")):
        plane.put_constraint(one)
