"""Asks one replica, or another server of admissions."""

import base64
import http.client
import json
from typing import Any

from tests.behaviour.serving import unverified
from tests.cluster import ApiError
from tests.json_patch import apply_patch
from tests.manifests import CONFIGURATION
from tests.patience import PATIENCE_SECONDS, until
from tests.system.installed import InstalledServer
from tests.system.replicas import PATIENT_SECONDS, WEBHOOKS, WORKLOADS, Plane


def ask_replica(plane: Plane, replica: InstalledServer) -> None:
    """Have the API server ask a process of this machine, and nobody else, about one namespace."""
    until(lambda: is_asked(plane, replica), "the configuration is ours")


def is_asked(plane: Plane, replica: InstalledServer) -> bool:
    """Whether the configuration names the process now; who keeps the bundle writes it, too."""
    configuration = plane.api.request("GET", f"{WEBHOOKS}/{CONFIGURATION}")
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://localhost:{replica.ports['admission']}{path}"
        webhook["timeoutSeconds"] = PATIENT_SECONDS
        only = f"has(request.namespace) && request.namespace == '{WORKLOADS}'"
        webhook["matchConditions"].append({"name": "tests-alone", "expression": only})
    try:
        plane.api.request("PUT", f"{WEBHOOKS}/{CONFIGURATION}", configuration)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def register_both(
    plane: Plane, name: str, port: int, *, ignore: list[str], fail: list[str]
) -> None:
    """Have core resources of one namespace sent to a port: some fail open, others closed."""
    entries = []
    for path, resources in (("ignore", ignore), ("fail", fail)):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
        mine = {"name": "mine", "expression": f"request.namespace == '{WORKLOADS}'"}
        entries.append(
            {
                "name": f"{path}.waddle.dev",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": f"https://127.0.0.1:{port}/v1/admit/{path}",
                    "caBundle": plane.bundle,
                },
                "failurePolicy": path.capitalize(),
                "sideEffects": "None",
                "timeoutSeconds": PATIENT_SECONDS,
                "matchConditions": [mine],
                "rules": [{**rule, "resources": resources}],
            }
        )
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": entries,
    }
    plane.api.apply(f"{WEBHOOKS}/{name}", body)


class Connected:
    """A server and a connection that stays."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE_SECONDS, context=unverified()
        )

    def __call__(self, review: dict[str, Any]) -> dict[str, Any]:
        """The answer, but for the order of what several constraints say."""
        response = self._post("/v1/admit", review)
        status = response.get("status") or {}
        return {
            "allowed": response["allowed"],
            "code": status.get("code"),
            "messages": sorted(status.get("message", "").split("\n")),
            "warnings": sorted(response.get("warnings") or ()),
        }

    def mutate(self, review: dict[str, Any]) -> dict[str, Any]:
        """Returns the mutated object, or the reason of the refusal."""
        response = self._post("/v1/mutate", review)
        status = response.get("status") or {}
        patch = json.loads(base64.b64decode(response.get("patch") or "W10="))
        return {
            "allowed": response["allowed"],
            "code": status.get("code"),
            "message": status.get("message", ""),
            "object": apply_patch(review["request"]["object"], patch),
        }

    def _post(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(review).encode()
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"{path}?timeout=30s", body, headers)
        answer = self._connection.getresponse()
        response: dict[str, Any] = json.loads(answer.read())["response"]
        return response

    def close(self) -> None:
        """Leave."""
        self._connection.close()


def dry_run(plane: Plane, plural: str, **fields: Any) -> str:
    """Create an object in a dry run: ``admitted``, or why it is refused."""
    path = f"/api/v1/namespaces/{WORKLOADS}/{plural}?dryRun=All"
    try:
        plane.api.request("POST", path, {"metadata": {"name": "tried"}, **fields})
    except ApiError as error:
        return error.body
    return "admitted"
