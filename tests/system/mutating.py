"""Three replicas that the API server asks to mutate and to validate, and what is applied to them.

The API server asks whichever replica a connection is made to, as behind a Service.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests import policies
from tests.cluster import ApiError
from tests.policies import expansion_template
from tests.system.conftest import ALL_OPERATIONS
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CRD_PATH,
    PATIENT_SECONDS,
    WEBHOOKS,
    Plane,
    Replica,
    try_request,
    until,
)

MUTATORS = "/apis/mutations.gatekeeper.sh/v1"
IMAGES = "/apis/mutations.gatekeeper.sh/v1alpha1/assignimage"
EXPANSIONS = "/apis/expansion.gatekeeper.sh/v1beta1/expansiontemplate"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PLACE = "loadbalancers"
NAME = "waddle-mutation-scenarios"
FLAGS = (*ALL_OPERATIONS, "--operation=mutation-webhook", "--mutation-annotations")
OBJECTS = f"/api/v1/namespaces/{PLACE}"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{PLACE}/deployments"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{PLACE}/replicasets"
CRON_JOBS = f"/apis/batch/v1/namespaces/{PLACE}/cronjobs"
LABELLED = "/apis/constraints.gatekeeper.sh/v1beta1/k8srequiredlabels"


def webhook(plane: Plane, proxy: Proxy, name: str, path: str) -> dict[str, Any]:
    """A webhook for everything in the scenarios' namespace."""
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": f"https://127.0.0.1:{proxy.port}{path}",
            "caBundle": plane.bundle,
        },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": PATIENT_SECONDS,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PLACE}},
        "matchConditions": [
            {"name": "no-service-accounts", "expression": "request.kind.kind != 'ServiceAccount'"}
        ],
        "rules": [
            {
                "apiGroups": ["", "apps", "batch"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["*"],
                "scope": "Namespaced",
            }
        ],
    }


@contextmanager
def three(plane: Plane) -> Iterator[tuple[list[Replica], Proxy]]:
    """Three replicas behind one address, asked about everything in the scenarios' namespace."""
    with ExitStack() as stack:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
        plane.api.apply(f"/api/v1/namespaces/{PLACE}", body)
        proxy = Proxy()
        stack.callback(proxy.close)
        started = [Replica(plane, f"scenario-{number}", *FLAGS) for number in range(3)]
        for replica in started:
            stack.callback(plane.delete_pod, replica.name)
            stack.enter_context(replica)
        for replica in started:
            replica.wait_ready()
        proxy.replicas = started
        mutating = webhook(plane, proxy, "mutation.gatekeeper.sh", "/v1/mutate")
        validating = webhook(plane, proxy, "validation.gatekeeper.sh", "/v1/admit")
        for path, kind, hook in (
            (CONFIGURATIONS, "Mutating", mutating),
            (WEBHOOKS, "Validating", validating),
        ):
            plane.api.apply(
                f"{path}/{NAME}",
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{kind}WebhookConfiguration",
                    "metadata": {"name": NAME},
                    "webhooks": [hook],
                },
            )
            stack.callback(try_request, plane.api, "DELETE", f"{path}/{NAME}")
            plane.await_configurations(path)
        yield started, proxy


def clean(plane: Plane, replicas: list[Replica]) -> None:
    """Take back what a test applied, and wait until no replica goes by it any more."""
    for kind in ("assign", "assignmetadata", "modifyset"):
        plane.api.request("DELETE", f"{MUTATORS}/{kind}")
    for path in (IMAGES, EXPANSIONS, DEPLOYMENTS, REPLICA_SETS, CRON_JOBS):
        plane.api.request("DELETE", path)
    for kind in ("configmaps", "services"):
        for item in plane.api.request("GET", f"{OBJECTS}/{kind}")["items"]:
            try_request(plane.api, "DELETE", f"{OBJECTS}/{kind}/{item['metadata']['name']}")
    until(lambda: not plane.api.request("GET", EXPANSIONS)["items"], "ExpansionTemplates are gone")
    until(lambda: not any(map(active, replicas)), "no replica has a mutator")
    until(lambda: not any(map(expanding, replicas)), "no replica has an ExpansionTemplate")


def place_of(document: dict[str, Any]) -> str:
    """Returns the path of a mutator."""
    base = IMAGES if document["kind"] == "AssignImage" else f"{MUTATORS}/{document['kind'].lower()}"
    return f"{base}/{document['metadata']['name']}"


def enforced(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply a mutator, and wait until every replica says that it is enforced as it is now."""
    made = plane.api.apply(place_of(document), document)
    now = (made["metadata"]["uid"], made["metadata"]["generation"])
    names = {replica.name for replica in replicas}

    def all_say_so() -> bool:
        writers = {
            entry["id"]
            for entry in plane.by_pod(place_of(document))
            if entry["enforced"] and (entry["mutatorUID"], entry["observedGeneration"]) == now
        }
        return names <= writers

    until(all_say_so, f"{document['metadata']['name']} is enforced by all")


def retracted(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Delete a mutator, and wait until no replica applies it."""
    before = {replica.name: active(replica) for replica in replicas}
    plane.api.request("DELETE", place_of(document))
    until(
        lambda: all(active(replica) < before[replica.name] for replica in replicas),
        "every replica has one mutator fewer",
    )


def active(replica: Replica) -> float:
    """Returns the number of a replica's mutators in force."""
    return replica.metric('gatekeeper_mutators{status="active"}') or 0


def expanding(replica: Replica) -> float:
    """Returns the number of ExpansionTemplates that a replica knows, active or not."""
    return sum(
        replica.metric(f'gatekeeper_expansion_templates{{status="{status}"}}') or 0
        for status in ("active", "error")
    )


def allowed_by_all(replicas: list[Replica], document: dict[str, Any]) -> None:
    """Wait until no replica denies an object of the scenarios' namespace."""
    document = {**document, "metadata": {**document["metadata"], "namespace": PLACE}}
    until(
        lambda: all(replica.admit(document)["allowed"] for replica in replicas),
        f"every replica allows {document['kind']} {document['metadata']['name']}",
    )


def post(plane: Plane, kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """Create an object of the core group."""
    found: dict[str, Any] = plane.api.request("POST", f"{OBJECTS}/{kind}", document)
    return found


def refused(plane: Plane, path: str, document: dict[str, Any]) -> str:
    """Returns the refusal of an object."""
    with pytest.raises(ApiError) as refusal:
        plane.api.request("POST", path, document)
    return str(refusal.value.body)


REQUIRED = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "k8srequiredlabels"},
    "spec": {
        "crd": {
            "spec": {
                "names": {"kind": "K8sRequiredLabels"},
                "validation": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"labels": {"type": "array", "items": {"type": "string"}}},
                    }
                },
            }
        },
        "targets": [
            {
                "target": "admission.k8s.gatekeeper.sh",
                "rego": """
                package k8srequiredlabels
                violation[{"msg": msg, "details": {"missing_labels": missing}}] {
                  provided := {label | input.review.object.metadata.labels[label]}
                  required := {label | label := input.parameters.labels[_]}
                  missing := required - provided
                  count(missing) > 0
                  msg := sprintf("you must provide labels: %v", [missing])
                }
                """,
            }
        ],
    },
}


def delete_required(plane: Plane) -> None:
    """Delete that template, and wait for its CRD to go: another test makes both anew."""
    plane.delete_template("k8srequiredlabels")
    crd = f"{CRD_PATH}/k8srequiredlabels.constraints.gatekeeper.sh"
    until(lambda: try_request(plane.api, "GET", crd) is None, "its CRD is collected")


def required(name: str, kind: str, key: str, **match: Any) -> dict[str, Any]:
    """A constraint that asks objects of a kind for a label."""
    return policies.constraint(
        "K8sRequiredLabels",
        name,
        kinds=[kind],
        match={"namespaces": [PLACE], **match},
        parameters={"labels": [key]},
    )


def enforce_constraint(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply a constraint, and wait until every replica enforces it."""
    plane.put_constraint(document)
    path = f"{LABELLED}/{document['metadata']['name']}"
    names = {replica.name for replica in replicas}
    until(
        lambda: names <= {entry["id"] for entry in plane.by_pod(path) if entry["enforced"]},
        "the constraint is enforced by all",
    )


def expansion(name: str, of: list[str], source: str, makes: tuple[str, str], **spec: Any) -> Any:
    """An ExpansionTemplate of Gatekeeper's tests."""
    group = {"Deployment": "apps", "ReplicaSet": "apps", "Pod": ""}.get(of[0], "batch")
    return expansion_template(
        name,
        version="v1beta1",
        applyTo=[{"groups": [group], "kinds": of, "versions": ["v1"]}],
        templateSource=source,
        generatedGVK={"group": makes[0], "version": "v1", "kind": makes[1]},
        **spec,
    )


def expanded(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply an ExpansionTemplate, and wait until every replica follows it."""
    plane.apply_and_await(f"{EXPANSIONS}/{document['metadata']['name']}", document, replicas)


def deployment(**labels: str) -> dict[str, Any]:
    """A Deployment whose Pods have these labels."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "nginx-deployment", "labels": {"app": "nginx"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {
                "metadata": {"labels": {"app": "nginx", **labels}},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:1.14.2"}]},
            },
        },
    }
