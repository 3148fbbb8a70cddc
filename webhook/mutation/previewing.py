"""Computes the changes of mutators in preview, which are reported and not made."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from webhook.mutation.errors import MutationError, OverBudget
from webhook.mutation.external import settled
from webhook.mutation.mutator import Mutator
from webhook.mutation.patch import Operation, make_patch
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.external_data.exchange import Answering
    from webhook.mutation.setting import Context
    from webhook.mutation.snapshot import MutationSnapshot


@dataclass(frozen=True, slots=True)
class Preview:
    """The changes of mutators in preview: ``patch`` is the patch of the mutated object.

    ``mutators`` are the mutators with a part in it, ``skipped`` has the reasons of failed mutators,
    and ``fault`` the reason for a missing result.
    """

    mutators: tuple[Mutator, ...] = ()
    patch: tuple[Operation, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


def previewed(
    mutations: MutationSnapshot,
    original: dict[str, Any],
    final: Mapping[str, Any],
    context: Context,
    gvk: GroupVersionKind,
    known: Answering,
) -> Preview | None:
    """Returns the changes of mutators in preview beyond ``final``; None if no mutator matches.

    All mutators are applied in their order to the original object, as once the previewed mutators
    are in force. Errors here never affect the request. Work that takes too long for this thread
    raises :class:`~webhook.mutation.errors.OverBudget`, and missing answers of providers raise
    :class:`~webhook.external_data.exchange.Unanswered`.
    """
    preview = mutations.preview
    plan = None if preview is None else preview.plan(gvk, context.operation)
    if preview is None or plan is None or not any(item.is_preview for item in plan.mutators):
        return None
    try:
        would = preview.mutate(original, context, on_error="skip", gvk=gvk)
        patch = make_patch(final, settled(would, known, context.pace), context.pace)
    except OverBudget:
        raise
    except MutationError as error:
        return Preview(fault=str(error))
    previewed_ids = {str(item.id) for item in plan.mutators if item.is_preview}
    passed = [item for pass_ in would.passes for item in pass_ if isinstance(item, Mutator)]
    applied = {item.id: item for item in passed if item.is_preview}
    skipped = {name: fault for name, fault in would.skipped.items() if name in previewed_ids}
    if not patch and not skipped:
        return None
    return Preview(tuple(applied[item] for item in sorted(applied)), tuple(patch), skipped)
