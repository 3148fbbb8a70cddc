"""Gatekeeper's scenarios of external data, at the API server, by a provider that asks who calls."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests import policies
from tests.patience import until
from tests.provider_process import ProviderProcess, make_authority
from tests.system.mutating import (
    DEPLOYMENTS,
    OBJECTS,
    PLACE,
    active,
    clean,
    enforced,
    post,
    refused,
    retracted,
    three,
)
from tests.system.providers import PROVIDERS, put_provider
from tests.system.replicas import CONSTRAINTS, CRD_PATH, STATUSES, Plane, Replica, try_request
from tests.webhook.mutation.documents import assign, mutator

KNOWN = "known-images"
TEMPLATE = policies.template(
    "KnownImages",
    f"""
    package knownimages
    violation[{{"msg": msg}}] {{
      images := [image | image := input.review.object.spec.template.spec.containers[_].image]
      answer := external_data({{"provider": "{KNOWN}", "keys": images}})
      is_bad(answer)
      msg := sprintf("the provider says %v", [answer])
    }}
    is_bad(answer) {{ answer.errors[_] }}
    is_bad(answer) {{ answer.system_error != "" }}
    """,
)
ON_DEPLOYMENTS = {
    "namespaces": [PLACE],
    "kinds": [{"apiGroups": ["apps"], "kinds": ["Deployment"]}],
}
CONSTRAINT = policies.constraint("KnownImages", "known-images", match=ON_DEPLOYMENTS)


@pytest.fixture(scope="module")
def provider(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    """A provider whose callers show the replicas' certificate."""
    with ProviderProcess(
        tmp_path_factory.mktemp("provider"),
        authority=make_authority(),
        client_authority=plane.certificates / "tls.crt",
    ) as process:
        yield process


@pytest.fixture(scope="module")
def replicas(plane: Plane, provider: ProviderProcess) -> Iterator[list[Replica]]:
    """Three replicas, asked to mutate and to validate, which go by the provider."""
    with three(plane) as (started, _):
        put_provider(plane, provider.manifest(KNOWN, timeout=10), started)
        yield started
        plane.api.request("DELETE", f"{PROVIDERS}/{KNOWN}")


@pytest.fixture(autouse=True)
def cleaned(plane: Plane, replicas: list[Replica]) -> Iterator[None]:
    """Deletes the test's policies after it."""
    yield
    clean(plane, replicas)


def deployment(image: str) -> dict[str, Any]:
    """A Deployment of no Pod, of this image."""
    labels = {"app": "asks"}
    return {
        "metadata": {"name": "asks"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "one", "image": image}]},
            },
        },
    }


def provided(kind: str, name: str, location: str, source: str, **external: str) -> dict[str, Any]:
    """A mutator of Pods whose value the provider says."""
    data = {"provider": KNOWN, "dataSource": source, **external}
    return mutator(kind, name, location, parameters={"assign": {"externalData": data}})


def test_a_provider_is_followed_by_every_replica_and_each_says_so(
    plane: Plane, replicas: list[Replica]
) -> None:
    names = {replica.name for replica in replicas}
    selector = f"labelSelector=internal.gatekeeper.sh/provider-name={KNOWN}"
    statuses = plane.api.request("GET", f"{STATUSES}/providerpodstatuses?{selector}")["items"]
    own = [item["status"] for item in statuses if item["status"]["id"] in names]
    assert len(own) == len(names)
    assert all(status["active"] and not status.get("errors") for status in own)
    until(
        lambda: all(entry["active"] for entry in plane.by_pod(f"{PROVIDERS}/{KNOWN}")),
        "other tests' replicas say so, too",
    )
    series = 'gatekeeper_providers{status="active"}'
    for replica in replicas:
        until(lambda replica=replica: replica.metric(series) == 1, "a metric counts it")


def test_what_the_provider_refuses_or_cannot_say_is_denied_and_what_it_knows_is_allowed(
    plane: Plane, replicas: list[Replica], provider: ProviderProcess
) -> None:
    provider.forget()
    plane.put_template(TEMPLATE)
    plane.put_constraint(CONSTRAINT)
    names = {replica.name for replica in replicas}
    path = f"{CONSTRAINTS}/knownimages/known-images"
    until(
        lambda: names <= {entry["id"] for entry in plane.by_pod(path) if entry["enforced"]},
        "the constraint is enforced by all",
    )
    try:
        message = refused(plane, DEPLOYMENTS, deployment("error/app:1"))
        assert "denied the request" in message
        assert "error/app:1 is refused" in message
        message = refused(plane, DEPLOYMENTS, deployment("system/app:1"))
        assert "denied the request" in message
        assert "system/app:1 cannot be looked up" in message
        made = plane.api.request("POST", f"{DEPLOYMENTS}?dryRun=All", deployment("app:1"))
        assert made["metadata"]["name"] == "asks"
    finally:
        plane.delete_template("knownimages")
        crd = f"{CRD_PATH}/knownimages.constraints.gatekeeper.sh"
        until(lambda: try_request(plane.api, "GET", crd) is None, "its CRD is collected")
    requests = provider.requests()
    assert {("error/app:1",), ("system/app:1",), ("app:1",)} <= {
        tuple(one["keys"]) for one in requests
    }
    assert {(one["client"], one["tls"], one["content_type"]) for one in requests} == {
        ("127.0.0.1", "TLSv1.3", "application/json")
    }


def test_user_and_images_are_replaced_by_what_the_provider_says(
    plane: Plane, replicas: list[Replica]
) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = plane.api.request("POST", path, review)["status"]["userInfo"]["username"]
    where = "metadata.annotations.asked-for"
    asks_user = provided("AssignMetadata", "asks-user", where, "Username")
    sidecar = assign(
        "a-sidecar", "spec.containers[name: beside]", {"name": "beside", "image": "sidecar"}
    )
    image = provided("Assign", "b-images", "spec.containers[name: *].image", "ValueAtLocation")
    for document in (asks_user, sidecar, image):
        enforced(plane, document, replicas)
    until(lambda: try_request(plane.api, "GET", f"{OBJECTS}/serviceaccounts/default"), "accounts")

    def pod(image: str) -> dict[str, Any]:
        return {
            "metadata": {"name": "asks"},
            "spec": {"containers": [{"name": "own", "image": image}]},
        }

    made = post(plane, "pods?dryRun=All", pod("nginx"))
    assert made["metadata"]["annotations"]["asked-for"] == f"{user} is known"
    images = {item["name"]: item["image"] for item in made["spec"]["containers"]}
    assert images == {"own": "nginx is known", "beside": "sidecar is known"}

    pods = f"{OBJECTS}/pods?dryRun=All"
    assert "error/nginx is refused" in refused(plane, pods, pod("error/nginx"))
    assert "system/nginx cannot be looked up" in refused(plane, pods, pod("system/nginx"))
    for document in (asks_user, sidecar, image):
        retracted(plane, document, replicas)
    assert not any(map(active, replicas))
