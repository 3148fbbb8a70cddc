"""What an admission's object implies, reviewed with it: a Deployment's Pods when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import gvk_of
from webhook.constraint.expansion import InvalidExpansion
from webhook.constraint.implied import Reviewing, WithImplied
from webhook.constraint.review import AugmentedObject
from webhook.mutation.expanding import expand
from webhook.server import submission

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.review import AugmentedReview
    from webhook.mutation.passes import MutationOnError
    from webhook.serving.revision import Revision


def reviewing(
    revision: Revision, subject: AugmentedReview, until: float, on_error: MutationOnError
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
            _as_requested(obj, request),
            namespace,
            username=request.username,
            on_error=on_error,
            until=until,
        )
    except InvalidExpansion as error:
        return snapshot, f"unable to expand object: {error}"
    operation = request.operation
    # As calling the class would, at a third of its cost.
    implied = [
        (
            item,
            tuple.__new__(AugmentedObject, (item.object, namespace, operation, "Generated", "")),
        )
        for item in resultants
    ]
    return WithImplied(snapshot, tuple(implied)), ""


def _as_requested(obj: dict[str, Any], request: AdmissionRequest) -> dict[str, Any]:
    """The object with the kind and the namespace of its request, which mostly are its own."""
    stated, namespace, gvk = obj.get("metadata"), request.namespace, request.kind
    metadata: dict[str, Any] = stated if type(stated) is dict else {}
    if namespace and metadata.get("namespace") != namespace:
        metadata = {**metadata, "namespace": namespace}
    if metadata is stated and gvk.version and gvk_of(obj) == gvk:
        return obj
    return {**obj, "apiVersion": gvk.group_version, "kind": gvk.kind, "metadata": metadata}
