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
violation[{"msg": "many"}] { input.review.object.kind == "Scale"; input.review.object.spec.replicas > 3 }
"""
APPS = ("ReplicaSet", "Deployment", "StatefulSet")
SERVED = (
    Served("", "v1", "pods", "Pod", namespaced=True),
    Served("", "v1", "configmaps", "ConfigMap", namespaced=True),
    Served("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True),
    *(Served("apps", "v1", f"{kind.lower()}s", kind, namespaced=True) for kind in APPS),
    Served("batch", "v1", "jobs", "Job", namespaced=True),
    Served("", "v1", "replicationcontrollers", "ReplicationController", namespaced=True),
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
    core = ("Pod", "ConfigMap", "PersistentVolumeClaim", "ReplicationController")
    group = "" if kind in core else "batch" if "Job" in kind else "apps"
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


def written(
    folder: Path,
    *objects: dict[str, Any],
    config: dict[str, Any] | None = None,
    expands: bool = True,
    **spec: Any,
) -> Run:
    """Runs the command in a cluster of these objects; ``spec`` changes the constraint's."""
    template, constraint, *others = POLICIES
    others = others if expands else [item for item in others if item["kind"] == "Namespace"]
    held = [template, {**constraint, "spec": {**constraint["spec"], **spec}}, *others]
    held += [] if config is None else [config]

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
        ("Job", "weekly-*"): {},
        ("Pod", f"{'a' * 57}b*"): {"app": "aaa"},
    }


def test_what_idle_workloads_make_later_is_excused_without_expansions(tmp_path: Path) -> None:
    """A CronJob between two runs had no Job and no Pod to see, and its next run was refused."""
    fine = {"containers": [{"name": "c", "image": "a:1"}]}
    mended, runs = workload("Deployment", "mended"), workload("StatefulSet", "runs")
    mended["spec"]["template"]["spec"] = fine
    runs["status"] = {"replicas": 1}
    job = {"spec": {"template": {"spec": BAD}}}
    suspended = workload("Job", "import")
    suspended["spec"]["suspend"] = True
    older = thing("ReplicationController", "older", spec={"selector": {"app": "old"}})
    older["spec"] |= {"template": {"spec": BAD, "metadata": {"labels": {"app": "old"}}}}
    run = written(
        tmp_path,
        *(workload("Deployment", "sleeps"), mended, workload("ReplicaSet", "mended-1", mended)),
        *(runs, suspended, workload("Job", "done"), older),
        thing("CronJob", "weekly", spec={"jobTemplate": job}),
        expands=False,
    )
    assert run.returncode == 0, run.stderr
    assert excused(run) == {
        ("Pod", "sleeps-*"): {"app": "sle"},
        ("Pod", "weekly-*"): {},
        ("Pod", "import-*"): {"app": "imp"},
        ("Pod", "older-*"): {"app": "old"},
    }


def test_the_next_claims_of_a_stateful_set_are_excused_and_those_of_others_are_not(
    tmp_path: Path,
) -> None:
    """A StatefulSet with a violating claim could not be scaled up."""
    claims = [{"metadata": {"name": "data"}}, {"metadata": {"name": "wal"}}]
    database = workload("StatefulSet", "db")
    database["spec"] |= {"template": {}, "volumeClaimTemplates": claims}
    run = written(
        tmp_path,
        database,
        thing("PersistentVolumeClaim", "data-db-0", database, spec=BAD),
        thing("PersistentVolumeClaim", "wal-db-11", spec=BAD),
        thing("PersistentVolumeClaim", "data-other-0", spec=BAD),
        thing("PersistentVolumeClaim", "data-db-old", spec=BAD),
        match={"kinds": [{"apiGroups": [""], "kinds": ["PersistentVolumeClaim"]}]},
    )
    assert run.returncode == 0, run.stderr
    kind = "PersistentVolumeClaim"
    assert set(excused(run)) == {
        (kind, "data-db-*"),
        (kind, "wal-db-*"),
        (kind, "data-other-0"),
        (kind, "data-db-old"),
    }


def test_what_scales_a_workload_is_excused(tmp_path: Path) -> None:
    """No audit lists a Scale: the autoscaler of a workload that was excused was refused."""
    wide, narrow = workload("Deployment", "wide"), workload("Deployment", "narrow")
    wide["spec"] |= {"replicas": 9}
    follower = workload("ReplicaSet", "wide-5f9", wide)
    follower["spec"] |= {"replicas": 9}
    kinds = [
        {"apiGroups": [""], "kinds": ["Pod"]},
        {"apiGroups": ["autoscaling"], "kinds": ["Scale"]},
    ]
    run = written(tmp_path, wide, narrow, follower, match={"kinds": kinds})
    assert run.returncode == 0, run.stderr
    scales = {key: labels for key, labels in excused(run).items() if key[0] == "Scale"}
    assert scales == {("Scale", "wide"): {}, ("Scale", "wide-*"): {}}


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


@pytest.mark.parametrize(
    ("processes", "match", "is_whole"),
    [
        (["audit"], {}, False),
        (["audit"], {"excludedNamespaces": ["shop"]}, True),
        (["audit", "webhook"], {}, True),
        (["*"], {}, True),
    ],
)
def test_a_namespace_that_config_excludes_from_the_audit_alone_is_named(
    processes: list[str], match: dict[str, Any], is_whole: bool, tmp_path: Path
) -> None:
    """The baseline was said to be whole, and the policy then refused what ran there."""
    excluded = [{"excludedNamespaces": ["shop"], "processes": processes}]
    config = policies.config(namespace=NAMESPACE, match=excluded)
    kinds = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
    run = written(tmp_path, thing("Pod", "x", spec=BAD), config=config, match={**kinds, **match})
    line = "not audited in shop: NoLatest/latest: Config excludes it from the audit alone"
    assert (line in run.stderr) is not is_whole
    assert run.returncode == (1 if is_whole else 2), run.stderr
