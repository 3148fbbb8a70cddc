"""Replicas with the rights, Secret, configuration and arguments of the manifests, and no more."""

import base64
import copy
import datetime as dt
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.manifests import MANIFESTS, Objects, constraint_crd, kustomized, path_of, pod_of
from tests.system.load import Load
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CRD_PATH,
    NAMESPACE,
    PODS,
    TEMPLATES,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
    until,
)
from webhook.controllers.certificates import Lifetimes, plan

CONFIGURATION = "waddle-validating-webhook-configuration"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/waddle-webhook-server-cert"

# The trust in a new authority takes a minute, and starting and checking as much again.
ROTATION_SECONDS = 200

# The garbage collector may first wait half a minute for a kind that is gone.
COLLECTED_SECONDS = 100

MERGE = "application/merge-patch+json"
WITHOUT_KEY = {"data": {"tls.key": ""}}


class InstalledReplica(Replica):
    """As the Deployment would run it, with ports of the system's choice."""

    def __init__(self, plane: Plane, name: str, objects: Objects, kubeconfig: Path) -> None:
        self.plane = plane
        self.name = name
        template = pod_of(objects)
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = template["metadata"] | {"name": name}
        made = plane.api.request("POST", PODS, pod)
        self.uid = made["metadata"]["uid"]
        # As the kubelet says it of each pod that is ready.
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        plane.api.request("PUT", f"{PODS}/{name}/status", made | {"status": status})
        (container,) = template["spec"]["containers"]
        replaced = ("--port=", "--health-addr=", "--prometheus-port=", "--shutdown-delay=")
        arguments = [item for item in container["args"] if not item.startswith(replaced)]
        arguments += ["--host=127.0.0.1", "--port=0", "--health-addr=127.0.0.1:0"]
        arguments += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", "--shutdown-delay=1"]
        arguments.append(f"--kubeconfig={kubeconfig}")
        environment = {**os.environ, "POD_NAME": name, "POD_NAMESPACE": NAMESPACE}
        self.start([sys.executable, "-m", "webhook", *arguments], environment)

    @property
    def installed(self) -> int:
        """How many certificates it has begun to serve."""
        return sum(event["msg"] == "certificate installed" for event in list(self.events))


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """Here replicas are counted, and one must not make CRDs: no other may be there."""
    return empty_plane


@pytest.fixture
def objects(plane: Plane, request: pytest.FixtureRequest) -> Iterator[Objects]:
    """Everything but what would run and what would call; its Secret is new."""
    found = kustomized(MANIFESTS / getattr(request, "param", "base"))
    # What other tests of this control plane share stays as it is.
    skipped = {"Deployment", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}
    skipped |= {"Namespace", "ResourceQuota"}
    applied = [item for item in found.values() if item["kind"] not in skipped]
    for item in applied:
        plane.api.apply(path_of(item), item)
    yield found
    for item in applied:
        plane.api.request("DELETE", path_of(item))


@pytest.fixture
def kubeconfig(plane: Plane, objects: Objects, tmp_path: Path) -> Path:
    """Credentials of the manifests' service account."""
    del objects
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/waddle/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.api.request("POST", path, body)["status"]["token"]
    config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture
def configuration(plane: Plane, objects: Objects, proxy: Proxy) -> Iterator[dict[str, Any]]:
    """The manifests' configuration, called at the proxy and about one namespace, failing closed."""
    made = copy.deepcopy(objects["ValidatingWebhookConfiguration", "", CONFIGURATION])
    for webhook in made["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://localhost:{proxy.port}{path}"
        webhook["failurePolicy"] = "Fail"
        webhook["timeoutSeconds"] = 10
        webhook["matchConditions"].append(
            {
                "name": "tests-alone",
                "expression": f"has(request.namespace) && request.namespace == '{WORKLOADS}'",
            }
        )
    plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", made)
    yield made
    plane.unregister(CONFIGURATION)


@pytest.fixture
def installed(
    plane: Plane, objects: Objects, kubeconfig: Path, configuration: Any
) -> Iterator[list[InstalledReplica]]:
    """Three replicas, started at once, with an authority that ends in 60 days."""
    del configuration
    lifetimes = Lifetimes(authority=dt.timedelta(days=60))
    service = f"waddle-webhook-service.{NAMESPACE}.svc"
    names = (service, f"{service}.cluster.local", "localhost")
    now = dt.datetime.now(tz=dt.UTC)
    data = plan({}, names, now, trusted_seconds=0, lifetimes=lifetimes).secret
    assert data is not None
    body = {"data": {name: base64.b64encode(value).decode() for name, value in data.items()}}
    plane.api.request("PATCH", SECRET, body, content_type=MERGE)
    started: list[InstalledReplica] = []
    try:
        started += [
            InstalledReplica(plane, f"installed-{number}", objects, kubeconfig)
            for number in range(3)
        ]
        for replica in started:
            replica.__enter__()
        yield started
    finally:
        plane.unregister(CONFIGURATION)
        try_request(plane.api, "DELETE", f"{TEMPLATES}/installed")
        for replica in started:
            replica.__exit__()
            plane.delete_pod(replica.name)
        crd = f"{CRD_PATH}/installed.constraints.gatekeeper.sh"
        until(
            lambda: try_request(plane.api, "GET", crd) is None,
            "the CRD of its constraints is collected",
            seconds=COLLECTED_SECONDS,
        )


@pytest.mark.slow
@pytest.mark.timeout(2 * ROTATION_SECONDS)
def test_authority_and_pair_are_replaced_under_load_with_no_admission_lost(
    plane: Plane,
    installed: list[InstalledReplica],
    proxy: Proxy,
    configuration: dict[str, Any],
) -> None:
    """The rights of the manifests are enough; the old authority ends within the lookahead."""
    for replica in installed:
        until(lambda replica=replica: replica.is_ready, f"{replica.name} is ready")
    proxy.replicas += installed
    plane.put_template(template("Installed"))
    plane.put_constraint(constraint("installed", "one", "Installed"))
    for replica in installed:
        until(lambda replica=replica: replica.denies("one"), f"{replica.name} denies")
    until(
        lambda: len(plane.by_pod(f"{TEMPLATES}/installed")) == 3, "the template has three entries"
    )
    wait_for(plane, "ConstraintTemplate/installed", replicas=3)
    wait_for(plane, "Installed/installed", replicas=3)
    first = plane.api.request("GET", SECRET)["data"]["ca.crt"]

    with Load(plane.api, "one", threads=2) as load:
        load.wait_for(20)
        until(
            lambda: all(replica.installed == 2 for replica in installed),
            "every replica serves a pair of the new authority",
            seconds=ROTATION_SECONDS,
        )
        load.wait_for(50)
        second = plane.api.request("GET", SECRET)["data"]
        plane.api.request("PATCH", SECRET, WITHOUT_KEY, content_type=MERGE)
        until(
            lambda: all(replica.installed == 3 for replica in installed),
            "every replica serves another pair of that authority",
        )
        load.wait_for(50)

        # An upgrade applies the manifests anew, and they have no bundle.
        plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", configuration)
        load.wait_for(50)

    third = plane.api.request("GET", SECRET)["data"]
    assert load.wrong == []
    assert second["ca.crt"] != first
    assert "next-ca.crt" not in second
    assert third["ca.crt"] == second["ca.crt"]
    assert third["tls.crt"] != second["tls.crt"]
    # The seeded pair was good: one announced the new authority, one put it in force, one renewed.
    written = [
        replica.metric('waddle_api_writes_total{what="certificate"}') for replica in installed
    ]
    assert sum(number or 0 for number in written) >= 4, "and the bundle was written"
    refused = [
        event
        for replica in installed
        for event in replica.events
        if "forbidden" in str(event) or event["level"] == "error"
    ]
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("objects", ["overlays/beside-gatekeeper"], indirect=True)
def test_beside_gatekeeper_a_replica_enforces_and_writes_its_own_statuses_alone(
    plane: Plane, objects: Objects, kubeconfig: Path
) -> None:
    """The CRD of constraints is Gatekeeper's to make; here the test makes it in its place."""
    replica = InstalledReplica(plane, "beside", objects, kubeconfig)
    crd = f"{CRD_PATH}/beside.constraints.gatekeeper.sh"
    try:
        with replica:
            until(lambda: replica.is_ready, "it is ready")
            plane.put_template(template("Beside"))
            wait_for(plane, "ConstraintTemplate/beside")
            assert try_request(plane.api, "GET", crd) is None
            plane.api.request("POST", CRD_PATH, constraint_crd("Beside"))
            plane.put_constraint(constraint("beside", "one", "Beside"))
            wait_for(plane, "Beside/beside")
            assert replica.denies("one")
            assert plane.by_pod(f"{TEMPLATES}/beside") == []
            assert replica.metric('waddle_api_writes_total{what="crd"}') in (None, 0)
            assert not [event for event in replica.events if "forbidden" in str(event)]
    finally:
        plane.delete_pod("beside")
        for path in (f"{TEMPLATES}/beside", crd):
            try_request(plane.api, "DELETE", path)


def wait_for(plane: Plane, name: str, replicas: int = 1) -> None:
    """As a pipeline does."""
    run = waddle("wait", name, "--timeout=60s", "--kubeconfig", plane.cluster.kubeconfig)
    assert run.stdout == f"{name}: enforced by {replicas} of {replicas} replicas\n", run.stderr
