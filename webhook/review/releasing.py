"""Updates that let an object go and bring nothing in: no policy stands in their way.

An object that violates a policy must be able to end. What deletes it in the foreground, a
controller that has cleaned up behind it, and the garbage collector take finalizers from it and
change its owners, by updates; refused, they leave it there for ever, and its Namespace in
Terminating. Nothing else may change by such an update: an object that is being deleted serves on
as long as somebody keeps a finalizer on it.
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
"""The users that take owners from dependents that are to live on; the latter where all controllers
are one user."""

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
"""Of metadata: what the API server sets by itself, and what is compared in its own way."""


def only_releases(request: AdmissionRequest) -> bool:
    """Whether an update does nothing but take finalizers away, or what the garbage collector does.

    Of an object that is being deleted also one that changes nothing at all.
    """
    if request.operation != "UPDATE" or request.sub_resource not in ("", "finalize"):
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


def _is_part(part: Any, whole: Any) -> bool:
    return type(part) is list and type(whole) is list and all(item in whole for item in part)


def _owners_go(before: Any, after: Any, *, is_collector: bool) -> bool:
    """Whether no owner came, and none went but by the garbage collector.

    Whether an owner waits for this one (``blockOwnerDeletion``) is nobody's policy.
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
    old, new = (_rest(item, is_namespace=is_namespace) for item in (before, after))
    try:
        return bool(old == new)
    except RecursionError:  # as deep as the API server keeps it
        return encode(old, sort_keys=True) == encode(new, sort_keys=True)


def _rest(document: Mapping[str, Any], *, is_namespace: bool) -> dict[str, Any]:
    """All of an object that such an update leaves as it is."""
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
