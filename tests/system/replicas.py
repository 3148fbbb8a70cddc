"""Replicas as processes beside a real API server, each with a Pod of its own.

No kubelet runs, so each replica's Pod is an object only, made by its test.
"""

import base64
import datetime as dt
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from tests import policies
from tests.behaviour.serving import Server, review
from tests.catch_all_webhooks import install_catch_all_webhooks
from tests.cluster import Api, ApiError, Cluster, serves
from tests.patience import running, until
from webhook.api.shapes import objects_of, status_of
from webhook.certificates.pairs import self_signed

NAMESPACE = "waddle-system"
WORKLOADS = "workloads"
"""The namespace whose ConfigMaps are reviewed."""

POD_LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}
"""The labels by which `waddle status` and `waddle wait` know the replicas' Pods."""

PATIENT_SECONDS = 30
"""A webhook's timeout where nobody is to be late: on a busy machine a policy that is admitted was
seen to wait five seconds for the process that tries it, which stands behind all others. Likewise the
time for a connection's handshake and headers: where replica or test stood still for five seconds, the
replica closed the connection."""

CRDS = Path(__file__).parents[2] / "manifests" / "crds"
TEMPLATES = "/apis/templates.gatekeeper.sh/v1/constrainttemplates"
CONSTRAINTS = "/apis/constraints.gatekeeper.sh/v1beta1"
STATUSES = f"/apis/status.gatekeeper.sh/v1beta1/namespaces/{NAMESPACE}"
KEY_SECRET = "waddle-revision-keys"
KEYS = f"/api/v1/namespaces/{NAMESPACE}/secrets/{KEY_SECRET}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CONFIG_MAPS = f"/api/v1/namespaces/{WORKLOADS}/configmaps"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
FENCED = "/api/v1/namespaces/default/configmaps"
"""Objects that no webhook of these tests matches."""

NOT_YET = (404, 429)
"""Answers to a write whose kind is not served yet, or whose storage is being made."""

NOT_YET_TEXTS = (
    "is terminating",
    "failed to configure policy",
    "missing ConstraintTemplate",
    "was not tried within its time",
    "context deadline exceeded",
)
"""An earlier CRD of that name ends; Gatekeeper's own policy fails closed until the API server knows
the kind of its parameters, and refuses whatever it is about, the next template among it; the replica
that is asked about a constraint has not got its template yet, of which another has made the CRD."""

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def try_request(api: Api, method: str, path: str, body: Any = None) -> Any:
    """The answer, or None where there is no such object, or its kind's storage is being made."""
    try:
        return api.request(method, path, body)
    except ApiError as error:
        if error.status in NOT_YET:
            return None
        raise


def template(name: str = "Denied", rego: str = "", **annotations: str) -> dict[str, Any]:
    """A template that denies ConfigMaps whose ``data.deny`` is the parameter ``word``."""
    rego = (
        rego
        or f"""
        package {name.lower()}
        violation[{{"msg": msg}}] {{
          input.review.object.data.deny == input.parameters.word
          msg := sprintf("denied by %v", [input.parameters.word])
        }}
        """
    )
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    metadata = {"annotations": annotations}
    return policies.template(name, rego, schema=schema, metadata=metadata)


def constraint(name: str, word: str, kind: str = "Denied") -> dict[str, Any]:
    """A constraint of that template."""
    return policies.constraint(kind, name, kinds=["ConfigMap"], parameters={"word": word})


def config_map(word: str, name: str = "probe", namespace: str = WORKLOADS) -> dict[str, Any]:
    """A ConfigMap that a constraint with this word denies."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"deny": word},
    }


def review_of(document: dict[str, Any]) -> dict[str, Any]:
    """An AdmissionReview of an object."""
    return review(document)


def own_address() -> str:
    """This machine's address: the API server asks no Pod at loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))  # nothing is sent
        return str(probe.getsockname()[0])


class Replica(Server):
    """``waddle serve --kubeconfig`` for a Pod object of its own."""

    def __init__(
        self,
        plane: "Plane",
        name: str,
        *flags: str,
        labels: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        health_port: int = 0,
        module: str = "webhook",
    ) -> None:
        """``health_port`` is one at which the API server reaches the Pod; 0 for none."""
        self.plane = plane
        self.name = name
        self.uid = plane.make_pod(name, labels, health_port)
        environment = {
            **os.environ,
            **(environment or {}),
            "POD_NAME": name,
            "POD_NAMESPACE": NAMESPACE,
            "POD_UID": self.uid,
        }
        command = [sys.executable, "-m", module, "serve"]
        command += [f"--kubeconfig={plane.cluster.kubeconfig}", f"--cert-dir={plane.certificates}"]
        health = f"0.0.0.0:{health_port}" if health_port else "127.0.0.1:0"
        command += ["--host=127.0.0.1", "--port=0", f"--health-addr={health}"]
        command += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", "--shutdown-delay=1"]
        command += [
            f"--handshake-timeout={PATIENT_SECONDS}s",
            f"--header-timeout={PATIENT_SECONDS}s",
        ]
        self._started = [*command, *flags], environment
        self.start(*self._started)

    def start(self, command: list[str], environment: Mapping[str, str]) -> None:
        """Run the process and read its log."""
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env=dict(environment), close_fds=True
        )
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ports: dict[str, int] = {}
        running.add(self)

    @property
    def title(self) -> str:
        """The name of its Pod."""
        return self.name

    def wait_ready(self) -> Self:
        """Wait until it answers."""
        until(lambda: self.is_ready, f"{self.name} is ready")
        return self

    def denies(self, word: str) -> bool:
        """Whether this very replica denies a ConfigMap with the word."""
        verdict = self.admit(config_map(word))
        return not verdict["allowed"]

    @property
    def is_ready(self) -> bool:
        """Returns whether `/readyz` succeeds."""
        return self.get("health", "/readyz").status == 200

    @property
    def digest(self) -> str:
        """The digest of the policies in force."""
        for line in self.get("metrics", "/metrics").body.decode().splitlines():
            if line.startswith("waddle_snapshot_info{"):
                return line.partition('digest="')[2].partition('"')[0]
        return ""

    @property
    def data_digest(self) -> str:
        """The digest of the data that policies may read."""
        for line in self.get("metrics", "/metrics").body.decode().splitlines():
            if line.startswith("waddle_synced_data_info{"):
                return line.partition('digest="')[2].partition('"')[0]
        return ""

    def kill(self) -> None:
        """SIGKILL, as a lost node."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start the process that was killed again, in the same Pod, as a kubelet does."""
        assert self.process.stderr is not None
        self._reader.join()
        self.process.stderr.close()
        self.start(*self._started)
        self.__enter__()


class Plane:
    """A control plane with Waddle's CRDs, and the Pods of replicas."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.certificates = folder / "certificates"
        self.certificates.mkdir()
        pair = self_signed(["127.0.0.1", "localhost"], dt.datetime.now(tz=dt.UTC))
        (self.certificates / "tls.crt").write_bytes(pair.certificate)
        (self.certificates / "tls.key").write_bytes(pair.key)
        self.bundle = base64.b64encode(pair.certificate).decode()
        self.audit_log = folder / "audit.log"

    def install(self) -> None:
        """Waddle's CRDs, each of which is served then, and the namespaces."""
        crds: list[dict[str, Any]] = []
        for file in CRDS.glob("*.yaml"):
            manifest = yaml.safe_load(file.read_text())
            if manifest["kind"] == "CustomResourceDefinition":
                self.api.apply(f"{CRD_PATH}/{manifest['metadata']['name']}", manifest)
                crds.append(manifest)
        self.make_namespaces()
        for crd in crds:
            until(lambda crd=crd: serves(self.api, crd), f"{crd['metadata']['name']} is served")

    def make_namespaces(self) -> None:
        """Creates the replicas' Namespace with its Secret, and that of the reviewed ConfigMaps."""
        for name in (NAMESPACE, WORKLOADS):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.api.apply(f"/api/v1/namespaces/{name}", body)
        named = {"name": KEY_SECRET, "namespace": NAMESPACE}
        keys = {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "Opaque"}
        self.api.apply(KEYS, keys)
        install_catch_all_webhooks(self.api)
        for name in (NAMESPACE, WORKLOADS):
            self.await_account(name)

    def await_account(self, namespace: str) -> None:
        """Wait until Pods can be made in a namespace: its service account comes in a moment."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        until(lambda: try_request(self.api, "GET", path), f"{namespace} has its service account")

    def make_pod(
        self, name: str, labels: Mapping[str, str] | None = None, health_port: int = 0
    ) -> str:
        """The UID of a new Pod object, by default one of a webhook's.

        With a ``health_port`` its address is this machine's, where the API server reaches it.
        """
        container: dict[str, Any] = {"name": "webhook", "image": "waddle"}
        if health_port:
            container["ports"] = [{"name": "health", "containerPort": health_port}]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels or POD_LABELS},
            "spec": {"containers": [container]},
        }
        made: dict[str, Any] = {}

        def create() -> bool:
            try:
                made.update(self.api.request("POST", PODS, body))
            except ApiError as error:
                if error.status not in (403, 409):
                    raise
                return False  # its service account comes in a moment
            return True

        until(create, "a Pod can be made")
        if health_port:
            made["status"] = {"phase": "Running", "podIPs": [{"ip": own_address()}]}
            self.api.request("PUT", f"{PODS}/{name}/status", made)
        return str(made["metadata"]["uid"])

    def mark_pod(self, name: str, *, ready: bool) -> None:
        """Say of a Pod what the kubelet would after its probes."""
        pod = self.api.request("GET", f"{PODS}/{name}")
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        pod["status"] = {"phase": "Running", "conditions": [condition]}
        self.api.request("PUT", f"{PODS}/{name}/status", pod)

    def finish_pod(self, name: str) -> None:
        """Say that a Pod's containers have ended, and will not be started again."""
        self.api.request(
            "PATCH",
            f"{PODS}/{name}/status",
            {"status": {"phase": "Failed"}},
            content_type="application/merge-patch+json",
        )

    def delete_pod(self, name: str) -> None:
        """Delete a Pod object at once, as a kubelet does in the end."""
        try_request(self.api, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")

    def register(
        self,
        port: int,
        name: str = "waddle-system-tests",
        *,
        timeout_seconds: int = PATIENT_SECONDS,
        resources: Sequence[str] = ("configmaps",),
        groups: Sequence[str] = ("",),
    ) -> None:
        """Have ``resources`` of ``groups`` in one namespace, and policies, reviewed at a port of loopback."""
        webhook = {
            "name": "validation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"https://127.0.0.1:{port}/v1/admit",
                "caBundle": self.bundle,
            },
            "failurePolicy": "Fail",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": timeout_seconds,
            "matchConditions": [
                {
                    "name": "own-namespace",
                    "expression": "!has(request.namespace) || "
                    f"request.namespace in ['{WORKLOADS}', '{NAMESPACE}']",
                }
            ],
            "rules": [
                {
                    "apiGroups": list(groups),
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": list(resources),
                },
                {
                    "apiGroups": [
                        "templates.gatekeeper.sh",
                        "constraints.gatekeeper.sh",
                        "waddle.dev",
                    ],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["*"],
                },
                {
                    "apiGroups": ["config.gatekeeper.sh"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["configs"],
                },
            ],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        self.api.apply(f"{WEBHOOKS}/{name}", body)
        self.await_configurations()

    def unregister(self, name: str = "waddle-system-tests") -> None:
        """Review nothing any more: whoever was asked may end now."""
        try_request(self.api, "DELETE", f"{WEBHOOKS}/{name}")
        self.await_configurations()

    def await_configurations(self, path: str = WEBHOOKS) -> None:
        """Wait until the API server goes by the webhook configurations as they are now.

        It follows them by a watch, hence in their order: once it goes by one that was made after
        all others, it goes by these. That one is about nothing but the object which asks for it.
        """
        name = f"fence-{secrets.token_hex(4)}"
        webhook = {
            "name": f"{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": self.bundle},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {"fence": name}},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ],
        }
        kind = "Mutating" if "/mutating" in path else "Validating"
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        body = {"metadata": {"name": name, "labels": {"fence": name}}}

        def is_fenced() -> bool:
            try:
                self.api.request("POST", f"{FENCED}?dryRun=All", body)
            except ApiError as error:
                return f"{name}.example.com" in error.body
            return False

        self.api.request("POST", path, configuration)
        try:
            until(is_fenced, "the API server goes by the webhook configurations")
        finally:
            self.api.request("DELETE", f"{path}/{name}")

    # --- policies --------------------------------------------------------------------------------

    def put_template(self, document: dict[str, Any]) -> dict[str, Any]:
        """Apply a template; constraints can be made then.

        One of a CRD that an earlier template of that name has left would be collected with it.
        """
        name = document["metadata"]["name"]
        made = self._put(f"{TEMPLATES}/{name}", document)
        path = f"{CRD_PATH}/{name}.constraints.gatekeeper.sh"

        def is_of_an_earlier_one() -> bool:
            metadata = (try_request(self.api, "GET", path) or {"metadata": {}})["metadata"]
            owners = metadata.get("ownerReferences", ())
            return any(owner["uid"] != made["metadata"]["uid"] for owner in owners)

        until(lambda: not is_of_an_earlier_one(), f"{name}'s earlier CRD is collected")
        return made

    def is_generated(self, name: str, uid: str) -> bool:
        """Whether the CRD of a template's constraints is there, and of this very template."""
        crd = try_request(self.api, "GET", f"{CRD_PATH}/{name}.constraints.gatekeeper.sh")
        if crd is None or "deletionTimestamp" in crd["metadata"]:
            return False
        return bool(crd["metadata"]["ownerReferences"][0]["uid"] == uid)

    def put_constraint(self, document: dict[str, Any]) -> dict[str, Any]:
        """Apply a constraint, as soon as its kind is served."""
        kind, name = document["kind"].lower(), document["metadata"]["name"]
        return self._put(f"{CONSTRAINTS}/{kind}/{name}", document)

    def _put(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Apply a document, as soon as the API server can take it."""
        made: dict[str, Any] = {}
        refused_with = ""

        def is_applied() -> bool:
            nonlocal refused_with
            try:
                made.update(self.api.apply(path, document))
            except ApiError as error:
                refused_with = str(error)
                if error.status in NOT_YET or any(text in refused_with for text in NOT_YET_TEXTS):
                    return False
                raise
            return True

        until(is_applied, lambda: f"{path} is taken: {refused_with}")
        return made

    def delete_constraint(self, name: str, kind: str) -> None:
        """Delete a constraint."""
        self.api.request("DELETE", f"{CONSTRAINTS}/{kind.lower()}/{name}")

    def delete_template(self, name: str) -> None:
        """Delete a template, and with it its CRD and constraints."""
        try_request(self.api, "DELETE", f"{TEMPLATES}/{name}")

    def delete_templates(self) -> None:
        """Delete every template, and wait until their kinds are gone."""
        self.api.request("DELETE", TEMPLATES)

        def are_gone() -> bool:
            crds = self.api.request("GET", CRD_PATH)["items"]
            return not any(crd["spec"]["group"] == "constraints.gatekeeper.sh" for crd in crds)

        until(are_gone, "the constraints' CRDs are collected")

    def by_pod(self, path: str) -> list[dict[str, Any]]:
        """``status.byPod`` of an object; empty where there is none, or nothing of its shape."""
        found = try_request(self.api, "GET", path) or {}
        entries = objects_of(status_of(found).get("byPod"))
        return [dict(entry) for entry in entries]

    def apply_and_await(
        self, path: str, document: dict[str, Any], replicas: Sequence[Replica]
    ) -> None:
        """Apply an object, and wait until every replica follows it as it is now, without an error."""
        made = self.api.apply(path, document)
        metadata = made["metadata"]
        names = {replica.name for replica in replicas}

        def all_follow() -> bool:
            following = {
                entry["id"]
                for entry in self.by_pod(path)
                if metadata["uid"] in entry.values()
                and entry["observedGeneration"] == metadata["generation"]
                and not entry.get("errors")
            }
            return names <= following

        until(all_follow, f"all replicas follow {path}")

    def audit_events(self) -> list[dict[str, Any]]:
        """The API server's account so far; the line that it is just writing is left out."""
        *lines, _ = self.audit_log.read_text().split("\n")
        return [json.loads(line) for line in lines]

    def writes(
        self, agent: str = "waddle/", replica: str = "", *, taken: bool = False
    ) -> list[str]:
        """Returns the writes of the replicas or another program, from the API server's audit log.

        ``taken`` leaves out what was refused: of an older version, or there already.
        """
        found = []
        for event in self.audit_events():
            user = event.get("userAgent", "")
            is_write = event["verb"] in ("create", "update", "patch", "delete")
            if (
                is_write
                and not (taken and event["responseStatus"]["code"] >= 400)
                and user.startswith(agent)
                and user.endswith(f"({replica})" * bool(replica))
            ):
                reference = event["objectRef"]
                found.append(
                    f"{event['verb']} {reference['resource']}/{reference.get('subresource', '')}"
                    f" {reference.get('name', '')}"
                )
        return found
