"""Replicas' statuses of an object."""

from webhook.api import pod_status as kinds
from webhook.api.pod_status import Pod, StatusError, pod_status

FAULT = StatusError("ingest_error", "does not compile", "x:1")
LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}


def template(generation=2):
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "t", "uid": "t-uid", "generation": generation},
    }


def pod(name, *, ready=None, labels=LABELS, ending=False, phase="Running"):
    found = {"metadata": {"name": name, "uid": f"{name}-uid", "labels": dict(labels)}}
    found["status"] = {"phase": phase}
    if ready is not None:
        found["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
    if ending:
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def says(name, *, observed=2, active=2, errors=(), operations=("webhook",), of=None, **fields):
    """Returns a replica's status of the template, or of another object, with generation 2."""
    document = of or template(observed)
    about = kinds.TEMPLATE if document["kind"].startswith("Con") else kinds.CONSTRAINT
    subject = kinds.status_subject(about, document)
    return pod_status(
        Pod(name, "waddle-system", f"{name}-uid", operations),
        subject,
        errors=errors,
        enforced=fields.pop("enforced", None),
        additions={"activeGeneration": active, "activeDigest": f"d{active}", **fields},
    )
