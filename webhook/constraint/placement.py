"""Chooses the Namespace with which a request, or an object of a file, is reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.scope import is_cluster_scoped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.admission import AdmissionRequest

_UNNAMED: Final[Mapping[str, Any]] = {}

DEFAULT: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default"},
}
"""The Namespace that every cluster has. Without its manifest it is matched as one without labels,
as in gator, and policies see none: they would take the missing labels for known."""


def request_to_review(request: AdmissionRequest) -> AdmissionRequest:
    """Returns the request to review: a request about a Namespace has no namespace.

    Server-side apply sets it to the Namespace's own name; see Gatekeeper's issue 792.
    """
    if request.namespace and request.kind.kind == "Namespace" and not request.kind.group:
        document = {name: value for name, value in request.document.items() if name != "namespace"}
        return request._replace(namespace="", document=document)
    return request


def namespace_for(
    obj: Mapping[str, Any], namespaces: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Returns the Namespace of an object, out of ``namespaces`` by name.

    There are three cases:

    1. The object names its namespace: that Namespace, None if it is not known. ``default`` is known.
    2. Its kind is known to be cluster-scoped: None, as at admission.
    3. Otherwise, such as a Deployment that goes into the namespace it is applied to: an empty
       Namespace, as gator does.
    """
    if name := namespace_of(obj):
        return namespace_named(name, namespaces)
    gvk = gvk_of(obj)
    return None if is_cluster_scoped(gvk.group, gvk.kind) else _UNNAMED


def namespace_named(
    name: str, namespaces: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Returns the Namespace of a name: its manifest, or :data:`DEFAULT`; None if it is not known."""
    return namespaces.get(name, DEFAULT if name == name_of(DEFAULT) else None)
