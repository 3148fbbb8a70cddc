"""The cost of evaluations: Kubernetes' limits, and a deadline that is checked now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.errors import LimitExceeded

EXPRESSION_COST: Final = 1_000_000
"""The cost limit of one expression (k8s.io/apiserver, pkg/apis/cel/config.go, PerCallLimit)."""

MATCH_CONDITIONS_COST: Final = 2_500_000
"""The budget of all match conditions together (RuntimeCELCostBudgetMatchConditions)."""

POLICY_COST: Final = 10_000_000
"""The cost limit of all validations of a policy for one parameter resource
(RuntimeCELCostBudget)."""

CHECK_EVERY: Final = 2_000
"""Cost between two looks at the clock: about half a millisecond of the slower form."""

MAX_TEXT: Final = 5_000_000
"""The most characters of one text, and items of one list, that an expression may make."""

_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class Meter:
    """The cost of evaluations that share a limit.

    ``look`` is called about every :data:`CHECK_EVERY` units; it raises where time is up.
    """

    __slots__ = ("left", "limit", "look", "may_have_lost", "next_look")

    def __init__(
        self, limit: int = EXPRESSION_COST, look: Callable[[], None] | None = None
    ) -> None:
        self.limit = limit
        self.left = limit
        self.look = look
        self.next_look = limit - CHECK_EVERY
        self.may_have_lost = False
        """Whether a list or map was made with a value that cel-go could not read back."""

    def charge(self, cost: int) -> None:
        """Charges cost; raises :class:`~webhook.cel.errors.LimitExceeded` if the budget is spent."""
        self.left = left = self.left - cost
        if left < self.next_look:
            self.check()

    def rewind(self, left: int) -> None:
        """Undo the charges since so much was left."""
        self.left = left
        self.next_look = left - CHECK_EVERY

    def check(self) -> None:
        """Checks the limit, and the deadline."""
        if self.left < 0:
            raise LimitExceeded(_EXCEEDED)
        self.next_look = self.left - CHECK_EVERY
        if self.look is not None:
            self.look()

    def charge_size(self, value: Any) -> Any:
        """Charges a new text or list by its size, and returns it."""
        size = len(value)
        if size > 100:
            if size > MAX_TEXT:
                raise LimitExceeded(_EXCEEDED)
            self.charge(size // 10)
        return value
