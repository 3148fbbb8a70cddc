"""Gatekeeper's own scenarios of mutation and expansion (test/bats), and ours, at three replicas.

The API server asks whichever replica a connection is made to, as behind a Service.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.system.conftest import ALL_OPERATIONS
from tests.system.proxy import Proxy
from tests.system.replicas import PATIENT_SECONDS, WEBHOOKS, Plane, Replica, try_request, until
from tests.webhook.mutation.documents import assign, image, label

MUTATORS = "/apis/mutations.gatekeeper.sh/v1"
IMAGES = "/apis/mutations.gatekeeper.sh/v1alpha1/assignimage"
EXPANSIONS = "/apis/expansion.gatekeeper.sh/v1beta1/expansiontemplate"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PLACE = "loadbalancers"
NAME = "waddle-mutation-scenarios"
FLAGS = (*ALL_OPERATIONS, "--operation=mutation-webhook", "--mutation-annotations")
OBJECTS = f"/api/v1/namespaces/{PLACE}"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{PLACE}/deployments"
CRON_JOBS = f"/apis/batch/v1/namespaces/{PLACE}/cronjobs"


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


@pytest.fixture(scope="module")
def replicas(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas behind one address, asked to mutate and to validate."""
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
        for path, kind, hook in (
            (
                CONFIGURATIONS,
                "Mutating",
                webhook(plane, proxy, "mutation.gatekeeper.sh", "/v1/mutate"),
            ),
            (
                WEBHOOKS,
                "Validating",
                webhook(plane, proxy, "validation.gatekeeper.sh", "/v1/admit"),
            ),
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
        yield started


@pytest.fixture(autouse=True)
def clean(plane: Plane) -> Iterator[None]:
    """What a test applies goes with it."""
    yield
    for kind in ("assign", "assignmetadata", "modifyset"):
        plane.api.request("DELETE", f"{MUTATORS}/{kind}")
    for path in (IMAGES, EXPANSIONS, DEPLOYMENTS, CRON_JOBS):
        plane.api.request("DELETE", path)
    for kind in ("configmaps", "services"):
        for item in plane.api.request("GET", f"{OBJECTS}/{kind}")["items"]:
            try_request(plane.api, "DELETE", f"{OBJECTS}/{kind}/{item['metadata']['name']}")
    until(lambda: not plane.api.request("GET", EXPANSIONS)["items"], "ExpansionTemplates are gone")


def place_of(document: dict[str, Any]) -> str:
    """Where a mutator is."""
    base = IMAGES if document["kind"] == "AssignImage" else f"{MUTATORS}/{document['kind'].lower()}"
    return f"{base}/{document['metadata']['name']}"


def enforced(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply a mutator, and wait until every replica says that it is enforced as it is now."""
    made = plane.api.apply(place_of(document), document)
    generation = made["metadata"]["generation"]
    names = {replica.name for replica in replicas}

    def all_say_so() -> bool:
        said = {
            entry["id"]
            for entry in plane.by_pod(place_of(document))
            if entry["enforced"] and entry["observedGeneration"] == generation
        }
        return names <= said

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
    """How many mutators a replica has in force."""
    return replica.metric('gatekeeper_mutators{status="active"}') or 0


def post(plane: Plane, kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """Create an object of the core group."""
    found: dict[str, Any] = plane.api.request("POST", f"{OBJECTS}/{kind}", document)
    return found


def refused(plane: Plane, path: str, document: dict[str, Any]) -> str:
    """Why an object is refused."""
    with pytest.raises(ApiError) as refusal:
        plane.api.request("POST", path, document)
    return str(refusal.value.body)


def test_an_owner_label_an_external_ip_and_an_image_as_gatekeeper_tests_them(
    plane: Plane, replicas: list[Replica]
) -> None:
    owner = label(
        "k8sownerlabel",
        "owner",
        "gatekeeper",
        match={
            "scope": "Namespaced",
            "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}],
            "labelSelector": {
                "matchExpressions": [
                    {
                        "key": "mutation/gatekeeper-test",
                        "operator": "In",
                        "values": ["assign-metadata"],
                    }
                ]
            },
        },
    )
    enforced(plane, owner, replicas)
    labels = {"mutation/gatekeeper-test": "assign-metadata"}
    found = post(plane, "configmaps", {"metadata": {"name": "mutate-cm", "labels": labels}})
    metadata = found["metadata"]
    assert metadata["labels"] == {**labels, "owner": "gatekeeper"}
    assert metadata["annotations"]["gatekeeper.sh/mutations"] == "AssignMetadata//k8sownerlabel:1"
    assert len(metadata["annotations"]["gatekeeper.sh/mutation-id"]) == 36

    services = [{"groups": [""], "versions": ["v1"], "kinds": ["Service"]}]
    enforced(plane, assign("k8sexternalip", "spec.externalIPs", [], applyTo=services), replicas)
    service = {
        "metadata": {"name": "mutate-svc"},
        "spec": {
            "selector": {"app": "MyApp"},
            "type": "NodePort",
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            "externalIPs": ["1.1.1.1"],
        },
    }
    found = post(plane, "services", service)
    assert not found["spec"].get("externalIPs")
    annotations = found["metadata"]["annotations"]
    assert annotations["gatekeeper.sh/mutations"] == "Assign//k8sexternalip:1"

    digest = "@sha256:abcde67890123456789abc345678901a"
    location = "spec.containers[name:*].image"
    names = image("add-domain-digest", location, assignDomain="foocorp.org", assignTag=digest)
    names["spec"]["match"] = {"source": "All", "scope": "Namespaced"}
    enforced(plane, names, replicas)
    template = {"spec": {"containers": [{"name": "test", "image": "nginx:latest"}]}}
    pod = {"metadata": {"name": "nginx-test-pod"}, **template}
    until(lambda: try_request(plane.api, "GET", f"{OBJECTS}/serviceaccounts/default"), "accounts")
    found = post(plane, "pods?dryRun=All", pod)
    assert found["spec"]["containers"][0]["image"] == f"foocorp.org/nginx{digest}"
    retracted(plane, names, replicas)
    assert post(plane, "pods?dryRun=All", pod)["spec"]["containers"][0]["image"] == "nginx:latest"


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


def required(name: str, kind: str, key: str, **match: Any) -> dict[str, Any]:
    """A constraint that asks objects of a kind for a label."""
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "K8sRequiredLabels",
        "metadata": {"name": name},
        "spec": {
            "match": {
                "namespaces": [PLACE],
                "kinds": [{"apiGroups": [""], "kinds": [kind]}],
                **match,
            },
            "parameters": {"labels": [key]},
        },
    }


@pytest.fixture
def labels_required(plane: Plane, replicas: list[Replica]) -> Iterator[None]:
    """The template of required labels; its constraints go with it."""
    assert replicas
    plane.put_template(REQUIRED)
    yield
    plane.delete_template("k8srequiredlabels")


def enforce_constraint(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply a constraint, and wait until every replica enforces it."""
    plane.put_constraint(document)
    path = (
        f"/apis/constraints.gatekeeper.sh/v1beta1/k8srequiredlabels/{document['metadata']['name']}"
    )
    names = {replica.name for replica in replicas}
    until(
        lambda: names <= {entry["id"] for entry in plane.by_pod(path) if entry["enforced"]},
        "the constraint is enforced by all",
    )


def expansion(name: str, of: list[str], source: str, makes: tuple[str, str], **spec: Any) -> Any:
    """An ExpansionTemplate of Gatekeeper's tests."""
    group = {"Deployment": "apps", "ReplicaSet": "apps", "Pod": ""}.get(of[0], "batch")
    return {
        "apiVersion": "expansion.gatekeeper.sh/v1beta1",
        "kind": "ExpansionTemplate",
        "metadata": {"name": name},
        "spec": {
            "applyTo": [{"groups": [group], "kinds": of, "versions": ["v1"]}],
            "templateSource": source,
            "generatedGVK": {"group": makes[0], "version": "v1", "kind": makes[1]},
            **spec,
        },
    }


def expanded(plane: Plane, document: dict[str, Any], replicas: list[Replica]) -> None:
    """Apply an ExpansionTemplate, and wait until every replica says something of it as it is."""
    path = f"{EXPANSIONS}/{document['metadata']['name']}"
    made = plane.api.apply(path, document)
    now = (made["metadata"]["uid"], made["metadata"]["generation"])
    names = {replica.name for replica in replicas}

    def all_say_so() -> bool:
        said = {
            entry["id"]
            for entry in plane.by_pod(path)
            if (entry["templateUID"], entry["observedGeneration"]) == now
        }
        return names <= said

    until(all_say_so, "all replicas follow the template")


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


TRIAL = f"{DEPLOYMENTS}?dryRun=All"


@pytest.mark.usefixtures("labels_required")
def test_deployments_and_cron_jobs_are_expanded_as_gatekeeper_tests_it(
    plane: Plane, replicas: list[Replica]
) -> None:
    of_deployments = expansion(
        "expand-deployments", ["Deployment", "ReplicaSet"], "spec.template", ("", "Pod")
    )
    expanded(plane, of_deployments, replicas)
    pods = required("loadbalancers-must-have-env", "Pod", "env")
    enforce_constraint(plane, pods, replicas)
    why = refused(plane, TRIAL, deployment())
    assert "[Implied by expand-deployments] you must provide labels" in why
    assert plane.api.request("POST", TRIAL, deployment(env="prod"))

    env = label(
        "add-env-label", "env", "prod", match={"source": "Generated", "scope": "Namespaced"}
    )
    enforced(plane, env, replicas)
    made = plane.api.request("POST", TRIAL, deployment())
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "nginx"}
    retracted(plane, env, replicas)
    assert "[Implied by" in refused(plane, TRIAL, deployment())

    warning = {**of_deployments, "spec": {**of_deployments["spec"], "enforcementAction": "warn"}}
    expanded(plane, warning, replicas)
    assert plane.api.request("POST", TRIAL, deployment())
    expanded(plane, of_deployments, replicas)

    plane.delete_constraint("loadbalancers-must-have-env", "K8sRequiredLabels")
    generated = required("loadbalancers-must-have-env-gen", "Pod", "env", source="Generated")
    enforce_constraint(plane, generated, replicas)
    until(lambda: "env-gen" in refused(plane, TRIAL, deployment()), "the other one is gone")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "n", "image": "nginx"}]}}
    until(lambda: try_request(plane.api, "GET", f"{OBJECTS}/serviceaccounts/default"), "accounts")
    assert post(plane, "pods?dryRun=All", pod)

    expanded(
        plane,
        expansion("expand-cronjobs", ["CronJob"], "spec.jobTemplate", ("batch", "Job")),
        replicas,
    )
    expanded(plane, expansion("expand-jobs", ["Job"], "spec.template", ("", "Pod")), replicas)
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "my-cronjob"},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "OnFailure",
                            "containers": [{"name": "nginx", "image": "nginx:1.14.2"}],
                        }
                    }
                }
            },
        },
    }
    why = refused(plane, f"{CRON_JOBS}?dryRun=All", cron_job)
    assert "[Implied by expand-jobs] you must provide labels" in why

    of_pods = expansion("expand-pods", ["Pod"], "spec.foo", ("batch", "CronJob"))
    plane.api.apply(f"{EXPANSIONS}/expand-pods", of_pods)
    for name in ("expand-pods", "expand-cronjobs", "expand-jobs"):
        path = f"{EXPANSIONS}/{name}"

        def tells_the_circle(path: str = path) -> bool:
            entries = plane.by_pod(path)
            return len(entries) >= 3 and all(
                entry.get("errors") == [{"message": "template forms expansion cycle"}]
                for entry in entries
            )

        until(tells_the_circle, f"{name} says that it is part of a circle")
    assert plane.api.request("POST", f"{CRON_JOBS}?dryRun=All", cron_job)


@pytest.mark.usefixtures("labels_required")
def test_one_request_is_mutated_first_and_what_came_of_it_is_validated(
    plane: Plane, replicas: list[Replica]
) -> None:
    enforce_constraint(plane, required("team", "ConfigMap", "team"), replicas)
    body = {"metadata": {"name": "made-well"}}
    assert "you must provide labels" in refused(plane, f"{OBJECTS}/configmaps", body)
    team = label("team", "team", "blue", match={"namespaces": [PLACE]})
    enforced(plane, team, replicas)
    assert post(plane, "configmaps", body)["metadata"]["labels"] == {"team": "blue"}
    retracted(plane, team, replicas)
    again = {"metadata": {"name": "made-badly"}}
    assert "you must provide labels" in refused(plane, f"{OBJECTS}/configmaps", again)


def test_while_a_mutator_changes_under_load_no_request_is_half_mutated(
    plane: Plane, replicas: list[Replica]
) -> None:
    """One mutator writes five fields of one generation: an object has all of one, never of two."""
    kinds = [{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]

    def fields(number: int) -> dict[str, Any]:
        value = {f"f{place}": str(number) for place in range(5)}
        return assign("fields", "data", value, applyTo=kinds)

    enforced(plane, fields(0), replicas)
    stop, wrong, seen = threading.Event(), list[str](), set[str]()

    def load(worker: int) -> None:
        made = 0
        while not stop.is_set():
            made += 1
            body = {"metadata": {"name": f"load-{worker}-{made}"}, "data": {"own": "x"}}
            try:
                found = post(plane, "configmaps?dryRun=All", body)
            except ApiError as error:
                wrong.append(f"{error.status}: {error.body[:300]}")
                return
            data = found.get("data") or {}
            if len(data) != 5 or len(set(data.values())) != 1:
                wrong.append(str(data))
                return
            seen.update(data.values())

    workers = [threading.Thread(target=load, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    try:
        for number in range(1, 6):
            plane.api.apply(place_of(fields(number)), fields(number))
            until(lambda number=number: str(number) in seen or wrong, f"generation {number} is met")
        enforced(plane, fields(6), replicas)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert wrong == []
    assert {"0", "5"} <= seen
