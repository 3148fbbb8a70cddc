"""The second stage: what is reviewed is what would be stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.api.nulls import as_decoded
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.mutation.errors import MutationError
from webhook.mutation.external import resolved
from webhook.mutation.mutator import UNMUTATED_GROUPS
from webhook.mutation.setting import Context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.admission import AdmissionRequest
    from webhook.mutation.plan import Mutated
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

EXTENSION_SECONDS: Final = 30.0
"""For mutators to change one object where a door sets no deadline: as long as an API server waits
for a webhook at most."""

CREATED: Final = "CREATE"
"""What mutators take an object for that no request brings: those of updates alone do not see it."""

_MUTATED_OPERATIONS: Final = ("CREATE", "UPDATE")


def mutate(
    policies: PolicySet, subject: Subject
) -> tuple[AugmentedReview | AugmentedObject | Any, Mutated | None, str]:
    """What would be stored of a subject, what mutators did, and why they could not."""
    value = subject.value
    if type(value) is AugmentedReview:
        operation, username = value.request.operation, value.request.username
        obj = value.request.object
    elif type(value) is AugmentedObject:
        operation, username, obj = value.operation or CREATED, "", value.object
    else:
        return value, None, ""
    if obj is None or operation not in _MUTATED_OPERATIONS:
        return value, None, ""
    gvk, place = gvk_of(obj), subject.counted_place
    if gvk.group in UNMUTATED_GROUPS or policies.exclusions.mutation(place):
        return value, None, ""
    is_namespace = gvk.group_kind == ("", "Namespace")
    namespace = obj if is_namespace else namespace_of_subject(policies, subject)
    context = Context(operation, namespace, "" if is_namespace else place, username)
    if policies.mutations and type(value) is AugmentedObject:
        obj = as_decoded(obj)
    try:
        mutated = policies.mutations.mutate(
            obj, context, on_error=subject.on_mutation_error, until=until_of(subject), gvk=gvk
        )
        after = resolved(mutated, {})
    except MutationError as error:
        return value, None, f"mutating {named(obj)}: {error}"
    if after is obj:
        return value, mutated, ""
    if isinstance(value, AugmentedObject):
        return value._replace(object=after), mutated, ""
    request: AdmissionRequest = value.request
    changed = request._replace(object=after, document={**request.document, "object": after})
    return value._replace(request=changed), mutated, ""


def until_of(subject: Subject) -> float:
    """When mutators end that change a subject, or what it implies; on the monotonic clock."""
    latest = time.monotonic() + EXTENSION_SECONDS
    deadline = subject.limits.deadline
    return latest if deadline is None else min(deadline, latest)


def namespace_of_subject(policies: PolicySet, subject: Subject) -> Mapping[str, Any] | None:
    """The Namespace of a subject: the one that it brings, or the known one of its name."""
    given: Mapping[str, Any] | None = getattr(subject.value, "namespace", None)
    if given is not None:
        return given
    known: Mapping[str, Any] | None = policies.snapshot.namespaces.get(subject.place)
    return known


def named(obj: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, for messages."""
    metadata = obj.get("metadata")
    place = metadata.get("namespace") if type(metadata) is dict else ""
    name = name_of(obj)
    return f"{gvk_of(obj).kind} {f'{place}/' if place else ''}{name or '?'}"
