"""What a resource implies, as it would be made: each resultant mutated before it is expanded itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import namespace_of
from webhook.constraint.expansion import InvalidExpansion
from webhook.mutation.errors import MutationError, OverBudget
from webhook.mutation.external import resolved
from webhook.mutation.pace import UNBOUNDED
from webhook.mutation.setting import Context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.expansion import Expansion, Resultant
    from webhook.mutation.pace import Pace
    from webhook.mutation.passes import MutationOnError
    from webhook.mutation.snapshot import MutationSnapshot


def expand(
    expansion: Expansion,
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    *,
    username: str = "",
    size: int = 0,
    on_error: MutationOnError = "skip",
    pace: Pace = UNBOUNDED,
) -> list[Resultant]:
    """Everything that a resource implies, what is implied by those first.

    Mutators see resultants as generated, and no operation. ``size`` is the
    resource's in bytes. Raises
    :class:`~webhook.constraint.expansion.InvalidExpansion` and
    :class:`~webhook.mutation.errors.OverBudget`.
    """
    if not mutations:
        return expansion.expand(obj, namespace)

    def settled(resultant: dict[str, Any]) -> dict[str, Any]:
        context = Context("", namespace, namespace_of(resultant), username, "Generated", pace)
        try:
            mutated = mutations.mutate(resultant, context, on_error=on_error)
            return resolved(mutated, {}, pace)
        except OverBudget:
            raise
        except MutationError as error:
            raise InvalidExpansion(f"failed to mutate resultant resource: {error}") from None

    return expansion.expand(obj, namespace, settled, size)
