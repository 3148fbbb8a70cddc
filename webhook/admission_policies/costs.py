"""Estimates the cost of a policy's expressions against the limits of an API server.

An API server does not estimate a policy's cost in advance. It counts the cost of an evaluation,
ends it beyond the limit, and lets failurePolicy decide. The estimate assumes an object whose lists
and maps have :data:`~webhook.cel.cost.ENTRIES` entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.cel.cost import cost_together, cost_warning
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, POLICY_COST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cel.check.checker import Checked

_TOGETHER: Final = (
    ("matchConditions", MATCH_CONDITIONS_COST, "all match conditions"),
    ("validations", POLICY_COST, "all validations, and the variables that they read,"),
    ("auditAnnotations", POLICY_COST, "all audit annotations, and the variables that they read,"),
)

_MEND: Final = "Write fewer loops within loops; until then"


class PolicyCost(NamedTuple):
    """The estimated cost of a policy.

    ``share`` is the largest share of any limit, 1 for all of it; ``field`` uses it. ``warnings``
    name expressions that would be ended.
    """

    share: float = 0.0
    field: str = ""
    warnings: tuple[str, ...] = ()


FREE: Final = PolicyCost()


def policy_cost(parts: Sequence[tuple[str, Checked]], *, fails: bool) -> PolicyCost:
    """Returns the estimate of expressions, each given with its field.

    ``fails`` is whether failurePolicy is Fail.
    """
    share, field, warnings = 0.0, "", []
    begun = "spec.variables", "spec.validations"
    for at, one in parts:
        share, field = max((share, field), (cost_together([one]) / EXPRESSION_COST, at))
        if text := cost_warning([one], EXPRESSION_COST, "one expression"):
            warnings.append(f"{at}: {text}")
    for name, limit, noun in _TOGETHER:
        starts = begun if name == "validations" else f"spec.{name}"
        matching = [one for at, one in parts if at.startswith(starts)]
        share, field = max((share, field), (cost_together(matching) / limit, f"spec.{name}"))
        text = cost_warning(matching, limit, noun)
        if text and not any(one.startswith(starts) for one in warnings):
            warnings.append(f"spec.{name}: {text}")
    becomes = "failurePolicy Fail denies" if fails else "failurePolicy Ignore admits"
    messages = tuple(f"{one}. {_MEND} {becomes} what is ended" for one in warnings)
    return PolicyCost(share, field, messages)
