"""Updates of objects that are to go: those that only remove finalizers or owners are admitted.

An object that violates a policy must still be deletable. Controllers and the garbage collector
remove its finalizers and change its owners by updates. If these were refused, the object and its
Namespace would stay in Terminating. Such an update must change nothing else, because an object that
is being deleted goes on working while it has a finalizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.admission import AdmissionRequest

RELEASED: Final = "only finalizers or owners go: nothing is brought in"
"""The message in the answer to such an update."""

GARBAGE_COLLECTORS: Final = frozenset(
    {
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
    }
)
"""The users that remove owners from dependents; the second where all controllers share one user."""

_BY_API_SERVER: Final = frozenset(
    {
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
    }
)
"""Metadata that the API server sets itself, or that is compared separately."""


def only_releases(request: AdmissionRequest) -> bool:
    """Whether an update only removes finalizers, or is one of the garbage collector.

    For an object that is being deleted, also an update without any change.
    """
    if request.operation != "UPDATE":
        return False
    before, after = request.old_object, request.object
    if before is None or after is None:
        return False
    old, new = before.get("metadata"), after.get("metadata")
    if type(old) is not dict or type(new) is not dict:
        return False
    lists = [(old.get("finalizers") or [], new.get("finalizers") or [])]
    if request.kind.group_kind == ("", "Namespace"):
        lists.append((_namespace_finalizers(before), _namespace_finalizers(after)))
    owners = old.get("ownerReferences") or [], new.get("ownerReferences") or []
    moved = any(were != are for were, are in [*lists, owners])
    if not moved and not old.get("deletionTimestamp"):
        return False  # as nearly all
    return (
        all(_is_part(are, were) for were, are in lists)
        and _owners_go(*owners, is_collector=request.username in GARBAGE_COLLECTORS)
        and _rest_is_same(request, before, after)
    )


def is_of_ending(request: AdmissionRequest) -> bool:
    """Whether an update changes only metadata and status of an object that is being deleted.

    A controller that cleans up notes there what it has done, often as it removes its finalizer.
    """
    before, after = request.old_object, request.object
    if request.operation != "UPDATE" or before is None or after is None:
        return False
    metadata = before.get("metadata")
    if type(metadata) is not dict or not metadata.get("deletionTimestamp"):
        return False
    gone: dict[str, Any] = {"metadata": {}, "status": {}}
    return _are_identical({**before, **gone}, {**after, **gone})


def _are_identical(before: Any, after: Any) -> bool:
    """Whether two documents have the same JSON text: a policy in CEL tells 1 from 1.0."""
    return encode(before, sort_keys=True) == encode(after, sort_keys=True)


def _is_part(part: Any, whole: Any) -> bool:
    return type(part) is list and type(whole) is list and all(item in whole for item in part)


def _owners_go(before: Any, after: Any, *, is_collector: bool) -> bool:
    """Whether no owner was added, and only the garbage collector removed one.

    A change of ``blockOwnerDeletion`` is always allowed.
    """
    if type(before) is not list or type(after) is not list:
        return False
    were, are = [_owner(item) for item in before], [_owner(item) for item in after]
    return were == are or (is_collector and _is_part(are, were))


def _owner(reference: Any) -> Any:
    if type(reference) is not dict:
        return reference
    return {key: value for key, value in reference.items() if key != "blockOwnerDeletion"}


def _rest_is_same(
    request: AdmissionRequest, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    is_namespace = request.kind.group_kind == ("", "Namespace")
    were, are = (_rest(item, is_namespace=is_namespace) for item in (before, after))
    return _are_identical(were, are)


def _rest(document: Mapping[str, Any], *, is_namespace: bool) -> dict[str, Any]:
    """Returns the parts of an object that such an update must not change."""
    metadata = document["metadata"]
    rest = dict(document)
    rest["metadata"] = {key: metadata[key] for key in metadata if key not in _BY_API_SERVER}
    if is_namespace and type(document.get("spec")) is dict:
        spec = document["spec"]
        rest["spec"] = {key: spec[key] for key in spec if key != "finalizers"}
    return rest


def _namespace_finalizers(document: Mapping[str, Any]) -> Any:
    spec = document.get("spec")
    return (spec.get("finalizers") or []) if type(spec) is dict else []
