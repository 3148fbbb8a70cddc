"""An evaluation of Rego within a budget of its own, apart from the request's deadline."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.limits import LOOK_SECONDS
from webhook.rego.errors import EvaluationError
from webhook.rego.run.limits import CHECK_EVERY, EvaluationContext

if TYPE_CHECKING:
    from webhook.constraint.drivers.external_data import Asking
    from webhook.constraint.limits import Budget
    from webhook.external_data.exchange import ReviewMoment


FIRST_STEPS: Final = 2_000
"""Steps before the first look: a tenth of a millisecond where they take what they should."""

LEAST_STEPS: Final = 20


class ReviewContext(EvaluationContext):
    """The context of a query that a review asks, as it asks others."""

    __slots__ = ("asking", "moment", "shared")

    shared: dict[str, Any] | None
    asking: Asking
    """Providers' answers, where the policy asks any."""
    moment: ReviewMoment | None
    """The time and random seed that such a policy sees."""

    @property
    def now_ns(self) -> int:
        """The review's one time for who asks providers, else the query's."""
        if (moment := self._moment()) is not None and not hasattr(self, "_now_ns"):
            self._now_ns = moment.take()[0]
        return super().now_ns

    @property
    def random(self) -> random.Random:
        """The random numbers of the review, where its moment is fixed."""
        if (moment := self._moment()) is not None and not hasattr(self, "_random"):
            self._random = random.Random(moment.take()[1])  # noqa: S311  # as the query's own
        return super().random

    def _moment(self) -> ReviewMoment | None:
        return getattr(self, "moment", None)


class BudgetedContext(ReviewContext):
    """The context of a query whose evaluations have a budget each.

    Time counts from the first look at the clock, after :data:`FIRST_STEPS`: a
    short evaluation never looks. From then on it looks as often as it finds
    :data:`LOOK_SECONDS` to have passed, since what a step takes depends on the
    policy.
    """

    # Made for every template and review: set by the driver, read when the clock is looked at.
    __slots__ = ("began", "budget", "seen", "seen_at")

    budget: Budget
    began: float | None
    seen: float
    """When the clock was looked at last, and at how many steps left."""
    seen_at: int

    def renew(self) -> None:
        """Give the next evaluation of this query the whole budget."""
        self.left = self.budget.steps
        self.next_check = self.left - FIRST_STEPS
        self.began = None

    def check(self) -> None:
        """Look at the budget and the clock."""
        super().check()
        now = time.thread_time()
        began = getattr(self, "began", None)
        if began is None:
            self.began = now
            interval = FIRST_STEPS
        elif now - began > self.budget.seconds:
            shown = f"{self.budget.seconds * 1000:g} ms"
            raise EvaluationError("eval_cancel_error", f"evaluation exceeded its budget of {shown}")
        else:
            spent = max(now - self.seen, 1e-6)
            paid = (self.seen_at - self.left) * LOOK_SECONDS / spent
            interval = min(max(int(paid), LEAST_STEPS), CHECK_EVERY)
            if self.budget.rest is not None:
                self.budget.rest(spent)
        self.seen, self.seen_at = now, self.left
        self.next_check = self.left - interval
