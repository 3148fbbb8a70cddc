"""What mutators that are only previewed would change: computed beside what is done, and told."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from webhook.mutation.errors import MutationError, OverBudget
from webhook.mutation.external import settled
from webhook.mutation.mutator import Mutator
from webhook.mutation.patch import make_patch
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.external_data.exchange import Answering
    from webhook.mutation.patch import Operation
    from webhook.mutation.setting import Context
    from webhook.mutation.snapshot import MutationSnapshot


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be different: ``patch`` is that of the mutated object.

    ``mutators`` are those that would have a part in it, ``skipped`` says of those that would
    fail why, and ``fault`` why nothing can be said.
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
    """What the previewed mutators would change beyond ``final``; None where none is concerned.

    The whole is worked out anew from the object as it came, with all mutators in their order:
    that is what will happen once they are in force. Nothing that goes wrong here reaches the
    request; what takes too long for this thread is :class:`~webhook.mutation.errors.OverBudget`, and
    what providers have to be asked first :class:`~webhook.external_data.exchange.Unanswered`.
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
    passed = [item for one in would.passes for item in one if isinstance(item, Mutator)]
    applied = {item.id: item for item in passed if item.is_preview}
    skipped = {name: fault for name, fault in would.skipped.items() if name in previewed_ids}
    if not patch and not skipped:
        return None
    return Preview(tuple(applied[item] for item in sorted(applied)), tuple(patch), skipped)
