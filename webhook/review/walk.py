"""The one walk: every door's way from a subject to what the policies say of it.

The stages, in their order:

1. exclude: a namespace that Config takes out of the process is spared whole;
2. mutate: what is reviewed is what would be stored;
3. expand: what the object implies is told by ExpansionTemplates;
4. match and evaluate: the object, and all that it implies, against every constraint;
5. results: each of ``RESULT_STAGES`` makes of what was found what is to be answered. It is empty:
   the place for groups of policies and for excuses.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.expansion import InvalidExpansion, with_implied
from webhook.constraint.result import DEFERRED, Responses
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.mutation.errors import MutationError
from webhook.mutation.expanding import expand
from webhook.mutation.external import resolved
from webhook.mutation.mutator import UNMUTATED_GROUPS
from webhook.mutation.setting import Context
from webhook.review.outcome import Found, Needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.expansion import Resultant
    from webhook.mutation.plan import Mutated
    from webhook.review.outcome import Outcome
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

    ResultStage = Callable[[PolicySet, Subject, Responses], Responses]

EXTENSION_SECONDS: Final = 30.0
"""For mutators to change one object where a door sets no deadline: as long as an API server waits
for a webhook at most."""

CREATED: Final = "CREATE"
"""What mutators take an object for that no request brings: those of updates alone do not see it."""

_MUTATED_OPERATIONS: Final = ("CREATE", "UPDATE")

RESULT_STAGES: Final[tuple[ResultStage, ...]] = ()


def walk(policies: PolicySet, subject: Subject) -> Outcome:
    """What the policies say, or what is needed first.

    Raises :class:`~webhook.constraint.errors.UnsupportedEnforcementPoint`.
    """
    place = subject.place
    if subject.excludes and _is_excluded(policies, subject):
        return Found(Responses(), subject.object, excluded=_counted_place(subject))
    value = subject.value
    if subject.reads_namespace and place and getattr(value, "namespace", None) is None:
        return Needs(namespace=place)
    mutated, unmutated = None, ""
    if subject.mutates and policies.mutations:
        value, mutated, unmutated = _mutate(policies, subject)
    implied, unexpanded = _expand(policies, subject, value)
    responses = _evaluate(policies, subject, value, implied)
    if responses is DEFERRED:
        return Needs(time=True)
    for stage in RESULT_STAGES:
        responses = stage(policies, subject, responses)
    objects = tuple(one.object for _, one in implied)
    return Found(responses, _object_of(value), mutated, None, unmutated, unexpanded, objects)


# --- 1. exclude -----------------------------------------------------------------------------------


def _is_excluded(policies: PolicySet, subject: Subject) -> bool:
    if subject.object is None:
        return False  # A document is in no namespace.
    exclusions = policies.exclusions
    is_excluded = exclusions.audit if subject.process == "audit" else exclusions.webhook
    return is_excluded(_counted_place(subject))


def _counted_place(subject: Subject) -> str:
    """The namespace that a subject counts as being in: a Namespace as its own."""
    obj = subject.object
    if obj is not None and gvk_of(obj).group_kind == ("", "Namespace"):
        return name_of(obj)
    return subject.place


# --- 2. mutate ------------------------------------------------------------------------------------


def _mutate(
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
    gvk, place = gvk_of(obj), _counted_place(subject)
    if gvk.group in UNMUTATED_GROUPS or policies.exclusions.mutation(place):
        return value, None, ""
    is_namespace = gvk.group_kind == ("", "Namespace")
    namespace = obj if is_namespace else _namespace_of(policies, subject)
    context = Context(operation, namespace, "" if is_namespace else place, username)
    try:
        mutated = policies.mutations.mutate(
            obj, context, on_error=subject.on_mutation_error, until=_until(subject), gvk=gvk
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


def _until(subject: Subject) -> float:
    latest = time.monotonic() + EXTENSION_SECONDS
    deadline = subject.limits.deadline
    return latest if deadline is None else min(deadline, latest)


def _namespace_of(policies: PolicySet, subject: Subject) -> Mapping[str, Any] | None:
    """The Namespace of a subject: the one that it brings, or the known one of its name."""
    given: Mapping[str, Any] | None = getattr(subject.value, "namespace", None)
    if given is not None:
        return given
    known: Mapping[str, Any] | None = policies.snapshot.namespaces.get(subject.place)
    return known


# --- 3. expand ------------------------------------------------------------------------------------


def _expand(
    policies: PolicySet, subject: Subject, value: Any
) -> tuple[list[tuple[Resultant, AugmentedObject]], str]:
    """What a subject implies, as it is reviewed; and why that is not known.

    A subject of a kind that implies nothing costs one look-up.
    """
    obj = _object_of(value)
    if not subject.expands or not policies.expansion or obj is None:
        return [], ""
    operation, username, namespace = "", "", value.namespace
    if type(value) is AugmentedReview:
        request = value.request
        operation, username = request.operation, request.username
        obj = as_requested(obj, request)
        namespace = _namespace_of(policies, subject)
    else:
        operation = value.operation
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
            on_error=subject.on_expansion_error,
            until=_until(subject),
        )
    except InvalidExpansion as error:
        return [], str(error)
    return [
        (item, AugmentedObject(item.object, namespace, operation, "Generated"))
        for item in resultants
    ], ""


def as_requested(obj: dict[str, Any], request: AdmissionRequest) -> dict[str, Any]:
    """The object with the kind and the namespace of its request, which mostly are its own."""
    stated, namespace, gvk = obj.get("metadata"), request.namespace, request.kind
    metadata: dict[str, Any] = stated if type(stated) is dict else {}
    if namespace and metadata.get("namespace") != namespace:
        metadata = {**metadata, "namespace": namespace}
    if metadata is stated and gvk.version and gvk_of(obj) == gvk:
        return obj
    return {**obj, "apiVersion": gvk.group_version, "kind": gvk.kind, "metadata": metadata}


# --- 4. match and evaluate ------------------------------------------------------------------------


def _evaluate(
    policies: PolicySet,
    subject: Subject,
    value: Any,
    implied: list[tuple[Resultant, AugmentedObject]],
) -> Responses:
    """What is found of the subject and of what it implies; deferred if one of them is."""
    snapshot, point, limits = policies.snapshot, subject.point, subject.limits
    own = snapshot.review(value, enforcement_point=point, limits=limits)
    if own is DEFERRED or not implied:
        return own
    of_implied = []
    for resultant, one in implied:
        responses = snapshot.review(one, enforcement_point=point, limits=limits)
        if responses is DEFERRED:
            return DEFERRED
        of_implied.append((resultant, responses))
    return with_implied(own, of_implied)


def _object_of(value: Any) -> dict[str, Any] | None:
    if type(value) is AugmentedObject:
        return value.object
    if type(value) is AugmentedReview:
        request = value.request
        return request.old_object if request.operation == "DELETE" else request.object
    return None


def named(obj: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, for messages."""
    metadata = obj.get("metadata")
    place = metadata.get("namespace") if type(metadata) is dict else ""
    name = name_of(obj)
    return f"{gvk_of(obj).kind} {f'{place}/' if place else ''}{name or '?'}"
