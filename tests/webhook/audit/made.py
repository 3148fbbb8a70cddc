"""Snapshots, objects and results for tests of the audit's parts."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests import policies
from webhook.api.gvk import GroupVersionKind
from webhook.audit.sink import Identity
from webhook.constraint.client import Client
from webhook.constraint.constraint import Constraint
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.isolation import DEFAULT, Isolation
from webhook.constraint.result import Result
from webhook.constraint.snapshot import Snapshot
from webhook.constraint.targets.admission import AdmissionTarget

POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SECRET = GroupVersionKind("", "v1", "Secret")

ALWAYS = 'violation[{"msg": "always"}] { true }'


def template(kind: str, rego: str = ALWAYS) -> dict[str, Any]:
    """A template."""
    return policies.template(kind, f"package {kind.lower()}\n{rego}")


def constraint(kind: str, name: str, *gvks: GroupVersionKind, **spec: Any) -> dict[str, Any]:
    """A constraint on some kinds, or on all."""
    match = [{"apiGroups": [gvk.group], "kinds": [gvk.kind]} for gvk in gvks]
    given = {"match": {"kinds": match} if match else {}, **spec}
    metadata = {"uid": f"uid-{name}", "generation": 1}
    return policies.constraint(kind, name, metadata=metadata, **given)


def snapshot(*documents: Mapping[str, Any], isolation: Isolation = DEFAULT) -> Snapshot:
    """Templates and constraints in force."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()], isolation=isolation)
    for document in documents:
        if document["kind"] == "ConstraintTemplate":
            client.add_template(document)
        else:
            client.add_constraint(document)
    return client.snapshot


def result(name: str = "c", msg: str = "m", action: str = "deny", **more: Any) -> Result:
    """A violation."""
    document = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "metadata": {"name": name}}
    return Result(
        "admission.k8s.gatekeeper.sh", Constraint("Kind", name, document), msg, {}, action, **more
    )


def identity(name: str, gvk: GroupVersionKind = POD, namespace: str = "space") -> Identity:
    """An object's."""
    return Identity(gvk, namespace, name, f"uid-{name}")


def items(names: Sequence[str], namespace: str = "") -> list[dict[str, Any]]:
    """A list's items."""
    place = {"namespace": namespace} if namespace else {}
    return [{"metadata": {"name": name, **place}} for name in names]
