"""The keeper of webhook rules: what it says of rules that it does not write."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS
from tests.policies import constraint, template
from tests.webhook.console.listing import Listing
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.kinds import WEBHOOK_CONFIGURATIONS
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.failure_policy import ANNOTATION
from webhook.constraint.targets.known import TARGETS
from webhook.controllers.object_faults import ObjectFaults
from webhook.controllers.rules_keeper import RuleOptions, RulesKeeper
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.review.policy_set import PolicySet
from webhook.serving.revision import Revision

NAMESPACE = "waddle-system"
NAME = "waddle-validating-webhook-configuration"
REGO = 'package refused\n\nviolation[{"msg": "no"}] { true }'
SERVICE = {"namespace": NAMESPACE, "name": "waddle-webhook-service", "path": "/v1/admit/fail"}
CLOSED: dict[str, Any] = {
    "metadata": {"name": NAME},
    "webhooks": [
        {
            "name": "fail.waddle.dev",
            "clientConfig": {"service": SERVICE},
            "failurePolicy": "Fail",
            "rules": [],
        }
    ],
}
"""A configuration with one entry, which fails closed."""

REPAIRED = ["kube-system", "waddle-system"]
LEFT_OUT = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": REPAIRED}
SPARED = {"matchExpressions": [LEFT_OUT]}


def revision_of(*kinds: str) -> Revision:
    """Policies of constraints that hold while no replica answers, one for each kind of objects."""
    client = Client(targets=TARGETS, drivers=[RegoDriver()])
    client.add_template(template("Refused", REGO))
    for kind in kinds:
        closed = {"annotations": {ANNOTATION: "fail"}}
        client.add_constraint(constraint("Refused", kind.lower(), kinds=[kind], metadata=closed))
    return Revision(PolicySet(client.snapshot), client)


def test_the_log_says_which_rules_would_lock_the_cluster_out(tmp_path: Path) -> None:
    """They are written as soon as the entry leaves out what the cluster is repaired by."""
    lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    log = Log(lambda line: lines.put_nowait(json.loads(line))).logger("cluster")

    async def run() -> list[dict[str, Any]]:
        async with (
            ClusterClient(load_credentials(str(listing.kubeconfig))) as client,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            keeper = RulesKeeper(
                *(client, NAMESPACE, RuleOptions(NAME, "", ()), log, Registry(), ObjectFaults(log)),
                is_behind=lambda: False,
            )
            running = tasks.create_task(keeper.run())
            keeper.follow(revision_of("Pod", "Service"))
            found = [await lines.get()]
            (entry,) = CLOSED["webhooks"]
            open_ = {**CLOSED, "webhooks": [{**entry, "namespaceSelector": SPARED}]}
            await asyncio.to_thread(listing.put, WEBHOOK_CONFIGURATIONS, open_)
            found.append(await lines.get())
            running.cancel()
        return found

    with Listing(tmp_path) as listing:
        listing.serve(WEBHOOK_CONFIGURATIONS)
        listing.put(WEBHOOK_CONFIGURATIONS, CLOSED)
        refused, written = asyncio.run(run())
    assert (refused["level"], refused["msg"]) == (
        "warning",
        "rules that policies need are not written",
    )
    assert "fails closed for pods of namespace waddle-system, too: nobody could" in refused["error"]
    assert written["msg"] == "rules of a webhook configuration written"
