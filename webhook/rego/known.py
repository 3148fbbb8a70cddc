"""Computes documents that depend only on a constraint's parameters, before the first evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.runtime import FIRST_SLOT, MISSING, new_state
from webhook.rego.run.values import Value, is_small

if TYPE_CHECKING:
    from webhook.rego.write.generate import Loaded

BUDGET_STEPS: Final = 20_000
"""The budget for all documents of a constraint: about a millisecond, once."""

MAX_SIZE: Final = 1_000
"""Scalars and characters of such a document: some 10 KB, for each of thousands of constraints."""


def documents_of(loaded: Loaded, parameters: Value) -> tuple[Value, ...] | None:
    """Returns the known documents at the beginning of an evaluation; None if none is known."""
    documents = [MISSING] * loaded.slots
    context = EvaluationContext(steps=BUDGET_STEPS, strict=True)
    is_known = False
    for slot, compute in loaded.of_constraint:
        state = new_state({"parameters": parameters}, {}, context, loaded.slots)
        try:
            value = compute(state)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112  # each evaluation that comes to it is to end so, and says so
            continue
        if context.error is not None:
            context.error = None  # likewise, where complaints are wanted
        elif not context.is_particular and is_small(value, MAX_SIZE):
            documents[slot - FIRST_SLOT] = value
            is_known = True
    return tuple(documents) if is_known else None
