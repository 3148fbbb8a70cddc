"""The CRDs of constraints: one for each template, made by whichever replica is first.

The API server fills in much that a template does not say, and others may label
what they did not make; so a CRD is right when it has everything that is wanted
of it, whatever else it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind
from webhook.cluster.reflector import Selection
from webhook.cluster.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import Json

CRDS: Final = Resource(
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    "customresourcedefinitions",
    namespaced=False,
)

CONSTRAINT_LABEL: Final = "gatekeeper.sh/constraint"

SELECTION: Final = Selection(labels=f"{CONSTRAINT_LABEL}=yes")
"""The CRDs of constraints, as Gatekeeper labels them."""


def owned(crd: Mapping[str, Any], template: Mapping[str, Any]) -> Json:
    """The CRD with its template as its owner, so that it goes when the template goes."""
    owner = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "name": template["metadata"]["name"],
        "uid": template["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**crd, "metadata": {**crd["metadata"], "ownerReferences": [owner]}}


def overlay_crd(wanted: Json, current: Json) -> Json | None:
    """The wanted CRD over the current one; None where the current one has all of it."""
    changed = {
        **current,
        "metadata": _over(wanted["metadata"], current["metadata"]),
        "spec": _over(wanted["spec"], current["spec"]),
    }
    return None if changed == current else changed


def _over(wanted: Any, current: Any) -> Any:
    """Wanted fields over current ones, except that a schema is taken whole.

    A property that the template no longer has must go; elsewhere what is there
    and not spoken of is the API server's default.
    """
    if isinstance(wanted, dict) and isinstance(current, dict):
        merged = dict(current)
        for name, value in wanted.items():
            merged[name] = value if name == "schema" else _over(value, current.get(name))
        return merged
    if isinstance(wanted, list) and isinstance(current, list) and len(wanted) == len(current):
        return [_over(ours, theirs) for ours, theirs in zip(wanted, current, strict=True)]
    return wanted
