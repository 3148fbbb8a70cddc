"""Replicas with the rights, Secret, configuration and arguments of the manifests, and no more."""

import base64
import copy
import datetime as dt
import os
import ssl
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.manifests import MANIFESTS, Objects, constraint_crd, kustomized, path_of, pod_of
from tests.patience import PATIENCE_SECONDS, until
from tests.system import hurried
from tests.system.load import DRAINING, LateTrust, Load
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CRD_PATH,
    NAMESPACE,
    PATIENT_SECONDS,
    PODS,
    STATUSES,
    TEMPLATES,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
)
from webhook.certificates.plan import Lifetimes, plan

CONFIGURATION = "waddle-validating-webhook-configuration"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/waddle-webhook-server-cert"


# Less than a new authority is trusted before it signs.
LATE_SECONDS = hurried.TRUST_SECONDS / 4

END = "-----END CERTIFICATE-----"


MERGE = "application/merge-patch+json"
WITHOUT_KEY = {"data": {"tls.key": ""}}


class InstalledReplica(Replica):
    """A replica as in the Deployment, with ports of the system's choice."""

    module = "webhook"
    draining = "--shutdown-delay=1"

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
        arguments += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", self.draining]
        arguments.append(f"--kubeconfig={kubeconfig}")
        environment = {**os.environ, "POD_NAME": name, "POD_NAMESPACE": NAMESPACE}
        self.start([sys.executable, "-m", self.module, *arguments], environment)

    @property
    def installed(self) -> int:
        """Returns the number of certificates that it has begun to serve."""
        return sum(event["msg"] == "certificate installed" for event in list(self.events))


class HurriedReplica(InstalledReplica):
    """With authorities that come and go within seconds."""

    module = hurried.__name__
    draining = DRAINING


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """Here replicas are counted, and one must not make CRDs: no other may be there."""
    return empty_plane


@pytest.fixture
def objects(plane: Plane, request: pytest.FixtureRequest) -> Iterator[Objects]:
    """Yields all objects except Deployments and webhook configurations; the Secret is new."""
    found = kustomized(MANIFESTS / getattr(request, "param", "base"))
    # Objects that other tests of this control plane share stay.
    skipped = {"Deployment", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}
    skipped |= {"Namespace", "ResourceQuota"}
    applied = [item for item in found.values() if item["kind"] not in skipped]
    for item in applied:
        plane.api.apply(path_of(item), item)
    yield found
    for item in applied:
        plane.api.request("DELETE", path_of(item))
    plane.make_namespaces()  # with the Secret of keys, which others need


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
        webhook["timeoutSeconds"] = PATIENT_SECONDS
        webhook["matchConditions"].append(
            {
                "name": "tests-alone",
                "expression": f"has(request.namespace) && request.namespace == '{WORKLOADS}'",
            }
        )
    plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", made)
    yield made
    plane.unregister(CONFIGURATION)


StartThree = Callable[[str], list[InstalledReplica]]


@pytest.fixture
def start_three(
    plane: Plane, objects: Objects, kubeconfig: Path, configuration: Any
) -> Iterator[StartThree]:
    """Starts three replicas at once; the Secret's authority ends in 60 days, which is soon."""
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

    def start(prefix: str) -> list[InstalledReplica]:
        three: list[InstalledReplica] = [
            HurriedReplica(plane, f"{prefix}-{number}", objects, kubeconfig) for number in range(3)
        ]
        started.extend(three)
        for replica in three:
            replica.__enter__()
        return three

    try:
        yield start
    finally:
        plane.unregister(CONFIGURATION)
        try_request(plane.api, "DELETE", f"{TEMPLATES}/installed")
        # None is asked any more: all at once.
        with ThreadPoolExecutor() as pool:
            list(pool.map(InstalledReplica.__exit__, started))
        for replica in started:
            plane.delete_pod(replica.name)
        crd = f"{CRD_PATH}/installed.constraints.gatekeeper.sh"
        until(
            lambda: try_request(plane.api, "GET", crd) is None,
            "the CRD of its constraints is collected",
        )


class Authorities:
    """The authority in the Secret, and the certificate that each replica serves."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    @property
    def current(self) -> str:
        """The authority that signs."""
        pem = base64.b64decode(self._data["ca.crt"]).decode()
        return pem.partition(END)[0] + END

    @property
    def pair(self) -> str:
        """The certificate that is served."""
        return str(self._data["tls.crt"])

    def trusted(self) -> str:
        """The bundle of the webhook configuration."""
        found = self._plane.api.request("GET", f"{WEBHOOKS}/{CONFIGURATION}")
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()

    @property
    def _data(self) -> Any:
        return self._plane.api.request("GET", SECRET)["data"]

    def wait_for_another(self, before: str, replicas: list[InstalledReplica]) -> str:
        """The authority after this one, once each of the replicas serves a pair of it."""
        until(lambda: self.current != before, "a new authority signs")
        after = self.current
        self.wait_served(replicas)
        return after

    def wait_served(self, replicas: list[InstalledReplica]) -> None:
        """Wait until every replica serves the pair that there is."""
        until(
            lambda: all(serves(replica, self.pair) for replica in replicas),
            "every replica serves the pair of the Secret",
        )


def serves(replica: InstalledReplica, pair: str) -> bool:
    """Whether a new connection is shown this certificate."""
    with replica.raw() as connection:
        found = connection.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found) in base64.b64decode(pair).decode()


@pytest.mark.slow(35)
def test_two_authorities_a_pair_and_all_replicas_are_replaced_with_no_admission_lost(
    plane: Plane, start_three: StartThree, proxy: Proxy, configuration: dict[str, Any]
) -> None:
    """Asked by the API server all the while; the rights of the manifests are enough."""
    replicas = start_three("first")
    for replica in replicas:
        until(lambda replica=replica: replica.is_ready, f"{replica.name} is ready")
    proxy.replicas += replicas
    plane.put_template(template("Installed"))
    plane.put_constraint(constraint("installed", "one", "Installed"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("one"), f"{replica.name} denies")
    until(
        lambda: len(plane.by_pod(f"{TEMPLATES}/installed")) == 3, "the template has three entries"
    )
    wait_for(plane, "ConstraintTemplate/installed", replicas=3)
    wait_for(plane, "Installed/installed", replicas=3)
    authorities = Authorities(plane)
    first = authorities.current

    late = LateTrust(
        authorities.trusted, proxy.port, LATE_SECONDS, trust_seconds=hurried.TRUST_SECONDS
    )
    with late, Load(plane.api, "one", threads=2) as load:
        load.wait_for(20)
        second = authorities.wait_for_another(first, replicas)
        load.wait_for(50)

        served = authorities.pair
        plane.api.request("PATCH", SECRET, WITHOUT_KEY, content_type=MERGE)
        until(lambda: authorities.pair != served, "a pair is renewed for want of its key")
        authorities.wait_served(replicas)
        load.wait_for(50)

        # An upgrade applies the manifests anew, and they have no bundle.
        plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", configuration)
        load.wait_for(50)

        # Three more at once, while the next authority comes; then the first three go.
        others = start_three("second")
        for replica in others:
            until(lambda replica=replica: replica.is_ready, f"{replica.name} is ready")
        proxy.replicas += others
        third = authorities.wait_for_another(second, replicas + others)
        load.wait_for(50)
        with ThreadPoolExecutor(len(replicas)) as pool:
            assert set(pool.map(Replica.stop, replicas)) == {0}
        proxy.replicas = [*others]
        load.wait_for(50)

    assert load.wrong == []
    assert late.refused == []
    assert late.trusted
    assert len({first, second, third}) == 3
    everyone = replicas + others
    assert all(replica.installed >= 3 for replica in replicas)
    refused = [
        event
        for replica in everyone
        for event in replica.events
        if "forbidden" in str(event) or event["level"] == "error"
    ]
    assert refused == []


def test_without_the_right_to_mend_the_bundle_a_replica_says_so_and_what_to_do(
    plane: Plane, objects: Objects, kubeconfig: Path, configuration: Any
) -> None:
    """Another writer has broken the bundle, and the role lost a verb: the replica stays ready."""
    role = copy.deepcopy(objects["ClusterRole", "", "waddle"])
    for rule in role["rules"]:
        if "admissionregistration.k8s.io" in rule["apiGroups"]:
            rule["verbs"] = ["get", "list", "watch"]
    replica = InstalledReplica(plane, "powerless", objects, kubeconfig)
    try:
        with replica:
            until(lambda: replica.is_ready, "it is ready")
            path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/waddle"
            current = plane.api.request("GET", path)
            plane.api.request("PUT", path, current | {"rules": role["rules"]})
            for webhook in configuration["webhooks"]:
                webhook["clientConfig"]["caBundle"] = base64.b64encode(b"broken").decode()

            def notes() -> str:
                # While the right still holds, the bundle is mended at once.
                plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", configuration)
                answer = replica.get("health", "/readyz?verbose")
                assert answer.status == 200
                return answer.body.decode()

            fault = "[!]the certificate or a caBundle is not as it should be: 403"
            until(lambda: fault in notes(), "it says that it may not write")
            assert "give this account the right, as the manifests do" in notes()
            assert replica.metric("waddle_certificate_faults") == 1
    finally:
        plane.unregister(CONFIGURATION)
        plane.delete_pod("powerless")


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
            until(lambda: has_status(plane, "beside"), "the template has a status of the replica's")
            assert try_request(plane.api, "GET", crd) is None
            plane.api.request("POST", CRD_PATH, constraint_crd("Beside"))
            plane.put_constraint(constraint("beside", "one", "Beside"))
            wait_for(plane, "ConstraintTemplate/beside")
            wait_for(plane, "Beside/beside")
            assert replica.denies("one")
            assert plane.by_pod(f"{TEMPLATES}/beside") == []
            assert replica.metric('waddle_api_writes_total{what="crd"}') in (None, 0)
            assert not [event for event in replica.events if "forbidden" in str(event)]
    finally:
        plane.delete_pod("beside")
        for path in (f"{TEMPLATES}/beside", crd):
            try_request(plane.api, "DELETE", path)


def has_status(plane: Plane, template: str) -> bool:
    """Whether a replica has said anything of a template."""
    selector = f"internal.gatekeeper.sh/constrainttemplate-name={template}"
    query = f"{STATUSES}/constrainttemplatepodstatuses?labelSelector={selector}"
    return bool(plane.api.request("GET", query)["items"])


def wait_for(plane: Plane, name: str, replicas: int = 1) -> None:
    """Waits as a pipeline does."""
    run = waddle(
        "wait", name, f"--timeout={PATIENCE_SECONDS:.0f}s", "--kubeconfig", plane.cluster.kubeconfig
    )
    assert (
        run.stdout
        == f"{name}: enforced by {replicas} of {replicas} replica{'s' * (replicas != 1)}\n"
    ), run.stderr
