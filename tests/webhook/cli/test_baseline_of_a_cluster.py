"""``waddle except --baseline`` at a simulated API server: owners of many forms, and what they make."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import policies
from tests.properties.doors.in_cluster import hold
from tests.simulation.api_server import Served
from tests.webhook.cli.in_process import Run, waddle
from tests.webhook.controllers.session import NAMESPACE, Session, session
from webhook.exceptions.reading import read_exception

if TYPE_CHECKING:
    from pathlib import Path

LATEST = """package nolatest
violation[{"msg": "latest"}] { endswith(input.review.object.spec.containers[_].image, ":latest") }
"""
APPS = ("ReplicaSet", "Deployment", "StatefulSet")
SERVED = (
    Served("", "v1", "pods", "Pod", namespaced=True),
    Served("", "v1", "configmaps", "ConfigMap", namespaced=True),
    *(Served("apps", "v1", f"{kind.lower()}s", kind, namespaced=True) for kind in APPS),
)
POLICIES = [
    policies.template("NoLatest", LATEST),
    policies.constraint(
        "NoLatest",
        "latest",
        match={"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]},
        enforcementAction="dryrun",
    ),
    policies.expansion_template("of-deployments"),
    *policies.CRONJOB_EXPANSIONS,
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
]
BAD = {"containers": [{"name": "c", "image": "a:latest"}]}


def thing(kind: str, name: str, owner: Any = None, /, **fields: Any) -> dict[str, Any]:
    """An object in ``shop``, made by its owner."""
    group = "" if kind in ("Pod", "ConfigMap") else "batch" if "Job" in kind else "apps"
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "labels": {"app": name[:3]}}
    if owner is not None:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": owner["metadata"]["name"], "controller": True}
        metadata["ownerReferences"] = [reference]
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def workload(kind: str, name: str, owner: Any = None) -> dict[str, Any]:
    """A workload whose Pods violate the policy."""
    labels = {"app": name[:3]}
    spec = {"selector": {"matchLabels": labels}, "template": {"spec": BAD, "metadata": {}}}
    return thing(kind, name, owner, spec=spec)


def written(folder: Path, *objects: dict[str, Any], **spec: Any) -> Run:
    """Runs the command in a cluster of these objects; ``spec`` changes the constraint's."""
    template, constraint, *others = POLICIES
    held = [template, {**constraint, "spec": {**constraint["spec"], **spec}}, *others]

    def prepare(replica: Session) -> None:
        for served in SERVED:
            replica.storage.serve(served)
        hold(replica.storage, held)
        uids: dict[str, str] = {}
        kinds = {served.kind: served for served in replica.storage.kinds.values()}
        for document in objects:
            metadata = document["metadata"]
            for reference in metadata.get("ownerReferences", ()):
                reference["uid"] = uids[reference["name"]]  # else it is collected
            made = replica.storage.create(kinds[document["kind"]], "shop", document)
            uids[metadata["name"]] = made["metadata"]["uid"]

    async def run() -> Run:
        async with session(folder, "webhook", prepare=prepare):
            place = "--waddle-namespace", NAMESPACE, "--kubeconfig", str(folder / "kubeconfig")
            command = "except", "--baseline", "--constraint", "latest", "--reason", "old", *place
            return await asyncio.to_thread(waddle, *command)

    return asyncio.run(run())


def excused(run: Run) -> dict[tuple[str, str], dict[str, str]]:
    """The selectors by kind and name of what is excused."""
    found = {}
    for document in yaml.safe_load_all(run.stdout):
        read_exception(document)
        match = document["spec"]["match"]
        labels = match.get("labelSelector", {}).get("matchLabels", {})
        found[match["kinds"][0]["kinds"][0], match["name"]] = labels
    return found


def test_what_a_workload_makes_later_is_excused_and_owners_are_those_that_give_the_name(
    tmp_path: Path,
) -> None:
    """Pods of a sleeping Deployment, of a CronJob, and of an operator's Deployment were refused."""
    followed = thing("ConfigMap", "main")
    grafana = workload("Deployment", "grafana", followed)
    replica_set = workload("ReplicaSet", "grafana-5f9", grafana)
    long = workload("StatefulSet", f"{'a' * 57}bc")
    jobs = {"spec": {"template": {"spec": BAD, "metadata": {}}}}
    run = written(
        tmp_path,
        *(followed, grafana, replica_set, long, workload("Deployment", "sleeps")),
        thing("CronJob", "weekly", spec={"jobTemplate": jobs}),
        thing("Pod", "grafana-5f9-aaaaa", replica_set, spec=BAD),
        thing("Pod", f"{'a' * 57}b12345", long, spec=BAD),
        *(thing("Pod", f"alone-{number}", spec=BAD) for number in range(300)),
    )
    assert run.returncode == 0, run.stderr
    found = excused(run)
    assert {key: labels for key, labels in found.items() if "alone" not in key[1]} == {
        ("Deployment", "grafana"): {},
        ("Pod", "grafana-*"): {"app": "gra"},
        ("Deployment", "sleeps"): {},
        ("Pod", "sleeps-*"): {"app": "sle"},
        ("CronJob", "weekly"): {},
        ("Pod", "weekly-*"): {},
        ("Pod", f"{'a' * 57}b*"): {"app": "aaa"},
    }


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            {
                "enforcementAction": "scoped",
                "scopedEnforcementActions": [
                    {
                        "action": "dryrun",
                        "enforcementPoints": [{"name": "validation.gatekeeper.sh"}],
                    }
                ],
            },
            "not audited: NoLatest/latest: it has no action at audit.gatekeeper.sh",
        ),
        (
            {"match": {"excludedNamespaces": ["sh*"], "processes": ["audit"]}},
            "not audited in sh*: NoLatest/latest: its processes leave it out of the audit alone",
        ),
    ],
)
def test_what_the_webhook_refuses_and_the_audit_does_not_see_is_no_whole_baseline(
    spec: dict[str, Any], line: str, tmp_path: Path
) -> None:
    """It said that nothing had to be excused, and the policy then refused what ran."""
    run = written(tmp_path, thing("Pod", "x", spec=BAD), **spec)
    assert run.returncode == 2
    assert line in run.stderr
