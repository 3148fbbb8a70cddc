"""Requests that the API server sends by the manifests' webhook configurations, and their verdicts.

The configurations are registered as they are, but for the address: a server of the test's own
that notes each review, or a port where nobody listens. They are confined to the test's objects.
"""

import base64
import copy
import datetime as dt
import http.server
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Api, ApiError, Cluster
from tests.manifests import MANIFESTS, kustomized
from tests.patience import until
from webhook.certificates.pairs import self_signed

CONFIGURATION = ("ValidatingWebhookConfiguration", "", "waddle-validating-webhook-configuration")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAMESPACES = "/api/v1/namespaces"

Object = dict[str, Any]


@dataclass
class Reviewer:
    """Admits everything at the address of the webhook, and notes what it was asked about."""

    folder: Path
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        pair = self_signed(["localhost", "127.0.0.1"], dt.datetime.now(tz=dt.UTC))
        file = self.folder / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        self.bundle = base64.b64encode(pair.certificate).decode()
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = json.loads(body)["request"]
                resource = "/".join(
                    part
                    for part in (request["resource"]["resource"], request.get("subResource"))
                    if part
                )
                requests.append(f"{self.path.partition('?')[0]} {resource}")
                answer = {
                    "apiVersion": "admission.k8s.io/v1",
                    "kind": "AdmissionReview",
                    "response": {"uid": request["uid"], "allowed": True},
                }
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@dataclass
class Stage:
    """A namespace of the test's own under one of the configurations."""

    api: Api
    name: str

    def collection(self, plural: str, group_version: str = "") -> str:
        root = f"/apis/{group_version}" if group_version else "/api/v1"
        return f"{root}/namespaces/{self.name}/{plural}"

    def post(self, path: str, kind: str, api_version: str = "v1", **fields: Any) -> Object:
        metadata = fields.pop("metadata", {}) | {"name": f"{self.name}-{kind.lower()}"}
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        made: Object = self.api.request("POST", path, body)
        return made

    def register(self, folder: str, port: int, bundle: str) -> None:
        """The folder's configuration for objects of this namespace, or of this prefix, alone."""
        made = copy.deepcopy(kustomized(MANIFESTS / folder)[CONFIGURATION])
        made["metadata"]["name"] = self.name
        for webhook in made["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            webhook["clientConfig"] = {
                "url": f"https://localhost:{port}{path}",
                "caBundle": bundle,
            }
            # First, so that nothing else of the cluster is touched by what follows.
            mine = (
                f'(has(request.namespace) && request.namespace == "{self.name}")'
                f' || (has(request.name) && request.name.startsWith("{self.name}"))'
            )
            webhook["matchConditions"].insert(0, {"name": "mine", "expression": mine})
        self.api.apply(f"{WEBHOOKS}/{self.name}", made)


@pytest.fixture
def reviewer(tmp_path: Path) -> Iterator[Reviewer]:
    made = Reviewer(tmp_path)
    yield made
    made.close()


def has_account(stage: Stage) -> bool:
    accounts = stage.api.request("GET", stage.collection("serviceaccounts"))["items"]
    return "default" in [one["metadata"]["name"] for one in accounts]


@pytest.fixture
def stage(cluster: Cluster) -> Iterator[Stage]:
    api = cluster.api
    stage = Stage(api, f"asked-{uuid.uuid4().hex[:8]}")
    api.request("POST", NAMESPACES, {"metadata": {"name": stage.name}})
    # Its controller's write, too, is one that a configuration in force asks about.
    until(lambda: has_account(stage), "the namespace has its service account")
    yield stage
    api.request("DELETE", f"{WEBHOOKS}/{stage.name}")
    api.request("DELETE", f"{NAMESPACES}/{stage.name}")


def until_in_force(stage: Stage, reviewer: Reviewer) -> None:
    """The API server reads a new configuration a moment after it was made."""

    def is_asked() -> bool:
        stage.api.request(
            "POST", stage.collection("configmaps") + "?dryRun=All", {"metadata": {"name": "tried"}}
        )
        return bool(reviewer.requests)

    until(is_asked, "the configuration is in force")
    reviewer.requests.clear()


LEASE = {"spec": {"holderIdentity": "me"}}
POD_SPEC = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
DEPLOYMENT = {
    "spec": {"selector": SELECTOR, "template": {"metadata": {"labels": {"a": "b"}}, **POD_SPEC}}
}


def test_the_base_asks_about_all_but_heartbeats_events_and_questions(stage, reviewer):
    stage.register("base", reviewer.port, reviewer.bundle)
    until_in_force(stage, reviewer)
    stage.post(stage.collection("configmaps"), "ConfigMap")
    stage.post(stage.collection("deployments", "apps/v1"), "Deployment", "apps/v1", **DEPLOYMENT)
    stage.post(
        stage.collection("leases", "coordination.k8s.io/v1"),
        "Lease",
        "coordination.k8s.io/v1",
        **LEASE,
    )
    stage.post(
        stage.collection("events"),
        "Event",
        involvedObject={"kind": "Pod", "namespace": stage.name, "name": "p"},
    )
    review = {"kind": "LocalSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    review |= {"metadata": {"namespace": stage.name}}
    review |= {"spec": {"user": "u", "resourceAttributes": {"namespace": stage.name}}}
    path = stage.collection("localsubjectaccessreviews", "authorization.k8s.io/v1")
    stage.api.request("POST", path, review)

    assert reviewer.requests == ["/v1/admit configmaps", "/v1/admit deployments"]


def test_only_who_sets_the_ignore_label_is_asked_about_it(stage, reviewer):
    stage.register("base", reviewer.port, reviewer.bundle)
    until_in_force(stage, reviewer)
    plain = stage.post(NAMESPACES, "Namespace")
    labelled = {"labels": {"admission.gatekeeper.sh/ignore": "yes"}}
    try:
        assert reviewer.requests == ["/v1/admit namespaces"]
        reviewer.requests.clear()
        stage.api.request(
            "PATCH",
            f"{NAMESPACES}/{plain['metadata']['name']}",
            {"metadata": labelled},
            content_type="application/merge-patch+json",
        )
        # The other webhook leaves a labelled namespace alone.
        assert reviewer.requests == ["/v1/admitlabel namespaces"]
    finally:
        stage.api.request("DELETE", f"{NAMESPACES}/{plain['metadata']['name']}")


@pytest.fixture
def closed_port() -> int:
    """A port where nobody listens, nor ever will: one of the system's choice may be another's next."""
    return 1


def is_refused(request: Any) -> bool:
    try:
        request()
    except ApiError as error:
        if "failed calling webhook" not in error.body:
            raise
        return True
    return False


def test_fail_closed_refuses_workloads_and_lets_the_rest_go_on(stage, reviewer, closed_port):
    """With nobody to answer: what runs and what grants rights is refused, a repair is not."""
    stage.register("overlays/fail-closed", reviewer.port, reviewer.bundle)
    until_in_force(stage, reviewer)
    stage.post(stage.collection("deployments", "apps/v1"), "Deployment", "apps/v1", **DEPLOYMENT)
    assert reviewer.requests == ["/v1/admit deployments"], "each request is decided once"
    stage.register("overlays/fail-closed", closed_port, reviewer.bundle)

    def service() -> Object:
        ports = {"spec": {"ports": [{"port": 1}]}}
        return stage.post(stage.collection("services") + "?dryRun=All", "Service", **ports)

    until(lambda: is_refused(service), "the configuration is in force")
    rbac = "rbac.authorization.k8s.io/v1"
    assert is_refused(lambda: stage.post(stage.collection("roles", rbac), "Role", rbac, rules=[]))
    # Another's scale, a ConfigMap, a lease and a namespace do not wait for an answer.
    scale = f"{stage.collection('deployments', 'apps/v1')}/{stage.name}-deployment/scale"
    patch = {"spec": {"replicas": 2}}
    stage.api.request("PATCH", scale, patch, content_type="application/merge-patch+json")
    stage.post(stage.collection("configmaps"), "ConfigMap")
    stage.post(
        stage.collection("leases", "coordination.k8s.io/v1"),
        "Lease",
        "coordination.k8s.io/v1",
        **LEASE,
    )
    stage.post(NAMESPACES, "Namespace")
    stage.api.request("DELETE", f"{NAMESPACES}/{stage.name}-namespace")
