"""Objects of a cluster, as the console puts them together."""

from typing import Any

from webhook.api import pod_status
from webhook.api.pod_status import Pod

KIND = "RequiredLabel"


def policy(name: str = "owner", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}", "generation": 2, "resourceVersion": "7"}
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": KIND,
        "metadata": {**metadata, **fields.pop("metadata", {})},
        "spec": {"parameters": {"label": "new"}},
        **fields,
    }


def pod(name: str, *, ready: bool = True) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": {"name": name, "uid": f"u-{name}"},
        "status": {"phase": "Running", "conditions": [condition]},
    }


def status_by(
    name: str,
    document: dict[str, Any],
    kind: pod_status.StatusKind = pod_status.CONSTRAINT,
    **options: Any,
) -> dict[str, Any]:
    options.setdefault("enforced", True)
    options.setdefault("additions", {"activeGeneration": 2, "since": "2026-01-01T00:00:00Z"})
    replica = Pod(name, "waddle-system", f"u-{name}", ("webhook",))
    subject = pod_status.status_subject(kind, document)
    return pod_status.pod_status(replica, subject, **options)


def report(name: str, *results: dict[str, Any], source: str = "waddle") -> dict[str, Any]:
    scope = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": name, "uid": name}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"a": "b"}},
        "scope": scope,
        "results": [{"policy": KIND, "rule": "owner", "source": source, **one} for one in results],
    }
