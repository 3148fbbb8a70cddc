"""Chooses the Namespace with which a request, or an object of a file, is reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, namespace_of
from webhook.api.scope import is_cluster_scoped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.admission import AdmissionRequest

_UNNAMED: Final[Mapping[str, Any]] = {}


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

    1. The object names its namespace: that Namespace, None if it is not known.
    2. Its kind is known to be cluster-scoped: None, as at admission.
    3. Otherwise, such as a Deployment that goes into the namespace it is applied to: an empty
       Namespace, as gator does.
    """
    if name := namespace_of(obj):
        return namespaces.get(name)
    gvk = gvk_of(obj)
    return None if is_cluster_scoped(gvk.group, gvk.kind) else _UNNAMED
