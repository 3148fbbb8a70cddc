"""The variables of CEL expressions, as in k8s.io/apiserver's admission/plugin/cel and Gatekeeper."""

from __future__ import annotations

from typing import Any, Final

_NAMESPACE_METADATA: Final = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "finalizers",
)
_GRACE: Final = "deletionGracePeriodSeconds"
"""A field that is present even if it is 0, because it is a pointer in Go."""

_USER: Final = ("username", "uid", "groups", "extra")


def variables_of(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the variables of a review.

    On DELETE ``object`` is null, unlike in Rego, where it is the old object.
    """
    return {
        **objects_of(document),
        "request": _request(document),
        "namespaceObject": _namespace(document.get("namespaceObject")),
    }


def objects_of(document: dict[str, Any]) -> dict[str, Any]:
    """Returns ``object`` and ``oldObject`` of a review."""
    deleted = document.get("operation") == "DELETE"
    return {
        "object": None if deleted else document.get("object"),
        "oldObject": document.get("oldObject"),
    }


def any_object(variables: dict[str, Any]) -> Any:
    """Returns ``anyObject``: the object, or on DELETE the old one."""
    document = variables["object"]
    if document is None and variables["request"].get("operation") == "DELETE":
        return variables["oldObject"]
    return document


def _request(document: dict[str, Any]) -> dict[str, Any]:
    """Returns an admission request as the API server builds it, without empty fields.

    Three fields are present though empty; only expressions of type dyn can see that.
    """
    kind, resource = _three(document, "kind", "kind"), _three(document, "resource", "resource")
    request: dict[str, Any] = {
        "uid": "",
        "object": None,
        "oldObject": None,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "operation": document.get("operation") or "",
        "userInfo": {},
        "dryRun": bool(document.get("dryRun")),
        "options": document.get("options"),
    }
    for name in ("name", "namespace", "subResource"):
        value = document.get(name)
        if value:
            request[name] = value
    if "subResource" in request:
        request["requestSubResource"] = request["subResource"]
    user = document.get("userInfo") or {}
    request["userInfo"] = {name: user[name] for name in _USER if user.get(name)}
    return request


def _three(document: dict[str, Any], name: str, last: str) -> dict[str, str]:
    given = document.get(name) or {}
    return {field: given.get(field) or "" for field in ("group", "version", last)}


def _namespace(given: dict[str, Any] | None) -> dict[str, Any] | None:
    if not given:
        return None
    metadata = given.get("metadata") or {}
    kept = {
        name: metadata[name]
        for name in _NAMESPACE_METADATA
        if metadata.get(name) or (name == _GRACE and metadata.get(name) is not None)
    }
    return {
        "metadata": kept,
        "spec": given.get("spec") or {},
        "status": given.get("status") or {},
    }
