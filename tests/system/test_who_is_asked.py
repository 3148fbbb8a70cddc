"""What the API server asks nobody about is NotAsked; with the rule that is missing it is enforced."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests import policies
from tests.asking_everything import EVERYTHING, NOBODY
from tests.patience import until
from tests.system.condition_reading import conditions, events, holds, says
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    WEBHOOKS,
    Plane,
    Replica,
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
        timeout=120,
        check=False,
    )


def on_leases(name: str) -> Json:
    """A constraint on Leases."""
    match = {"kinds": [{"apiGroups": ["coordination.k8s.io"], "kinds": ["Lease"]}]}
    document: dict[str, Any] = policies.constraint("Leased", name, parameters={"word": name})
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
        until(lambda: "NotAsked" in events(plane, uid), "an Event says so")
        assert events(plane, uid)["NotAsked"]["type"] == "Warning"
        metric = 'waddle_policies{kind="constraint",state="notasked"}'
        for replica in (*trio, fourth):
            until(lambda replica=replica: replica.metric(metric) == 1, "so does a metric")
        status = waddle(plane, "status")
        assert "Leased/leases: NotAsked: the matchCondition" in status.stdout, status
        wait = waddle(plane, "wait", "Leased/leases", "--timeout", "3s")
        assert wait.returncode == 1, wait
        assert "NotAsked: the matchCondition" in wait.stderr

        rules(plane, NOBODY)
        until(lambda: holds(plane, path, "Active", "Enforced"), "it is enforced")
        assert waddle(plane, "wait", "Leased/leases", "--timeout", "20s").returncode == 0
    finally:
        rules(plane, NOBODY)
        plane.delete_template("leased")
