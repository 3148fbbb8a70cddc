"""What a review may take that nobody waits for: an audit's, and that of a resource for its report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from webhook.audit.reviewer import PATIENCE
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import Budget, Limits

if TYPE_CHECKING:
    from collections.abc import Callable


class PatientLimits:
    """Gives the limits of a review that begins now."""

    def __init__(
        self,
        review_seconds: float,
        evaluation_seconds: float,
        *,
        rest: Callable[[float], None] | None,
    ) -> None:
        """``review_seconds`` and ``evaluation_seconds`` are what an admission may take.

        ``rest`` lets admissions go first, where there are any.
        """
        self._seconds = review_seconds
        self._budget = Budget.of(evaluation_seconds * PATIENCE, rest=rest, guard=Guard())

    def __call__(self) -> Limits:
        """The deadline counts from now."""
        return Limits(deadline=time.monotonic() + self._seconds, budget=self._budget)
