"""An evaluation of Rego within a budget of its own, apart from the request's deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from webhook.rego.errors import EvaluationError
from webhook.rego.limits import CHECK_EVERY, EvaluationContext

if TYPE_CHECKING:
    from webhook.constraint.limits import Budget


class BudgetedContext(EvaluationContext):
    """The context of a query whose evaluations have a budget each.

    Time counts from the first look at the clock, after about a millisecond of
    work: a short evaluation never looks.
    """

    # Made for every template and review: set by the driver, read when the clock is looked at.
    __slots__ = ("began", "budget")

    budget: Budget
    began: float | None

    def renew(self) -> None:
        """Give the next evaluation of this query the whole budget."""
        self.left = self.budget.steps
        self.next_check = self.left - CHECK_EVERY
        self.began = None

    def check(self) -> None:
        """Look at the budget and the clock."""
        super().check()
        now = time.thread_time()
        began = getattr(self, "began", None)
        if began is None:
            self.began = now
        elif now - began > self.budget.seconds:
            shown = f"{self.budget.seconds * 1000:g} ms"
            raise EvaluationError("eval_cancel_error", f"evaluation exceeded its budget of {shown}")
        if self.budget.rest is not None:
            self.budget.rest()
