"""Policy reports of a control plane: their CRDs, and what they say."""

import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from tests import policies
from tests.cluster import ApiError
from tests.patience import PATIENCE_SECONDS, until
from tests.system.replicas import CRD_PATH, STATUSES, Plane, Replica, template, try_request
from webhook.reports.confirmation import LOST
from webhook.reports.report_api import APIS, WGPOLICY, ReportApi

MANIFESTS = Path(__file__).parents[2] / "manifests" / "reports"
TEMPLATE = template("Denied")
WRITES = frozenset({"create", "update", "patch", "delete"})

NAMESPACES = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {
        "name": "labelled",
        "annotations": {"waddle.dev/severity": "high", "waddle.dev/category": "Labels"},
    },
    "spec": {
        "crd": {"spec": {"names": {"kind": "Labelled"}}},
        "targets": [
            {
                "target": "admission.k8s.gatekeeper.sh",
                "rego": """
                package labelled
                violation[{"msg": "the label owner is missing"}] {
                  not input.review.object.metadata.labels.owner
                }
                """,
            }
        ],
    },
}
"""A template about labels, with a severity and a category."""


def install(plane: Plane) -> None:
    """Waddle's CRDs and the reports', and templates of their own."""
    plane.install()
    for file in MANIFESTS.glob("*/*reports.yaml"):
        manifest = yaml.safe_load(file.read_text())
        path = f"{CRD_PATH}/{manifest['metadata']['name']}"
        plane.api.apply(path, manifest)
        until(lambda path=path: is_established(plane, path), f"{path} is served")


def is_established(plane: Plane, path: str) -> bool:
    crd = plane.api.request("GET", path)
    version = crd["spec"]["versions"][0]["name"]
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    return try_request(plane.api, "GET", f"/apis/{group}/{version}/{plural}") is not None


def labelled(name: str, kind: str = "Namespace", **match: Any) -> dict[str, Any]:
    """A constraint about the label, of one kind of the core group."""
    return policies.constraint("Labelled", name, kinds=[kind], match=match)


def reports(plane: Plane, namespace: str = "", api: ReportApi = WGPOLICY) -> list[dict[str, Any]]:
    """The reports of a namespace, or of cluster-wide kinds."""
    path = api.resource(namespace).collection(namespace)
    found: list[dict[str, Any]] = plane.api.request("GET", path)["items"]
    return found


def by_scope(
    plane: Plane, namespace: str = "", api: ReportApi = WGPOLICY
) -> dict[str, dict[str, Any]]:
    """The reports by the name of what they are about."""
    return {item["scope"]["name"]: item for item in reports(plane, namespace, api)}


def rules(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The constraints of a report with their results."""
    return [(item["rule"], item["result"]) for item in report["results"]]


def make_namespace(plane: Plane, name: str, **labels: str) -> None:
    """A namespace of a test's own."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    plane.api.apply(f"/api/v1/namespaces/{name}", body)


def put_config_map(plane: Plane, namespace: str, name: str, word: str, **labels: str) -> Any:
    """A ConfigMap that a constraint with this word denies."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {"deny": word},
    }
    return plane.api.apply(f"/api/v1/namespaces/{namespace}/configmaps/{name}", body)


def delete_config_map(plane: Plane, namespace: str, name: str) -> None:
    """Delete it."""
    plane.api.request("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/{name}")


def writes(plane: Plane, *, ignored: Collection[str] = ()) -> Counter[str]:
    """How often reports were written, by the API server's own account: verb by verb.

    Those of resources with an ignored UID do not count.
    """
    found: Counter[str] = Counter()
    for event in plane.audit_events():
        reference = event.get("objectRef") or {}
        if (
            reference.get("apiGroup") in ("wgpolicyk8s.io", "openreports.io")
            and event["verb"] in WRITES
            and reference.get("name") not in ignored
        ):
            found[event["verb"]] += 1
    return found


def metric(replica: Replica, name: str, **labels: str) -> float:
    """A metric's value, summed over the series that have these labels."""
    total = 0.0
    for line in replica.get("metrics", "/metrics").body.decode().splitlines():
        if line.startswith((f"{name}{{", f"{name} ")) and all(
            f'{label}="{value}"' in line for label, value in labels.items()
        ):
            total += float(line.rpartition(" ")[2])
    return total


def sweeps(replica: Replica) -> int:
    """Sweeps that have ended."""
    return int(metric(replica, "waddle_audit_sweeps_total"))


def await_sweeps(replica: Replica, number: int = 2, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for so many more sweeps, and for the reports that follow from them."""
    end = sweeps(replica) + number
    until(lambda: sweeps(replica) >= end, f"{number} more sweeps have ended", seconds)
    await_written(replica, seconds)


def await_written(replica: Replica, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a replica has no report to write."""
    until(lambda: metric(replica, "waddle_reports_waiting") == 0, "no report waits", seconds)


def delete_all(plane: Plane, api: ReportApi, namespace: str) -> None:
    """Delete every report of a namespace."""
    path = api.resource(namespace).collection(namespace)
    try:
        plane.api.request("DELETE", path)
    except ApiError as error:
        if error.status != 404:
            raise


def delete_everywhere(plane: Plane) -> None:
    """Delete every report, and then every ConfigMap but the API server's own.

    In this order the garbage collector, whose deletions a later test may count, finds nothing.
    """
    namespaces = plane.api.request("GET", "/api/v1/namespaces")["items"]
    names = [item["metadata"]["name"] for item in namespaces]
    for api in APIS.values():
        for name in ("", *names):
            delete_all(plane, api, name)
    for name in names:
        if name != "kube-system":
            plane.api.request("DELETE", f"/api/v1/namespaces/{name}/configmaps")


def writes_at_rest(plane: Plane) -> Counter[str]:
    """Likewise, once nothing was added for a moment: the audit log has a write after its answer."""
    found: list[Counter[str]] = [writes(plane)]

    def at_rest() -> bool:
        time.sleep(0.5)
        found.append(writes(plane))
        return found[-1] == found[-2]

    until(at_rest, "reports are left alone")
    return found[-1]


def confirmed(plane: Plane) -> str | None:
    """When the sweep began that last found all reports to hold."""
    path = "/apis/coordination.k8s.io/v1/namespaces/waddle-system/leases"
    found = plane.api.request("GET", f"{path}?labelSelector=waddle.dev/confirms=reports")["items"]
    whole = [one for one in found if one["metadata"]["annotations"][LOST] == "0"]
    return max((one["spec"]["acquireTime"] for one in whole), default=None)


def have_shares(plane: Plane, count: int) -> bool:
    """Whether so many audits say of a constraint that they have shares of one whole."""
    selector = "internal.gatekeeper.sh/constraint-name=denies"
    path = f"{STATUSES}/constraintpodstatuses?labelSelector={selector}"
    found = [item["status"] for item in plane.api.request("GET", path)["items"]]
    members = [status["audit"]["members"] for status in found if "audit" in status]
    return len(members) == count and len(set(members)) == 1
