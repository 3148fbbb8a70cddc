"""Drift: the changes that mutators would make in an existing object if it were written now.

The object is not written. Each mutator reports the fields that it would change by itself. If
several mutators change one field, each of them reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupKind, GroupVersionKind, gvk_of
from webhook.external_data.exchange import Answering, ProviderRequest, Unanswered
from webhook.mutation.errors import ApplyError, MutationError
from webhook.mutation.external import settled, unresolved
from webhook.mutation.mutator import Mutator, MutatorId
from webhook.mutation.patch import make_patch
from webhook.mutation.plan import Mutated
from webhook.mutation.setting import Context, ExternalData, Setter
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.mutation.snapshot import MutationSnapshot

OPERATION: Final = "UPDATE"
"""The operation of a request about an object that exists."""

PATHS_MAX: Final = 3
"""Changed fields that a message names."""

_NO_KIND: Final = GroupKind("~", "~")


@dataclass(frozen=True, slots=True)
class Drift:
    """The change that one mutator would make."""

    mutator: MutatorId
    paths: tuple[str, ...]
    """Of the fields, in the order of the patch."""
    is_preview: bool = False

    def __str__(self) -> str:
        shown = ", ".join(self.paths[:PATHS_MAX])
        more = len(self.paths) - PATHS_MAX
        tail = f" and {more} more" if more > 0 else ""
        previewed = "once it is enforced, " if self.is_preview else ""
        return f"{previewed}would change {shown}{tail} when the object is written"


def names_kind(mutations: MutationSnapshot, gvk: GroupVersionKind) -> bool:
    """Whether a mutator names this kind.

    A mutator for all kinds adds no kind to the list.
    """
    plan = (mutations.preview or mutations).plan(gvk, OPERATION)
    return plan is not None and not all(map(is_about_everything, plan.mutators))


def is_about_everything(mutator: Mutator) -> bool:
    """Whether a mutator names no kind."""
    return not mutator.has_schema and mutator.selects(_NO_KIND)


def drifts_of(
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    place: str,
    known: Answering | None = None,
) -> tuple[Drift, ...]:
    """Returns the changes that mutators would make, previewed ones included, in their order.

    ``place`` is the namespace of the object. ``known`` has the answers of providers; without it
    changes by providers are not reported. Raises :class:`~webhook.mutation.errors.MutationError`,
    and :class:`~webhook.external_data.exchange.Unanswered` for missing answers of providers.
    """
    gvk = gvk_of(obj)
    everyone = mutations.preview or mutations
    if everyone.plan(gvk, OPERATION) is None:
        return ()
    context = Context(OPERATION, namespace, place)
    mutated = everyone.mutate(obj, context, on_error="skip", gvk=gvk)
    if not mutated.iterations:
        return ()
    parties = {
        item.id: item
        for pass_ in mutated.passes
        for item in pass_
        if isinstance(item, Mutator) and _is_foreseeable(item.assignment.setter, known)
    }
    drifts: list[Drift] = []
    missing: list[ProviderRequest] = []
    for key in sorted(parties):
        try:
            paths = _changed_by(parties[key], obj, context, known)
        except Unanswered as wanting:
            missing += wanting.requests
        else:
            if paths:
                drifts.append(Drift(key, paths, parties[key].is_preview))
    if missing:
        raise Unanswered(tuple(dict.fromkeys(missing)))
    return tuple(drifts)


def _is_foreseeable(setter: Setter, known: Answering | None) -> bool:
    """Whether the value of a mutator is known; it is not if the provider gets the author's name."""
    if type(setter) is not ExternalData:
        return True
    return known is not None and setter.data_source != "Username"


def _changed_by(
    mutator: Mutator, obj: dict[str, Any], context: Context, known: Answering | None
) -> tuple[str, ...]:
    """Returns the fields that a mutator alone changes; none if its provider has no answer now."""
    try:
        _, changed = mutator.assignment.apply(obj, context)
    except ApplyError:
        return ()  # Other mutators must create the place first; they are reported.
    if known is not None and type(mutator.assignment.setter) is ExternalData:
        mutated = Mutated(changed, asks_providers=True)
        try:
            changed = settled(mutated, known, context.pace)
        except MutationError:
            return ()
        if unresolved(mutated, known):
            return ()
    return tuple(item["path"] for item in make_patch(obj, changed))
