"""Compares this node's clock with the API server's, by the ``Date`` of its answers.

Exceptions, roll-outs and certificates begin and end by the node's clock. Where it is wrong, replicas
decide differently, and nothing else shows it.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Final

from webhook.values import dataclass

TOLERATED_SECONDS: Final = 30.0
"""The largest difference that is no fault; clocks that are kept by NTP differ by milliseconds."""

ANSWER_SECONDS_MAX: Final = 5.0
"""The longest answer that is used: one that takes longer says too little about the time."""


@dataclass(slots=True)
class ClockComparison:
    """How far this clock differs from the API server's; any thread may read it."""

    skew_seconds: float = 0.0
    """Positive if this clock is ahead. The difference that is certain: 0 below a second, since
    ``Date`` has whole seconds."""

    def take(self, date: str | None, began: float) -> bool:
        """Takes an answer's ``Date``, of a request that began at this time in seconds since 1970.

        Returns whether a fault begins or ends with it.
        """
        ended, was_wrong = time.time(), self.is_wrong
        try:
            server = parsedate_to_datetime(date or "").timestamp()
        except ValueError:
            return False  # a proxy's answer, without a date
        if not 0 <= ended - began <= ANSWER_SECONDS_MAX:
            return False
        # The answer was written within [server, server + 1) and, by this clock, [began, ended].
        least, most = began - server - 1, ended - server
        self.skew_seconds = max(least, 0.0) or min(most, 0.0)
        return self.is_wrong != was_wrong

    @property
    def is_wrong(self) -> bool:
        """Whether the clocks differ by more than is tolerated."""
        return abs(self.skew_seconds) > TOLERATED_SECONDS

    @property
    def fault(self) -> str:
        """Returns how the clocks differ and what to do, or an empty text."""
        if not self.is_wrong:
            return ""
        direction = "ahead of" if self.skew_seconds > 0 else "behind"
        return (
            f"the clock of this replica's node is {abs(self.skew_seconds):.0f} s {direction} the API "
            "server's, and exceptions, roll-outs and certificates begin and end by it: set the clock "
            "of the node (kubectl get pod -o wide names it)"
        )
