"""Faults as the person who is paged sees them: `waddle status`, `/readyz?verbose`, log and metrics.

Each fault is made to happen at a real API server, and its reason and the next step are found in the
first of these places.
"""

import base64
import copy
import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import serves
from tests.manifests import MANIFESTS, Objects, kustomized
from tests.patience import until
from tests.ports import free_port
from tests.system import wrong_clock
from tests.system.conftest import ALL_OPERATIONS
from tests.system.gate import Gate
from tests.system.installed import DEPLOYMENTS
from tests.system.replicas import (
    CRD_PATH,
    NAMESPACE,
    PODS,
    WEBHOOKS,
    Plane,
    Replica,
    template,
    try_request,
)
from webhook.certificates.pairs import CertificatePair, self_signed

CONFIGURATION = "waddle-validating-webhook-configuration"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SECRET = f"{SECRETS}/waddle-webhook-server-cert"
SERVICE = f"waddle-webhook-service.{NAMESPACE}.svc"
NEXT = "kubectl -n waddle-system logs"

StartReached = Callable[..., Replica]


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """No other replica is here, which would be listed too."""
    return empty_plane


@pytest.fixture
def start(plane: Plane) -> Iterator[StartReached]:
    """Starts replicas whose reports the API server reaches."""
    with ExitStack() as stack:

        def start_one(name: str, *flags: str, module: str = "webhook") -> Replica:
            port = free_port()
            replica = Replica(plane, name, *ALL_OPERATIONS, *flags, health_port=port, module=module)
            stack.callback(plane.delete_pod, name)
            stack.enter_context(replica)
            return replica

        yield start_one


def status(plane: Plane, *arguments: str) -> list[str]:
    """The lines of `waddle status`."""
    command = [sys.executable, "-m", "webhook", "status", *arguments]
    if not any(item.startswith("--kubeconfig") for item in arguments):
        command.append(f"--kubeconfig={plane.cluster.kubeconfig}")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return [*run.stdout.splitlines(), *run.stderr.splitlines()]


def says(lines: list[str], *words: str) -> bool:
    """Whether one line has all of these words."""
    return any(all(word in line for word in words) for line in lines)


def readyz(replica: Replica) -> list[str]:
    """The lines of a replica's own report."""
    return replica.get("health", "/readyz?verbose").body.decode().splitlines()


def test_a_wrong_clock_is_reported_everywhere_with_the_next_step(
    plane: Plane, start: StartReached
) -> None:
    """Nothing but the node's own clock is wrong: the API server's answers have the time."""
    right = start("waddle-right").wait_ready()
    wrong = start("waddle-ahead", module=wrong_clock.__name__).wait_ready()
    words = ("clock of this replica's node", "s ahead of the API server's", "set the clock")
    until(lambda: says(readyz(wrong), "[!]", *words), "the replica reports its clock")
    assert not says(readyz(right), "clock")
    skew = wrong.metric("waddle_clock_skew_seconds")
    assert skew is not None
    assert abs(skew - wrong_clock.AHEAD_SECONDS) < 10
    assert right.metric("waddle_clock_skew_seconds") == 0
    assert any(words[0] in str(event["msg"]) for event in list(wrong.events))
    lines = status(plane)
    assert says(lines, "waddle-ahead: ", *words), lines
    assert not says(lines, "waddle-right: ", "clock"), lines


def test_a_silent_api_server_is_reported_with_the_next_step(plane: Plane, gate: Gate) -> None:
    gate.hold(lambda _: True)
    try:
        lines = status(plane, f"--kubeconfig={gate.kubeconfig}", "--timeout=1s")
    finally:
        gate.open()
    assert says(lines, "no answer within 1 s", "kubectl get --raw '/readyz?verbose'"), lines


def test_a_replica_that_no_longer_follows_says_what_it_decides_by(
    plane: Plane, start: StartReached, gate: Gate
) -> None:
    """The CRDs of a kind are there, but its lists and watches fail."""
    replica = start("waddle-cut-off", f"--kubeconfig={gate.kubeconfig}").wait_ready()
    gate.refuse(500, "etcdserver: request timed out")
    plane.put_template(template("Unseen"))  # ends the watch of templates
    try:
        words = ("cannot follow", "decides by what it last knew", "etcdserver: request timed out")
        step = "kubectl get --raw '/readyz?verbose'"
        until(lambda: says(readyz(replica), "[!]", *words, step), "the replica reports it")
        assert replica.is_ready
        assert says(status(plane), "waddle-cut-off: ", *words, step)
    finally:
        gate.open()
        plane.delete_template("unseen")
    until(lambda: not says(readyz(replica), "cannot follow"), "it follows again")


def test_a_pod_that_the_api_server_does_not_reach_is_reported(
    plane: Plane, start: StartReached
) -> None:
    replica = start("waddle-walled").wait_ready()
    replica.kill()
    lines = status(plane)
    assert says(lines, "waddle-walled: the API server does not reach its port", "NetworkPolicy")


def test_a_missing_crd_of_statuses_is_why_policies_look_missing(plane: Plane) -> None:
    """Somebody has deleted one of the CRDs; the others are there."""
    assert not says(status(plane), "the API server serves no")
    path = f"{CRD_PATH}/mutatorpodstatuses.status.gatekeeper.sh"
    kept = plane.api.request("GET", path)
    plane.api.request("DELETE", path)
    try:
        until(lambda: try_request(plane.api, "GET", path) is None, "the CRD is gone")
        words = ("the API server serves no MutatorPodStatus", "apply manifests/crds")
        until(lambda: says(status(plane), *words), "status names it")
    finally:
        crd = {key: kept[key] for key in ("apiVersion", "kind", "spec")}
        plane.api.apply(path, crd | {"metadata": {"name": kept["metadata"]["name"]}})
        until(lambda: serves(plane.api, kept), "it is served again")


def test_what_holds_up_a_roll_out_or_a_drain_is_reported(
    plane: Plane, manifests: Objects, start: StartReached
) -> None:
    """A budget that allows no eviction, a Deployment beyond its quota, and two images."""
    start("waddle-old").wait_ready()
    newer = {"name": "webhook", "image": "waddle:newer"}
    pod = plane.api.request("GET", f"{PODS}/waddle-old")
    replaced = {key: pod["metadata"][key] for key in ("labels", "namespace")} | {
        "name": "waddle-new"
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": replaced,
        "spec": {"containers": [newer]},
    }
    plane.api.request("POST", PODS, body)
    message = 'pods "waddle-webhook-x" is forbidden: exceeded quota'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    statuses = {
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/waddle-webhook": (
            ("PodDisruptionBudget", NAMESPACE, "waddle-webhook"),
            {
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 2,
                "expectedPods": 3,
                "observedGeneration": 1,
            },
        ),
        f"{DEPLOYMENTS}/waddle-webhook": (
            ("Deployment", NAMESPACE, "waddle-webhook"),
            {"conditions": [condition | {"message": message}]},
        ),
    }
    try:
        for path, (identity, made) in statuses.items():
            plane.api.apply(path, manifests[identity])
            current = plane.api.request("GET", path)
            plane.api.request("PUT", f"{path}/status", current | {"status": made})
        lines = status(plane)
    finally:
        plane.delete_pod("waddle-new")
        for path in statuses:
            try_request(plane.api, "DELETE", path)
    budget = "the PodDisruptionBudget waddle-webhook allows no eviction"
    assert says(lines, budget, "1 of 3 Pods are ready, and 2 are needed", "get pods"), lines
    assert says(lines, "Deployment waddle-webhook: FailedCreate", message, "describe replicaset")
    assert says(lines, "different images", "waddle:newer on waddle-new", "rollout status"), lines


# --- the certificate ----------------------------------------------------------------------------


def encoded(data: bytes) -> str:
    """Base64."""
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def manifests() -> Objects:
    """The objects of the base."""
    return kustomized(MANIFESTS / "base")


@pytest.fixture
def put(plane: Plane, manifests: Objects) -> Iterator[Callable[[CertificatePair, bytes], None]]:
    """Writes the Secret's pair and the bundle of the webhook configuration; no replica is there."""
    path = f"{WEBHOOKS}/{CONFIGURATION}"

    def write(pair: CertificatePair, bundle: bytes) -> None:
        secret = copy.deepcopy(manifests["Secret", NAMESPACE, "waddle-webhook-server-cert"])
        secret["data"] = {"tls.crt": encoded(pair.certificate), "tls.key": encoded(pair.key)}
        plane.api.apply(SECRET, secret)
        made = copy.deepcopy(manifests["ValidatingWebhookConfiguration", "", CONFIGURATION])
        for webhook in made["webhooks"]:
            webhook["failurePolicy"] = "Ignore"
            webhook["timeoutSeconds"] = 1
            webhook["matchConditions"] = [{"name": "nobody", "expression": "false"}]
            webhook["clientConfig"]["caBundle"] = encoded(bundle)
        plane.api.apply(path, made, manager="somebody")

    yield write
    for item in (path, SECRET):
        try_request(plane.api, "DELETE", item)


def pair(days: float = 0, name: str = SERVICE) -> CertificatePair:
    """A pair made so many days from now."""
    return self_signed([name], dt.datetime.now(tz=dt.UTC) + dt.timedelta(days=days))


def test_a_good_certificate_is_no_fault(plane: Plane, put: Any) -> None:
    good = pair()
    put(good, good.certificate)
    lines = status(plane)
    assert not says(lines, "certificate"), lines
    assert not says(lines, "caBundle"), lines


@pytest.mark.parametrize(
    ("days", "name", "words"),
    [
        (-9000, SERVICE, ("has expired at",)),
        (3, SERVICE, ("is not valid before", "clock")),
        (0, "example.com", (f"is not for {SERVICE}",)),
    ],
)
def test_a_certificate_that_no_call_can_use_is_reported(
    plane: Plane, put: Any, days: float, name: str, words: tuple[str, ...]
) -> None:
    made = pair(days, name)
    put(made, made.certificate)
    lines = status(plane)
    assert says(lines, "Secret waddle-system/waddle-webhook-server-cert", *words, NEXT), lines


@pytest.mark.parametrize(
    ("bundle", "words"),
    [
        (pair().certificate, "its caBundle is of another authority than the certificate"),
        (b"garbage", "its caBundle is no certificate in PEM"),
    ],
)
def test_a_broken_bundle_is_reported_with_its_writer(
    plane: Plane, put: Any, bundle: bytes, words: str
) -> None:
    put(pair(), bundle)
    lines = status(plane)
    assert says(lines, CONFIGURATION, words, "last written by somebody", NEXT), lines
