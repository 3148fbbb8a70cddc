"""Suspends a provider that does not answer: calls for it fail at once for a while.

The provider is suspended for all users after consecutive faults of the connection itself, or of
requests for several users. A request without an answer may fail because of its keys, and a user who
chooses an image's name must not suspend a provider for all others. Consecutive faults of one user
suspend it for that user only. Audits and renewals of cached answers have no user and count as one:
their keys are of objects that any user may have written. After a jittered back-off one trial
request is sent. Its answer ends the suspension, its fault doubles the back-off.
"""

from __future__ import annotations

import random
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS_MAX: Final = 5
"""The number of consecutive faults before a suspension. One admission may call four times at once,
and be the only one during a restart.
"""

BACKOFF_SECONDS: Final = 1.0
"""The first back-off: a provider that restarts is back in a second or two."""

BACKOFF_SECONDS_MAX: Final = 30.0

BACKOFF_JITTER: Final = 0.2
"""The random part of a back-off: replicas must not retry simultaneously."""

NEWS_SECONDS: Final = 300.0
"""How long a user for whom the provider is suspended counts after the last trial."""

USERS_MAX: Final = 256
"""The number of users whose faults are remembered; the user with
the least recent fault is forgotten
first."""


@dataclass(slots=True)
class _Row:
    """Consecutive faults, and their consequences."""

    faults: int = 0
    openings: int = 0
    retry_at: float = 0.0
    message: str = ""
    is_tried: bool = False
    """Whether a trial request is under way."""

    @property
    def is_open(self) -> bool:
        return self.openings > 0


@dataclass(slots=True)
class Suspension:
    """Decides whether one provider is called. For one thread."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    _all: _Row = field(default_factory=_Row)
    _requesters: set[str] = field(default_factory=set)
    """The users in the common row of faults."""
    _own: dict[str, _Row] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Returns whether the provider is suspended for all users."""
        return self._all.is_open

    @property
    def fault(self) -> str:
        """Returns the last fault of a provider that is suspended for all users, or an empty text."""
        return self._all.message if self.is_open else ""

    @property
    def users(self) -> tuple[int, str]:
        """Returns the number of users for whom alone the provider is suspended, and the last fault.

        Any thread may call it.
        """
        since = self.clock() - NEWS_SECONDS
        rows = () if self.is_open else tuple(self._own.values())
        suspended = [row.message for row in rows if row.is_open and row.retry_at > since]
        return len(suspended), suspended[-1] if suspended else ""

    def is_open_for(self, requester: str) -> bool:
        """Returns whether the provider is suspended for this user alone."""
        row = self._own.get(requester)
        return not self.is_open and row is not None and row.is_open

    @property
    def has_faults(self) -> bool:
        """Returns whether an answer changes anything: there were faults since the last one."""
        return self._all.faults > 0 or bool(self._own)

    def refusal(self, requester: str) -> str:
        """Returns why a user's call fails now; empty if it is sent.

        One call passes after a back-off.
        """
        if not self.has_faults:
            return ""
        now = self.clock()
        for_whom = " for this user" if requester else ""
        for row, whom in ((self._all, ""), (self._own.get(requester), for_whom)):
            if row is None or not row.is_open:
                continue
            seconds_left = row.retry_at - now
            if seconds_left > 0:
                times = f"{row.faults} faults in a row"
                return (
                    f"{row.message} (not asked again{whom} for {seconds_left:.0f} s, after {times})"
                )
        for row in (self._all, self._own.get(requester)):
            if row is not None and row.is_open:
                row.is_tried = True
                self._wait(row)  # No other call passes until the trial has ended.
        return ""

    def answered(self, requester: str) -> None:
        """Records any answer."""
        if self._all.faults:
            self._all = _Row()
            self._requesters.clear()
        if self._own:
            self._own.pop(requester, None)

    def failed(self, requester: str, message: str, *, connected: bool) -> None:
        """Records a fault; ``connected`` is whether the provider received the request."""
        row = self._all
        if not connected or requester not in self._requesters:
            self._fail(row, message)
        self._requesters.add(requester)
        if len(self._requesters) > USERS_MAX:
            self._requesters.clear()
        own_row = self._own.pop(requester, None) or _Row()
        if len(self._own) >= USERS_MAX:
            del self._own[next(iter(self._own))]
        self._own[requester] = own_row
        self._fail(own_row, message)

    def _fail(self, row: _Row, message: str) -> None:
        row.faults += 1
        row.message = message
        # Faults of calls from before the suspension are no news: only the trial's fault counts.
        if row.faults >= FAULTS_MAX and (row.is_tried or not row.is_open):
            row.openings += 1
            row.is_tried = False
            self._wait(row)

    def _wait(self, row: _Row) -> None:
        doublings = min(max(row.openings - 1, 0), 10)
        seconds = min(BACKOFF_SECONDS * 2**doublings, BACKOFF_SECONDS_MAX)
        row.retry_at = self.clock() + seconds * (1 + BACKOFF_JITTER * (2 * self.chance() - 1))
