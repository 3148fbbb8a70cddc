"""`waddle status` says what keeps requests from the replicas, and what to do next."""

import json
from typing import Any

from webhook.api.names import IGNORE
from webhook.cli.status.certificates import bundle_faults
from webhook.cli.status.outages import left_out, service_faults, services_called
from webhook.cli.status.report import ClusterStanding, as_json, as_table
from webhook.cli.status.workloads import pod_faults
from webhook.controllers.status.convergence import Convergence, Standing
from webhook.replicas.pods import Replica

OURS = "waddle-system"


def configuration(**client: Any) -> dict[str, Any]:
    """A configuration with one webhook for each failure policy, which call our Service."""
    service = {"name": "waddle-webhook-service", "namespace": OURS, "path": "/v1/admit"}
    webhooks = [
        {"name": name, "failurePolicy": policy, "clientConfig": {"service": service, **client}}
        for name, policy in (("validation", "Ignore"), ("label", "Fail"))
    ]
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "waddle"},
        "webhooks": webhooks,
    }


def slice_of(ready: bool | None) -> dict[str, Any]:
    """An EndpointSlice with one endpoint."""
    return {
        "metadata": {"labels": {"kubernetes.io/service-name": "waddle-webhook-service"}},
        "endpoints": [{"conditions": {} if ready is None else {"ready": ready}}],
    }


SERVICE = {"metadata": {"name": "waddle-webhook-service"}}
CALLED = services_called([configuration()], OURS)


def test_a_service_without_endpoints_is_named_with_what_becomes_of_requests() -> None:
    assert list(service_faults(CALLED, [SERVICE], [slice_of(ready=True)])) == []
    assert list(service_faults(CALLED, [SERVICE], [slice_of(ready=None)])) == []
    for slices in ([], [slice_of(ready=False)]):
        (line,) = service_faults(CALLED, [SERVICE], slices)
        assert line == (
            "the Service waddle-webhook-service has no ready endpoint, so nothing is decided "
            "(requests of label are refused; requests of validation are let through): look at the "
            "Pods, and at the Service's selector"
        )
    (line,) = service_faults(CALLED, [], [slice_of(ready=True)])
    assert "does not exist" in line
    assert line.endswith("apply the manifests")


def test_another_products_service_is_none_of_ours() -> None:
    assert services_called([configuration()], "elsewhere") == {}
    assert list(bundle_faults([configuration()], "elsewhere", None)) == []


def test_a_webhook_without_a_bundle_is_named() -> None:
    (line,) = bundle_faults([configuration()], OURS, None)
    assert "waddle, webhook validation, label: it has no caBundle, so calls fail with x509" in line
    assert "kubectl -n waddle-system logs" in line


def pod(status: dict[str, Any]) -> dict[str, Any]:
    """A replica's Pod."""
    return {"metadata": {"name": "waddle-webhook-0"}, "status": status}


def test_a_pod_that_is_killed_again_and_again_says_why() -> None:
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:00:00Z"}
    container = {
        "name": "webhook",
        "restartCount": 5,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": ended},
    }
    (line,) = pod_faults(pod({"containerStatuses": [container]}))
    assert line == (
        "waddle-webhook-0: container webhook: CrashLoopBackOff: back-off 5m0s; 5 restarts, the last "
        "after OOMKilled at 2026-01-01T00:00:00Z: raise its memory limit"
    )
    ended.update(reason="Error", exitCode=2)
    container["state"] = {"running": {}}
    (line,) = pod_faults(pod({"containerStatuses": [container]}))
    assert "5 restarts, the last after Error, exit code 2 at" in line


def test_a_pod_that_no_node_takes_says_why() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    (line,) = pod_faults(pod({"conditions": [condition]}))
    assert line == "waddle-webhook-0: not scheduled: 0/3 nodes are available"
    waiting = {"name": "webhook", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert list(pod_faults(pod({"containerStatuses": [waiting]}))) == []


def test_namespaces_that_are_left_out_are_listed() -> None:
    named = [
        {"kind": "Namespace", "metadata": {"name": f"team-{number:02}", "labels": {IGNORE: "yes"}}}
        for number in range(12)
    ]
    config = {
        "kind": "Config",
        "metadata": {"name": "config"},
        "spec": {"match": [{"processes": ["webhook"], "excludedNamespaces": ["legacy-*"]}]},
    }
    labels, excluded = left_out([*named, config])
    assert IGNORE in labels
    assert labels.endswith("team-08, team-09 and 2 more")
    assert excluded == "no policy decides in namespaces that Config excludes: legacy-*"
    assert list(left_out([{"kind": "Namespace", "metadata": {"name": "shop"}}])) == []


def test_outages_stand_above_the_table_and_in_the_document() -> None:
    standing = ClusterStanding([], [], [], {}, outages=["the Service is\x1b[1m gone"])
    lines = as_table(standing, OURS).splitlines()
    assert lines[1] == "the Service is\\x1b[1m gone"
    assert json.loads(as_json(standing))["outages"] == ["the Service is\x1b[1m gone"]


def test_an_error_says_which_generation_is_enforced_despite_it_even_the_newest() -> None:
    """A roll-back to a generation that is not kept enforces the spec; a suspended one nothing."""
    replicas = tuple(Replica(name, name, True, False, False) for name in ("w-a", "w-b", "w-c"))
    errors = ({"code": "missing_revision", "message": "there is no revision '1'"},)
    standings = (
        Standing(replicas[0], "error", 3, 3, errors=errors),
        Standing(replicas[1], "error", 3, 3, errors=errors, is_enforcing=False),
        Standing(replicas[2], "error", 3, 0, errors=errors),
    )
    item = Convergence("K8sAlways", "c", "c-uid", 3, standings)
    shown = as_table(ClusterStanding(replicas, (item,), (), {}), OURS).splitlines()
    (row,) = [line for line in shown if line.startswith("K8sAlways/c  ")]
    assert row.split("  ")[-3:] == ["error, 3 in force", "error", "error"]
