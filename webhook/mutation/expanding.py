"""Expands a resource; each resultant is mutated before it is expanded itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import namespace_of
from webhook.constraint.expansion import Expansion, InvalidExpansion, Resultant
from webhook.external_data.exchange import Answering, ProviderRequest, Unanswered
from webhook.mutation.errors import MutationError, OverBudget
from webhook.mutation.external import settled
from webhook.mutation.pace import UNBOUNDED, Pace
from webhook.mutation.setting import Context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.mutation.passes import MutationOnError
    from webhook.mutation.snapshot import MutationSnapshot

_WAITING: Final = {"kind": "-"}
"""A placeholder for a resultant that waits for providers: it implies no further objects yet."""


def expand(  # noqa: PLR0913  # each input of a resultant is a parameter
    expansion: Expansion,
    mutations: MutationSnapshot,
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    *,
    username: str = "",
    size: int = 0,
    on_error: MutationOnError = "skip",
    known: Answering,
    pace: Pace = UNBOUNDED,
) -> list[Resultant]:
    """Returns all implied objects of a resource, after the objects implied by them.

    Mutators see resultants as generated, and no operation. ``size`` is the resource's in bytes.
    ``known`` has the answers of providers. Raises
    :class:`~webhook.constraint.expansion.InvalidExpansion`,
    :class:`~webhook.external_data.exchange.Unanswered` and
    :class:`~webhook.mutation.errors.OverBudget`.
    """
    if not mutations:
        return expansion.expand(obj, namespace)
    missing: list[ProviderRequest] = []

    def mutated_resultant(resultant: dict[str, Any]) -> dict[str, Any]:
        context = Context("", namespace, namespace_of(resultant), username, "Generated", pace)
        try:
            mutated = mutations.mutate(resultant, context, on_error=on_error)
            return settled(mutated, known, pace)
        except OverBudget:
            raise
        except Unanswered as wanting:
            missing.extend(wanting.requests)
            return dict(_WAITING)
        except MutationError as error:
            raise InvalidExpansion(f"failed to mutate resultant resource: {error}") from None

    resultants: list[Resultant] = []
    try:
        resultants = expansion.expand(obj, namespace, mutated_resultant, size)
    except InvalidExpansion:
        if not missing:
            raise
    if missing:
        raise Unanswered(tuple(dict.fromkeys(missing)))
    return resultants
