"""The second stage: mutation, so that constraints see the object that would be stored."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.external_data.exchange import ProviderAnswers, Unanswered
from webhook.mutation.annotations import annotated, id_for
from webhook.mutation.errors import MutationError, OverBudget
from webhook.mutation.external import settled
from webhook.mutation.mutator import UNMUTATED_GROUPS
from webhook.mutation.pace import Pace
from webhook.mutation.patch import Patch, PatchTooLarge, patch_between
from webhook.mutation.plan import Mutated
from webhook.mutation.previewing import Preview, previewed
from webhook.mutation.setting import Context
from webhook.review.outcome import Needs, StoredSubject
from webhook.review.policy_set import ChangedObject, MutatingStage, PolicySet
from webhook.review.subject import Subject, object_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.admission import AdmissionRequest


def as_decoded(obj: dict[str, Any]) -> dict[str, Any]:
    """Returns an object of a built-in kind without its null fields; any other object as it is.

    Go's decoder drops null fields of built-in types. For custom resources their CRD decides.
    """
    if gvk_of(obj).group_kind not in BUILTIN_KINDS:
        return obj
    kept: dict[str, Any] = _without_nulls(obj)
    return kept


def _without_nulls(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        kept = {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
        same = len(kept) == len(value) and all(kept[name] is value[name] for name in kept)
        return value if same else kept
    if kind is list:
        items = [_without_nulls(item) for item in value]
        same = all(item is old for item, old in zip(items, value, strict=True))
        return value if same else items
    return value


EXTENSION_SECONDS: Final = 30.0
"""The deadline of mutators where the caller sets none: an API server's longest webhook timeout."""

CREATED: Final = "CREATE"
"""The operation that mutators see for an object without a request."""

_MUTATED_OPERATIONS: Final = ("CREATE", "UPDATE")


def mutate(policies: PolicySet, subject: Subject) -> StoredSubject:
    """Returns the object that would be stored, the policies that changed it, and their faults.

    The order is the API server's: its own mutating policies, then webhooks, then a reinvocation of
    its own policies. The webhook does the same with Kyverno's policies around mutators. Raises
    :class:`~webhook.external_data.exchange.Unanswered`.
    """
    in_webhook = None if _is_unmutated(policies, subject) else policies.in_webhook
    return _around(
        policies.mutating if policies.stages else None,
        policies,
        subject,
        lambda first: _around(
            in_webhook, policies, first, lambda second: StoredSubject(*_mutated(policies, second))
        ),
    )


def _around(
    stage: MutatingStage | None,
    policies: PolicySet,
    subject: Subject,
    others: Callable[[Subject], StoredSubject],
) -> StoredSubject:
    """Applies a stage to a subject, then ``others``, then the stage again if it requires that."""
    obj = None if stage is None else _mutable(subject.value)
    if stage is None or obj is None:
        return others(subject)
    given: Any = subject.value
    first = stage.change(subject, policies.snapshot)
    between = others(replace(subject, value=_with_object(given, first.object)))
    after = object_of_value(between.value) or first.object
    last = first if first.again is None else first.again(after)
    faults = [between.fault] if between.fault else []
    faults += [f"mutating {named(obj)}: {fault}" for fault in (*first.faults, *last.faults)]
    return StoredSubject(
        between.value if last is first else _with_object(given, last.object),
        between.mutated,
        "; ".join(dict.fromkeys(faults)),
        tuple(dict.fromkeys((*first.by, *between.changed_by, *last.by))),
        tuple(dict.fromkeys((*first.ignored, *between.ignored, *last.ignored))),
    )


def _is_unmutated(policies: PolicySet, subject: Subject) -> bool:
    """Whether the mutating webhook skips a subject: policies, and objects in excluded namespaces."""
    obj = subject.object
    if obj is None or gvk_of(obj).group in UNMUTATED_GROUPS:
        return True
    return policies.exclusions.mutation(subject.counted_place)


def _mutable(value: AugmentedReview | AugmentedObject | Any) -> dict[str, Any] | None:
    """Returns the object that mutating policies may change; None if there is none."""
    if type(value) is AugmentedReview:
        return None if value.request.operation == "DELETE" else value.request.object
    return value.object if type(value) is AugmentedObject else None


def _with_object(value: AugmentedReview | AugmentedObject, obj: dict[str, Any]) -> Any:
    """Returns the subject with another object."""
    if isinstance(value, AugmentedObject):
        return value._replace(object=obj)
    request: AdmissionRequest = value.request
    changed = request._replace(object=obj, document={**request.document, "object": obj})
    return value._replace(request=changed)


def _mutated(
    policies: PolicySet, subject: Subject
) -> tuple[AugmentedReview | AugmentedObject | Any, Mutated | None, str]:
    """Returns the subject's new object, the mutations, and why they could not be applied."""
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
    if _is_unmutated(policies, subject):
        return value, None, ""
    gvk = gvk_of(obj)
    context = _context(policies, subject, obj, gvk, operation, username)
    if policies.mutations and type(value) is AugmentedObject:
        obj = as_decoded(obj)
    try:
        mutated = policies.mutations.mutate(
            obj, context, on_error=subject.on_mutation_error, gvk=gvk
        )
        after = settled(mutated, subject.known, context.pace)
    except MutationError as error:
        return value, None, f"mutating {named(obj)}: {error}"
    if after is obj:
        return value, mutated, ""
    return _with_object(value, after), mutated, ""


class Changes(NamedTuple):
    """The changes of mutators to a subject, with the parts of the answer and the records."""

    mutated: Mutated
    patch: Patch
    """The patch of the mutators."""
    answer: Patch
    """The patch with the annotations that name the mutators, where these are enabled."""
    preview: Preview | None
    """The additional patch of mutators that are in preview."""
    answers: ProviderAnswers | None = None
    """The responses of providers."""


def changes(policies: PolicySet, subject: Subject, *, annotates: bool = False) -> Changes | Needs:
    """Returns the changes of mutators to a request's object, or the data to fetch first.

    Pure, so that another thread can run it again with more time. Raises
    :class:`~webhook.mutation.errors.MutationError`.
    """
    value = subject.value
    assert type(value) is AugmentedReview
    request = value.request
    obj = request.object
    assert obj is not None
    gvk = gvk_of(obj)
    context = _context(policies, subject, obj, gvk, request.operation, request.username)
    if context.namespace is None and subject.reads_namespace and context.namespace_name:
        return Needs(namespace=context.namespace_name)
    mutations = policies.mutations
    try:
        first = _changed_first(policies, subject, context.pace)
        mutated = mutations.mutate(
            first.object, context, on_error=subject.on_mutation_error, gvk=gvk
        )
        patch = mutated.patch
        final = None
        if mutated.iterations and not patch:
            final = settled(mutated, subject.known, context.pace)
            patch = _patch(obj, final, mutated, context.pace)
        by_mutators = final
        if first.concerns:
            by_mutators = mutated.object if final is None else final
            mutated = _joined(first, by_mutators, mutated)
            final = mutated.object
            patch = _patch(obj, final, mutated, context.pace)
        answer = patch
        if annotates and patch:
            marked = annotated(
                mutated.object if final is None else final, mutated.passes, id_for(mutated.passes)
            )
            answer = _patch(obj, marked, mutated, context.pace)
        preview = None
        if mutations.preview is not None:
            before = mutated.object if by_mutators is None else by_mutators
            preview = previewed(mutations, first.object, before, context, gvk, subject.known)
    except OverBudget:
        return Needs(time=True)
    except Unanswered as wanting:
        return Needs(requests=wanting.requests)
    return Changes(mutated, patch, answer, preview, subject.answers)


def _changed_first(policies: PolicySet, subject: Subject, pace: Pace) -> ChangedObject:
    """Applies Kyverno's policies before the mutators; raises :class:`MutationError`."""
    obj, value = subject.object, subject.value
    assert obj is not None
    assert isinstance(value, AugmentedReview)
    stage = policies.in_webhook
    if stage is None or not stage.concerned(value.request):
        return ChangedObject(obj)
    pace.begin()
    first = stage.change(subject, policies.snapshot, pace.look)
    _refuse_faults(first)
    return first


def _joined(first: ChangedObject, obj: dict[str, Any], mutated: Mutated) -> Mutated:
    """Adds the changes of Kyverno's policies, before and after, to those of the mutators.

    ``obj`` is the object after the mutators. Raises
    :class:`~webhook.mutation.errors.MutationError`.
    """
    turns = [first]
    if first.again is not None:
        turns.append(first.again(obj))
        _refuse_faults(turns[1])
        obj = turns[1].object
    sources = [(turn.sources,) if turn.sources else () for turn in turns]
    passes = (*sources[0], *mutated.passes, *(sources[1] if len(sources) > 1 else ()))
    return Mutated(
        obj,
        passes,
        mutated.iterations or len(passes),
        skipped={**mutated.skipped, **{name: why for turn in turns for name, why in turn.skipped}},
        asks_providers=mutated.asks_providers,
    )


def _refuse_faults(changed: ChangedObject) -> None:
    if changed.faults:
        raise MutationError("; ".join(changed.faults), 1, changed.at_fault)


def _patch(obj: dict[str, Any], final: dict[str, Any], mutated: Mutated, pace: Pace) -> Patch:
    try:
        return patch_between(obj, final, pace)
    except PatchTooLarge as error:
        raise MutationError(str(error), mutated.iterations) from None


def _context(
    policies: PolicySet,
    subject: Subject,
    obj: dict[str, Any],
    gvk: GroupVersionKind,
    operation: str,
    username: str,
) -> Context:
    """Returns the context of mutators: namespace, operation and user. A Namespace is in itself."""
    pace = pace_of(subject)
    if gvk.kind == "Namespace" and not gvk.group:
        return Context(operation, obj, "", username, "Original", pace)
    place = subject.place
    namespace = getattr(subject.value, "namespace", None)
    if namespace is None and place:
        namespace = policies.snapshot.namespaces.get(place)
    return Context(operation, namespace, place, username, "Original", pace)


def pace_of(subject: Subject) -> Pace:
    """Returns the deadline of mutators, and their pauses."""
    deadline, budget = subject.limits.deadline, subject.limits.budget
    until = time.monotonic() + EXTENSION_SECONDS if deadline is None else deadline
    if budget is None:
        return Pace(until)
    return Pace(until, budget.seconds if budget.deferrable else None, budget.rest)


def namespace_of_subject(policies: PolicySet, subject: Subject) -> Mapping[str, Any] | None:
    """Returns the Namespace of a subject: its own, or the known one of that name."""
    given: Mapping[str, Any] | None = getattr(subject.value, "namespace", None)
    if given is not None:
        return given
    known: Mapping[str, Any] | None = policies.snapshot.namespaces.get(subject.place)
    return known


def named(obj: Mapping[str, Any]) -> str:
    """Returns kind, namespace and name of an object, for messages."""
    metadata = obj.get("metadata")
    place = metadata.get("namespace") if type(metadata) is dict else ""
    name = name_of(obj)
    return f"{gvk_of(obj).kind} {f'{place}/' if place else ''}{name or '?'}"
