"""A namespace of a cluster with replicas, a template and a constraint made by hand."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api, ApiError, Cluster, serves
from tests.conformance.gatekeeper import waddle
from tests.manifests import constraint_crd
from tests.patience import PATIENCE_SECONDS, until
from webhook.api import pod_status
from webhook.api.pod_status import Pod

ROOT = Path(__file__).resolve().parents[2]
LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}
TEMPLATES = "/apis/templates.gatekeeper.sh/v1/constrainttemplates"
CONSTRAINTS = "/apis/constraints.gatekeeper.sh/v1beta1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STATUSES = "/apis/status.gatekeeper.sh/v1beta1/namespaces"
EXCEPTIONS = "/apis/waddle.dev/v1alpha1/namespaces"
LONG = f"{PATIENCE_SECONDS:.0f}s"
SHORT = "2s"
LONGER = ("8s", "32s", "128s")
"""Longer timeouts for a busy machine, if the API server has not answered within the first."""

Object = dict[str, Any]


@dataclass
class Stage:
    """A namespace with replicas, a template and a constraint of its own."""

    api: Api
    kubeconfig: Path
    name: str
    template: Object = field(default_factory=dict)
    constraint: Object = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.name.replace("-", "").capitalize()

    @property
    def constraint_path(self) -> str:
        return f"{CONSTRAINTS}/{self.kind.lower()}/{self.name}"

    def options(self) -> list[str]:
        return ["--kubeconfig", str(self.kubeconfig), "-n", self.name]

    def wait(self, shown: str = "", *more: str, timeout: str = SHORT) -> Any:
        shown = shown or f"{self.kind}/{self.name}"
        for patience in (timeout, *LONGER):
            options = ("--timeout", patience, *self.options())
            done = waddle("wait", "--for=enforced", shown, *more, *options)
            if "the API server has not answered" not in done.stderr:
                break
        return done

    def replica(self, name: str, *, ready: bool = True, finalizers: Any = None) -> Pod:
        """A Pod as the kubelet would have it."""
        manifest: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": LABELS, "finalizers": finalizers or []},
            "spec": {"containers": [{"name": "webhook", "image": "waddle"}]},
        }
        path = f"/api/v1/namespaces/{self.name}/pods"
        made = self.api.request("POST", path, manifest)
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "conditions": [condition]}
        self.api.request("PUT", f"{path}/{name}/status", made | {"status": status})
        return Pod(name, self.name, made["metadata"]["uid"], ("webhook",))

    def say(self, pod: Pod, document: Object, **options: Any) -> None:
        """The status of a replica about an object, put in the place of an earlier one."""
        if document["kind"] == "ConstraintTemplate":
            subject = pod_status.status_subject(pod_status.TEMPLATE, document)
        else:
            subject = pod_status.status_subject(pod_status.CONSTRAINT, document)
            options.setdefault("enforced", True)
        additions = {"since": "2026-01-02T03:04:05Z", "activeGeneration": 1}
        additions |= options.pop("additions", {})
        made = pod_status.pod_status(pod, subject, additions=additions, **options)
        path = f"{STATUSES}/{self.name}/{subject.status.plural}/{made['metadata']['name']}"
        self.api.apply(path, made)

    def change(self) -> None:
        """A new generation of the constraint."""
        self.constraint["spec"] = {"enforcementAction": "warn"}
        self.constraint = self.api.request("PUT", self.constraint_path, self.constraint)


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    """The shared API server once it serves the kinds that an installation brings."""
    api = cluster.api
    crds: list[Object] = []
    for file in (ROOT / "manifests" / "crds").glob("*.yaml"):
        manifest = yaml.safe_load(file.read_text())
        if manifest["kind"] == "CustomResourceDefinition":
            api.apply(f"{CRDS}/{manifest['metadata']['name']}", manifest)
            crds.append(manifest)
    for crd in crds:
        until(lambda crd=crd: serves(api, crd), f"{crd['metadata']['name']} is served")
    return cluster


@pytest.fixture
def stage(installed: Cluster) -> Iterator[Stage]:
    api = installed.api
    stage = Stage(api, installed.kubeconfig, f"wait-{uuid.uuid4().hex[:8]}")
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": stage.name}})
    retry(lambda: api.request("GET", f"/api/v1/namespaces/{stage.name}/serviceaccounts/default"))
    kind = stage.kind
    stage.template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": kind.lower()},
        "spec": {"crd": {"spec": {"names": {"kind": kind}}}},
    }
    stage.template = retry(lambda: api.request("POST", TEMPLATES, stage.template))
    api.request("POST", CRDS, constraint_crd(kind))
    manifest = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": stage.name},
        "spec": {},
    }
    collection = f"{CONSTRAINTS}/{kind.lower()}"
    stage.constraint = retry(lambda: api.request("POST", collection, manifest))
    yield stage
    # No controller empties a namespace here: what is left in it would show in others' tables.
    api.request("DELETE", f"{EXCEPTIONS}/{stage.name}/policyexceptions")
    api.request("DELETE", f"{CRDS}/{kind.lower()}.constraints.gatekeeper.sh")
    try:
        api.request("DELETE", f"{TEMPLATES}/{kind.lower()}")
    except ApiError as error:
        if error.status != 404:  # a test may have deleted it
            raise
    api.request("DELETE", f"/api/v1/namespaces/{stage.name}")


def retry(request: Any) -> Any:
    """Returns the answer; repeats the request after 404, and after 429: storage is prepared."""
    found = []

    def is_answered() -> bool:
        try:
            found.append(request())
        except ApiError as error:
            if error.status not in (404, 429):
                raise
        return bool(found)

    until(is_answered, "the API server serves it")
    return found[0]
