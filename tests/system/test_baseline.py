"""A baseline at a real API server: a policy denies from today on, and nothing that runs breaks."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import policies
from tests.cluster import ApiError
from tests.conformance.gatekeeper import waddle
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import NAMESPACE, TEMPLATES, WORKLOADS, Plane, Replica, until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

LATEST = """package nolatest
containers[c] { c := input.review.object.spec.containers[_] }
containers[c] { c := input.review.object.spec.template.spec.containers[_] }
containers[c] { c := input.review.object.spec.jobTemplate.spec.template.spec.containers[_] }
violation[{"msg": msg}] {
  image := containers[_].image
  endswith(image, ":latest")
  msg := sprintf("%v %v has the image %v", [input.review.kind.kind, input.review.object.metadata.name, image])
}
"""
PLURALS = {
    "Pod": ("/api/v1", "pods"),
    "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Job": ("/apis/batch/v1", "jobs"),
}
WIDE = "/apis/waddle.dev/v1alpha1"


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster of this test's own: it denies nearly everything."""
    with control_plane(tmp_path_factory.mktemp("baseline")) as made:
        yield made


def path(kind: str, name: str = "") -> str:
    """Returns the path of objects of a kind."""
    root, plural = PLURALS[kind]
    return f"{root}/namespaces/{WORKLOADS}/{plural}" + (f"/{name}" if name else "")


class Cluster:
    """Users and controllers, each as it writes."""

    def __init__(self, plane: Plane) -> None:
        self.api = plane.api
        self.chance = random.Random(1)

    def make(self, kind: str, name: str, image: str, owner: Any = None, **labels: str) -> Any:
        """An object with a container, made by a user or by a controller."""
        containers = {"containers": [{"name": "c", "image": image}]}
        labels = labels or {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": containers}
        job = {"template": {**pod, "spec": {**containers, "restartPolicy": "Never"}}}
        spec: Any = {"selector": {"matchLabels": labels}, "template": pod}
        if kind == "Pod":
            spec = containers
        elif kind == "Job":
            spec = job
        elif kind == "CronJob":
            spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
        elif kind == "StatefulSet":
            spec["serviceName"] = name
        metadata: Any = {"name": name, "namespace": WORKLOADS, "labels": labels}
        if owner is not None:
            reference = {key: owner[key] for key in ("apiVersion", "kind")}
            reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
            metadata["ownerReferences"] = [{**reference, "controller": True}]
        group = PLURALS[kind][0].removeprefix("/apis/").removeprefix("/api/")
        body = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}
        made = self.api.request("POST", path(kind), body)
        return made | {"apiVersion": group, "kind": kind}

    def some_name(self) -> str:
        """Returns a random suffix of a name, as controllers make it."""
        return "".join(self.chance.choices("bcdfghjklmnpqrstvwxz2456789", k=5))

    def roll(self, deployment: Any, image: str) -> Any:
        """Returns a ReplicaSet with two Pods, as a Deployment's controllers make it."""
        name, labels = deployment["metadata"]["name"], deployment["metadata"]["labels"]
        made = self.make("ReplicaSet", f"{name}-{self.some_name()}", image, deployment, **labels)
        for _ in range(2):
            self.scale(made, image)
        return made

    def scale(self, owner: Any, image: str) -> None:
        """Creates another Pod."""
        labels = owner["metadata"]["labels"]
        self.make("Pod", f"{owner['metadata']['name']}-{self.some_name()}", image, owner, **labels)

    def change(self, kind: str, name: str, patch: Any) -> None:
        """A user's patch."""
        merge = "application/merge-patch+json"
        self.api.request("PATCH", path(kind, name), patch, content_type=merge)

    def is_refused(self, kind: str, name: str, image: str, **labels: str) -> bool:
        """Whether something that is made anew is refused by the policy."""
        try:
            self.make(kind, name, image, **labels)
        except ApiError as error:
            if error.status != 403:
                raise
            return "[latest]" in error.body
        self.api.request("DELETE", path(kind, name))
        return False


def test_what_runs_goes_on_and_what_is_new_is_refused(plane: Plane) -> None:
    cluster = Cluster(plane)
    web = cluster.make("Deployment", "web", "web:latest")
    replica_set = cluster.roll(web, "web:latest")
    api = cluster.make("Deployment", "web-api", "api:1")
    cluster.roll(api, "api:1")
    db = cluster.make("StatefulSet", "db", "db:latest")
    cluster.make("Pod", "db-0", "db:latest", db, app="db")
    night = cluster.make("CronJob", "night", "night:latest")
    job = cluster.make("Job", "night-2801", "night:latest", night)
    cluster.scale(job, "night:latest")
    cluster.make("Pod", "alone", "alone:latest")
    grafana = cluster.make("Deployment", "grafana", "g:latest", operated(plane))
    cluster.roll(grafana, "g:latest")
    weekly = cluster.make("CronJob", "weekly", "weekly:latest")

    for expansion in policies.CRONJOB_EXPANSIONS:
        plane.api.request(
            "POST", "/apis/expansion.gatekeeper.sh/v1alpha1/expansiontemplate", expansion
        )
    plane.put_template(policies.template("NoLatest", LATEST))
    kinds = [
        {"apiGroups": ["", "apps", "batch"], "kinds": list(PLURALS)},
    ]
    document = policies.constraint("NoLatest", "latest", match={"kinds": kinds})
    document["spec"]["enforcementAction"] = "dryrun"
    with Replica(plane, "baselined", *ALL_OPERATIONS) as replica:
        replica.wait_ready()
        plane.put_constraint(document)
        # No webhook refuses it yet: the baseline is then incomplete.
        plane.api.request("POST", TEMPLATES, policies.template("Broken", "package broken"))
        plane.register(replica.ports["admission"], resources=["*"], groups=["", "apps", "batch"])
        try:
            _baseline(plane)
            document["spec"]["enforcementAction"] = "deny"
            plane.put_constraint(document)
            until(
                lambda: cluster.is_refused("Pod", "new", "web:latest"),
                "the same violation made anew is refused",
            )
            _go_on(cluster, web, replica_set, db, night)
            cluster.roll(grafana, "g:latest")
            first = cluster.make("Job", "weekly-2801", "weekly:latest", weekly)
            cluster.scale(first, "weekly:latest")
            assert cluster.is_refused("Deployment", "shop", "web:latest")
            assert cluster.is_refused("Pod", "alone-2", "alone:latest")
            assert cluster.is_refused("Pod", "web-api-1", "api:latest", app="web-api")
            assert cluster.is_refused("StatefulSet", "db-2", "db:latest")
        finally:
            plane.unregister()
    plane.delete_pod("baselined")


def operated(plane: Plane) -> Any:
    """Returns an object that an operator follows, of another name than the operator's workload."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "main"}}
    made = plane.api.request("POST", f"/api/v1/namespaces/{WORKLOADS}/configmaps", made)
    return made | {"apiVersion": "v1", "kind": "ConfigMap"}


def _baseline(plane: Plane) -> None:
    def written(name: str) -> subprocess.CompletedProcess[str]:
        return waddle(
            *("except", "--baseline", "--constraint", name, "--reason", "from before"),
            *("-n", WORKLOADS, "--waddle-namespace", NAMESPACE),
            *("--kubeconfig", str(plane.cluster.kubeconfig)),
        )

    misspelt = written("lastest")
    assert misspelt.returncode == 2
    assert "--constraint lastest: the cluster has no such constraint" in misspelt.stderr
    partial = written("latest")
    assert partial.returncode == 2
    assert partial.stdout.startswith("# Incomplete: policy not used: ")
    assert "the baseline is incomplete" in partial.stderr
    plane.api.request("DELETE", f"{TEMPLATES}/broken")
    done = written("latest")
    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith("#")
    made = list(yaml.safe_load_all(done.stdout))
    matches = {
        (one["spec"]["match"]["kinds"][0]["kinds"][0], one["spec"]["match"]["name"]) for one in made
    }
    assert matches == {
        ("Deployment", "web"),
        ("ReplicaSet", "web-*"),
        ("Pod", "web-*"),
        ("StatefulSet", "db"),
        ("Pod", "db-*"),
        ("CronJob", "night"),
        ("Job", "night-*"),
        ("Pod", "night-*"),
        ("Pod", "alone"),
        ("Deployment", "grafana"),
        ("ReplicaSet", "grafana-*"),
        ("Pod", "grafana-*"),
        ("CronJob", "weekly"),
        ("Job", "weekly-*"),
        ("Pod", "weekly-*"),
    }
    for one in made:
        assert one["kind"] == "ClusterPolicyException"
        plane.api.request("POST", f"{WIDE}/clusterpolicyexceptions", one)
    listed = f"{WIDE}/clusterpolicyexceptions?labelSelector=waddle.dev/baseline"
    assert len(plane.api.request("GET", listed)["items"]) == len(made)


def _go_on(cluster: Cluster, web: Any, replica_set: Any, db: Any, night: Any) -> None:
    """Updates, scales and restarts all workloads."""
    for kind, name in (
        ("Deployment", "web"),
        ("ReplicaSet", replica_set["metadata"]["name"]),
        ("StatefulSet", "db"),
        ("CronJob", "night"),
        ("Pod", "alone"),
    ):
        cluster.change(kind, name, {"metadata": {"annotations": {"changed": "yes"}}})
    cluster.change("Deployment", "web", {"spec": {"replicas": 3}})
    cluster.change("ReplicaSet", replica_set["metadata"]["name"], {"spec": {"replicas": 3}})
    cluster.scale(replica_set, "web:latest")
    restarted = {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}}
    cluster.change("Deployment", "web", restarted)
    cluster.roll(web, "web:latest")
    newer = copy.deepcopy(web["spec"]["template"])
    newer["spec"] = {"containers": [{"name": "c", "image": "other/web:latest"}]}
    cluster.change("Deployment", "web", {"spec": {"template": newer}})
    cluster.roll(web, "other/web:latest")
    cluster.api.request("DELETE", f"{path('Pod', 'db-0')}?gracePeriodSeconds=0")
    until(lambda: _is_gone(cluster, "db-0"), "the StatefulSet's Pod is gone")
    cluster.make("Pod", "db-0", "db:latest", db, app="db")
    cluster.make("Pod", "db-1", "db:latest", db, app="db")
    cluster.scale(cluster.make("Job", "night-2802", "night:latest", night), "night:latest")


def _is_gone(cluster: Cluster, name: str) -> bool:
    try:
        cluster.api.request("GET", path("Pod", name))
    except ApiError as error:
        return error.status == 404
    return False
