"""`waddle check --cluster` and the console read from the API server which requests it sends."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import policies
from tests.behaviour.stages import Stage
from tests.catch_all_webhooks import EVERYTHING, NOBODY, install_catch_all_webhooks
from tests.cluster import Cluster
from tests.patience import until
from tests.webhook.cli.in_process import waddle
from tests.webhook.console.running import RunningConsole

LEFT_OUT = f"the matchCondition nobody of {EVERYTHING} leaves out leases"
LEASES = {"kinds": [{"apiGroups": ["coordination.k8s.io"], "kinds": ["Lease"]}]}


@pytest.fixture
def without_leases(cluster: Cluster) -> Iterator[None]:
    """The configurations of the cluster leave out Leases, until the test ends."""
    install_catch_all_webhooks(cluster.api, f"{NOBODY} && request.resource.resource != 'leases'")
    yield
    install_catch_all_webhooks(cluster.api)


@pytest.mark.usefixtures("without_leases")
def test_check_reads_what_the_cluster_sends(stage: Stage, tmp_path: Path) -> None:
    constraint = policies.constraint("Leased", "c")
    constraint["spec"]["match"] = LEASES
    file = tmp_path / "policies.yaml"
    rego = 'package leased\nviolation[{"msg": "no"}] { false }'
    file.write_text(
        "\n---\n".join(map(json.dumps, (policies.template("Leased", rego), constraint)))
    )

    def unsent() -> list[str]:
        run = waddle("check", "--cluster", "-f", file, "-o", "json", *stage.options())
        assert run.returncode == 0, run.stderr
        problems = json.loads(run.stdout)["problems"]
        return [one["message"] for one in problems if one["code"] == "not_asked"]

    (message,) = unsent()
    assert message.startswith("NotAsked: nobody is asked about it")
    assert LEFT_OUT in message
    install_catch_all_webhooks(stage.api)
    assert unsent() == []


@pytest.mark.usefixtures("without_leases")
def test_the_console_follows_what_the_cluster_sends(stage: Stage) -> None:
    stage.constraint["spec"] = {"match": LEASES}
    stage.constraint = stage.api.request("PUT", stage.constraint_path, stage.constraint)
    stage.say(stage.replica("a"), stage.constraint)
    path = f"/policy?kind={stage.kind}&name={stage.name}"
    with RunningConsole(*stage.options()) as console:
        console.ready()
        until(lambda: console.get(path).status == 200, "the constraint")

        def state() -> str:
            return str(console.json(path)["policy"]["state"])

        until(lambda: state() == "not asked", "nobody is asked")
        assert LEFT_OUT in str(console.json(path)["policy"]["faults"])
        install_catch_all_webhooks(stage.api)
        until(lambda: state() == "active", "the API server asks")
        assert LEFT_OUT not in console.get(path).body.decode()
