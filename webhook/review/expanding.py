"""The third stage: the objects that ExpansionTemplates generate from an object."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.constraint.expansion import TOO_MUCH, InvalidExpansion, Resultant
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.mutation.expanding import expand
from webhook.review.mutating import namespace_of_subject, pace_of
from webhook.review.subject import Subject, object_of_value

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest
    from webhook.review.policy_set import PolicySet

OUT_OF_TIME: Final = "its time ended before all that it implies was known"
"""The fault where the time ended before the implied objects were known."""

UNDECIDABLE: Final = frozenset({OUT_OF_TIME, TOO_MUCH})
"""The fault where the object itself, or its user's other requests, took the time."""


def expand_value(
    policies: PolicySet, subject: Subject, value: Any
) -> tuple[list[tuple[Resultant, AugmentedObject]], str]:
    """Returns the values that a subject implies, and why they are not known; empty if they are.

    A kind without ExpansionTemplates costs one look-up. Raises
    :class:`~webhook.external_data.exchange.Unanswered` and
    :class:`~webhook.mutation.errors.OverBudget`.
    """
    if not subject.expands or not policies.expansion:
        return [], ""
    obj = object_of_value(value)
    if obj is None:
        return [], ""
    operation, username, given, size = "", "", value.namespace, 0
    namespace = namespace_of_subject(policies, subject)
    if type(value) is AugmentedReview:
        request = value.request
        if not policies.expansion.is_of(request.kind):
            return [], ""
        operation, username, size = request.operation, request.username, request.size
        obj = _as_requested(obj, request)
        given = namespace
    else:
        operation, size = value.operation, value.size
    gvk = gvk_of(obj)
    if gvk.kind and not policies.expansion.is_of(gvk):
        return [], ""
    try:
        resultants = expand(
            policies.expansion,
            policies.mutations,
            obj,
            namespace,
            username=username,
            size=size,
            on_error=subject.on_expansion_error,
            known=subject.known,
            pace=pace_of(subject),
        )
    except InvalidExpansion as error:
        deadline = subject.limits.deadline
        is_late = deadline is not None and time.monotonic() > deadline
        return [], OUT_OF_TIME if is_late else str(error)
    return [
        # Policies see of it the Namespace that they see of the object.
        (item, AugmentedObject(item.object, given, operation, "Generated", size=size))
        for item in resultants
    ], ""


def _as_requested(obj: dict[str, Any], request: AdmissionRequest) -> dict[str, Any]:
    """Returns the object with the kind and namespace of its request, which usually are its own."""
    stated, namespace, gvk = obj.get("metadata"), request.namespace, request.kind
    metadata: dict[str, Any] = stated if type(stated) is dict else {}
    if namespace and metadata.get("namespace") != namespace:
        metadata = {**metadata, "namespace": namespace}
    if metadata is stated and gvk.version and gvk_of(obj) == gvk:
        return obj
    return {**obj, "apiVersion": gvk.group_version, "kind": gvk.kind, "metadata": metadata}
