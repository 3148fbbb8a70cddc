"""The variables that expressions see of a review (k8s.io/apiserver, admission/plugin/cel, and Gatekeeper's driver)."""

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
"""Is there where it is 0, too: in Go it is a pointer."""

_USER: Final = ("username", "uid", "groups", "extra")


def variables_of(document: dict[str, Any]) -> dict[str, Any]:
    """The variables that every expression may read.

    On DELETE there is no object: Rego's review has the old one in its place, CEL's has not.
    """
    return {
        **objects_of(document),
        "request": _request(document),
        "namespaceObject": _namespace(document.get("namespaceObject")),
    }


def objects_of(document: dict[str, Any]) -> dict[str, Any]:
    """The two of them that are a review's objects."""
    deleted = document.get("operation") == "DELETE"
    return {
        "object": None if deleted else document.get("object"),
        "oldObject": document.get("oldObject"),
    }


def any_object(variables: dict[str, Any]) -> Any:
    """The object, or the old one where that was deleted."""
    document = variables["object"]
    if document is None and variables["request"].get("operation") == "DELETE":
        return variables["oldObject"]
    return document


def _request(document: dict[str, Any]) -> dict[str, Any]:
    """An admission request as Go makes it of attributes: what is empty is not there.

    Three fields are, and empty, which only who reads it as dyn comes by.
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
