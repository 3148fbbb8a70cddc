"""Evaluation of Rego with a budget for each constraint, besides the request's deadline."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.limits import LOOK_SECONDS, Budget
from webhook.rego.errors import EvaluationError
from webhook.rego.run.limits import CHECK_EVERY, EvaluationContext

if TYPE_CHECKING:
    from webhook.constraint.drivers.external_data import Asking
    from webhook.external_data.exchange import ReviewMoment

FIRST_STEPS: Final = 2_000
"""Steps before the clock is first read: about a tenth of a millisecond."""

LEAST_STEPS: Final = 20
"""The fewest steps between two readings of the clock: five hundred times slower than usual (50 ns),
they take :data:`~webhook.constraint.limits.LOOK_SECONDS`.
"""


class ReviewContext(EvaluationContext):
    """The context of a query within a review."""

    __slots__ = ("asking", "moment", "shared")

    shared: dict[str, Any] | None
    asking: Asking
    """The access to provider responses, if the policy asks providers."""
    moment: ReviewMoment | None
    """The time and random seed for a policy that asks providers."""

    @property
    def now_ns(self) -> int:
        """Returns the review's fixed time for a policy that asks providers, else the query's."""
        if (moment := self._moment()) is not None and not hasattr(self, "_now_ns"):
            self._now_ns = moment.take()[0]
        return super().now_ns

    @property
    def random(self) -> random.Random:
        """Returns the random generator; a fixed one if the review's moment is fixed."""
        if (moment := self._moment()) is not None and not hasattr(self, "_random"):
            self._random = random.Random(moment.take()[1])  # noqa: S311  # as the query's own
        return super().random

    def _moment(self) -> ReviewMoment | None:
        return getattr(self, "moment", None)


class BudgetedContext(ReviewContext):
    """The context of a query whose evaluations each have a budget.

    The clock is first read after :data:`FIRST_STEPS`, so a short evaluation never reads it. Then it
    is read about every :data:`LOOK_SECONDS`; the steps between adapt, because the time of a step
    depends on the policy.
    """

    # Made for every template and review: the driver sets ``budget``, the first reading the others.
    __slots__ = ("began", "budget", "seen", "seen_at")

    budget: Budget
    began: float | None
    """The first reading of the clock in this evaluation; None or unset before it."""
    seen: float
    """The last reading of the clock."""
    seen_at: int
    """The steps left at the last reading."""

    def renew(self) -> None:
        """Gives the next evaluation of this query the whole budget."""
        self.left = self.budget.steps
        self.next_check = self.left - FIRST_STEPS
        self.began = None

    def check(self) -> None:
        """Checks steps and time, and decides after how many steps to check again.

        There are three cases: 1. The first reading of an evaluation. 2. The budget is exceeded.
        3. Otherwise the last steps say how many take :data:`LOOK_SECONDS`.
        """
        super().check()
        now = time.thread_time()
        began = getattr(self, "began", None)
        if began is None:
            self.began = now
            interval = FIRST_STEPS
        elif now - began > self.budget.seconds:
            text = f"evaluation exceeded its budget of {self.budget.seconds * 1000:g} ms"
            raise EvaluationError("eval_cancel_error", text)
        else:
            spent = max(now - self.seen, 1e-6)
            affordable = (self.seen_at - self.left) * LOOK_SECONDS / spent
            interval = min(max(int(affordable), LEAST_STEPS), CHECK_EVERY)
            if self.budget.rest is not None:
                self.budget.rest(spent)
        self.seen, self.seen_at = now, self.left
        self.next_check = self.left - interval
