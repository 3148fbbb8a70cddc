"""Builds the requests and parameters that the API server's policies see, from objects of files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from webhook.admission_policies.parameters import UNNAMED
from webhook.api.gvk import gvk_of, name_of, namespace_of, split_group_version
from webhook.api.scope import is_cluster_scoped
from webhook.api.shapes import object_of
from webhook.cel.errors import TimeUp
from webhook.constraint.placement import DEFAULT
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.review.subject import played
from webhook.webhook_rules.entries import NAMESPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.constraint.limits import Limits
    from webhook.constraint.snapshot import Snapshot


def title_of(parameter: Any) -> str:
    """Returns the namespace and name of a parameter, for messages."""
    place = namespace_of(parameter)
    return f"{place}/{name_of(parameter)}" if place else name_of(parameter)


def looking(limits: Limits) -> Callable[[], None] | None:
    """Returns the function that raises :class:`TimeUp` after a review's deadline; None without one."""
    deadline = limits.deadline
    if deadline is None:
        return None

    def look() -> None:
        if time.monotonic() > deadline:
            raise TimeUp("the time of the review is up")

    return look


def known_of(inventory: Any, kind: GroupVersionKind) -> Iterator[Json]:
    """Yields the objects of a kind in the inventory, in this version only."""
    for level in _levels(inventory):
        kinds = level.get(kind.group_version) or {}
        yield from (kinds.get(kind.kind) or {}).values()


def all_known(inventory: Any) -> Iterator[Json]:
    """Yields all objects of the inventory."""
    for level in _levels(inventory):
        for kinds in level.values():
            for objects in kinds.values():
                yield from objects.values()


def other_versions(inventory: Any, kind: GroupVersionKind) -> list[str]:
    """Returns the versions in which the inventory has objects of a kind."""
    return sorted(
        {
            version
            for level in _levels(inventory)
            for version, kinds in level.items()
            if split_group_version(version)[0] == kind.group and kinds.get(kind.kind)
        }
    )


def _levels(inventory: Any) -> list[Mapping[str, Any]]:
    return [inventory.get("cluster") or {}, *(inventory.get("namespace") or {}).values()]


def request_of(value: Any) -> Json | None:
    """Returns the request as the API server has it; None for a document.

    A request about a Namespace is in that Namespace, as the API server has it.
    """
    request = _request_of(value)
    if request is not None and _is_of_namespace(request):
        return {**request, "namespace": request.get("name") or ""}
    return request


def _request_of(value: Any) -> Json | None:
    if type(value) is AugmentedReview:
        return value.request.document
    if type(value) is AugmentedObject:
        obj = value.object
        if not (namespace_of(obj) or value.resource or is_cluster_scoped(*gvk_of(obj).group_kind)):
            metadata = {**(obj.get("metadata") or {}), "namespace": UNNAMED}
            obj = {**obj, "metadata": metadata}
        operation = value.operation or "CREATE"
        # An existing object is reviewed as an update without changes.
        before = obj if operation == "UPDATE" else None
        request = played(obj, None, operation, before).request.document
        if value.resource:
            resource = {**request["resource"], "resource": value.resource}
            request = {**request, "resource": resource, "requestResource": resource}
        return request
    return None


def _is_of_namespace(request: Json) -> bool:
    kind = request.get("kind") or {}
    return (kind.get("group") or "", kind.get("kind")) == ("", "Namespace")


def requested_namespace(request: Json, value: Any, snapshot: Snapshot) -> Json | None:
    """Returns the Namespace of a request, which is that of ``value``, as the API server has it."""
    place = request.get("namespace")
    if not place or _is_of_namespace(request):
        return None
    # The API server labels each Namespace, and so the one named default that nobody gave.
    given = None if value.namespace is DEFAULT else value.namespace
    known = given or snapshot.namespaces.get(place)
    if not known or not known.get("metadata", {}).get("name"):
        known = {"metadata": {"name": place, "labels": {NAMESPACE_NAME: place}}}
    return dict(known)


def kyverno_namespace(request: Json, value: Any, snapshot: Snapshot) -> Json | None:
    """Returns the Namespace of a request as Kyverno has it: of a Namespace the stored one."""
    if _is_of_namespace(request):
        return request.get("oldObject")
    return requested_namespace(request, value, snapshot)


def as_requested(obj: Json, request: Json) -> Json:
    """Returns the object with the request's namespace filled in, as an API server does."""
    place = request.get("namespace")
    metadata = object_of(obj.get("metadata"))
    submitted = object_of(request.get("object"))
    named = object_of(submitted.get("metadata")).get("namespace")
    if not place or metadata.get("namespace") or not named:
        return obj
    return {**obj, "metadata": {**metadata, "namespace": named}}


def as_given(obj: Json, before: Json) -> Json:
    """Returns the object without a namespace if the given object had none."""
    metadata = object_of(before.get("metadata"))
    object_metadata = object_of(obj.get("metadata"))
    if "namespace" in metadata or "namespace" not in object_metadata:
        return obj
    return {
        **obj,
        "metadata": {name: value for name, value in object_metadata.items() if name != "namespace"},
    }
