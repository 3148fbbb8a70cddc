"""What an admission's object implies, reviewed with it: a Deployment's Pods when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.constraint.expansion import InvalidExpansion
from webhook.constraint.implied import Reviewing, WithImplied
from webhook.constraint.review import AugmentedObject
from webhook.mutation.expanding import expand
from webhook.server import submission

if TYPE_CHECKING:
    from webhook.constraint.review import AugmentedReview
    from webhook.mutation.passes import OnError
    from webhook.serving.revision import Revision


def reviewing(
    revision: Revision, subject: AugmentedReview, until: float, on_error: OnError
) -> tuple[Reviewing, str]:
    """What reviews a request with all that its object implies; and why that is not known.

    A request of a kind that implies nothing costs one look-up.
    """
    snapshot, request = revision.snapshot, subject.request
    if not revision.expansion.is_of(request.kind):
        return snapshot, ""
    obj = submission.submitted(request)
    if obj is None:
        return snapshot, ""
    namespace = subject.namespace or snapshot.namespaces.get(request.namespace)
    try:
        resultants = expand(
            revision.expansion,
            revision.mutations,
            _as_requested(obj, subject),
            namespace,
            username=request.username,
            on_error=on_error,
            until=until,
        )
    except InvalidExpansion as error:
        return snapshot, f"unable to expand object: {error}"
    operation = request.operation
    implied = [
        (item, AugmentedObject(item.object, namespace, operation, "Generated"))
        for item in resultants
    ]
    return WithImplied(snapshot, tuple(implied)), ""


def _as_requested(obj: dict[str, Any], subject: AugmentedReview) -> dict[str, Any]:
    """The object with the kind and the namespace of its request, which mostly are its own."""
    request = subject.request
    api_version, kind = request.kind.group_version, request.kind.kind
    metadata = obj.get("metadata")
    is_there = type(metadata) is dict
    metadata = metadata if type(metadata) is dict else {}
    if request.namespace and metadata.get("namespace") != request.namespace:
        metadata, is_there = {**metadata, "namespace": request.namespace}, False
    if is_there and obj.get("apiVersion") == api_version and obj.get("kind") == kind:
        return obj
    return {**obj, "apiVersion": api_version, "kind": kind, "metadata": metadata}
