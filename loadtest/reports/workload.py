"""Pods that violate the restricted level of the Pod Security Standards, and its policies."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import ApiError
from tests.patience import until
from tests.system.replicas import WEBHOOKS, Plane, try_request

POLICIES = Path(__file__).resolve().parents[2] / "policies"
LEVELS = ("baseline-", "restricted-")
SPACES = 10
"""Namespaces that the Pods are spread over."""

AT_ONCE = 8


def _is_there(plane: Plane, path: str) -> bool:
    return try_request(plane.api, "GET", path) is not None


def constraints() -> list[dict[str, Any]]:
    """The 19 rules of both levels, of the default set."""
    documents = yaml.safe_load_all((POLICIES / "constraints.yaml").read_text())
    return [item for item in documents if item["metadata"]["name"].startswith(LEVELS)]


def templates() -> Iterator[dict[str, Any]]:
    """The templates of these rules."""
    for file in sorted(POLICIES.glob("pod-security-*/*/template.yaml")):
        yield yaml.safe_load(file.read_text())


def enforce(plane: Plane) -> None:
    """Apply the policies; a replica must be there to make their kinds."""
    for template in templates():
        plane.put_template(template)
    for constraint in constraints():
        plane.put_constraint(constraint)


def space(number: int) -> str:
    """The namespace of a Pod."""
    return f"shop-{number % SPACES}"


def make_spaces(plane: Plane) -> None:
    """The namespaces, with the service account without which no Pod is made."""
    for number in range(SPACES):
        name = space(number)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        plane.api.apply(f"/api/v1/namespaces/{name}", body)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        until(partial(_is_there, plane, account), "the service account is made")


def pod(name: str, image: str) -> dict[str, Any]:
    """A Pod as most charts make it: no security context at all."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "checkout"}},
        "spec": {
            "containers": [
                {
                    "name": "checkout",
                    "image": image,
                    "ports": [{"containerPort": 8080}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }
            ]
        },
    }


def in_parallel(work: Callable[[int], object], numbers: Iterable[int]) -> None:
    """Do it for each number, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(work, numbers):
            pass


def create(plane: Plane, prefix: str, count: int, image: str) -> None:
    """Make so many Pods."""

    def make(number: int) -> None:
        body = pod(f"{prefix}-{number}", image)
        path = f"/api/v1/namespaces/{space(number)}/pods"
        try:
            plane.api.request("POST", path, body)
        except ApiError as error:
            if error.status != 409:
                raise

    in_parallel(make, range(count))


def roll(plane: Plane, count: int, changes: int) -> int:
    """A rolling update: each Pod is replaced, and changed some times on its way; the admissions."""
    api = plane.api

    def replace(number: int) -> None:
        path = f"/api/v1/namespaces/{space(number)}/pods"
        api.request("POST", path, pod(f"new-{number}", "registry.example/checkout:2.0.0"))
        for change in range(changes):
            patch = {"metadata": {"labels": {"step": str(change)}}}
            api.request(
                "PATCH",
                f"{path}/new-{number}",
                patch,
                content_type="application/merge-patch+json",
            )
        api.request("DELETE", f"{path}/old-{number}?gracePeriodSeconds=0")

    in_parallel(replace, range(count))
    return count * (1 + changes)


def register(plane: Plane, port: int) -> None:
    """Have Pods reviewed at a port of loopback."""
    webhook = {
        "name": "validation.gatekeeper.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"https://127.0.0.1:{port}/v1/admit", "caBundle": plane.bundle},
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["pods"],
            }
        ],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "waddle-reports"},
        "webhooks": [webhook],
    }
    plane.api.apply(f"{WEBHOOKS}/waddle-reports", body)
