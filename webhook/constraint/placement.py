"""The Namespace that a request, or an object of a file, is reviewed with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, namespace_of
from webhook.api.scope import is_cluster_scoped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.admission import AdmissionRequest

_UNNAMED: Final[Mapping[str, Any]] = {}


def placed(request: AdmissionRequest) -> AdmissionRequest:
    """A request as it is reviewed: a Namespace is in none.

    Server-side apply names the Namespace here too; see Gatekeeper's issue 792.
    """
    if request.namespace and request.kind.kind == "Namespace" and not request.kind.group:
        document = {name: value for name, value in request.document.items() if name != "namespace"}
        return request._replace(namespace="", document=document)
    return request


def namespace_for(
    obj: Mapping[str, Any], namespaces: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The Namespace of an object, from those that are known by name; None where it has none.

    A Deployment that names no namespace goes into the one that it is applied to, so it is
    namespaced: it is given an empty Namespace, as gator gives to every object without one. What is
    known to be cluster-scoped has none, as at admission.
    """
    if name := namespace_of(obj):
        return namespaces.get(name)
    gvk = gvk_of(obj)
    return None if is_cluster_scoped(gvk.group, gvk.kind) else _UNNAMED
