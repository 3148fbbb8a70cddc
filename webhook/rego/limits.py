"""What one evaluation may use, and what it is lent: time, steps, a clock, services.

A step is about 50 ns of work. Generated code charges the length of a collection
when it enters a loop over it, and built-ins charge before work that is long in
C; the deadline is looked at each time :data:`CHECK_EVERY` steps have been paid,
so that a loop costs a comparison and not a system call.
"""

from __future__ import annotations

import random
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from webhook.rego.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.ast import Location

CHECK_EVERY: Final = 20_000
"""Steps between two looks at the clock: about a millisecond."""

DEFAULT_STEPS: Final = 200_000_000
"""The default budget: about ten seconds of work, for callers that give no deadline."""


class Surroundings(TypedDict, total=False):
    """What an evaluation is lent besides time and steps."""

    now_ns: int | None
    seed: int | str | None
    services: dict[str, Any] | None
    runtime: dict[str, Any] | None
    print_: Callable[[Location, str], None] | None
    strict: bool


class EvaluationContext:
    """One evaluation's limits and surroundings; made anew for each query.

    ``deadline`` is on :func:`time.monotonic`'s clock, in seconds; None for none.
    ``steps`` is the budget of work. ``services`` are the doors to the outside
    that the caller opened. ``print_`` receives each line that the policy prints
    with its place; without it prints are evaluated and dropped. ``strict``
    ends with a built-in's error where that is otherwise *undefined*.
    """

    print_: Callable[[Location, str], None] | None = None
    strict = False
    error: EvaluationError | None = None
    """The first complaint of a built-in, where ``strict``; raised once the answer is known."""
    seed: int | str | None = None
    _now_ns: int | None = None
    _random: random.Random | None = None

    left = DEFAULT_STEPS
    """What is left of the budget of steps."""
    next_check = DEFAULT_STEPS - CHECK_EVERY
    """Where the clock is looked at next."""

    def __init__(
        self,
        deadline: float | None = None,
        *,
        steps: int | None = None,
        **surroundings: Unpack[Surroundings],
    ) -> None:
        # Made for every evaluation: what is as usual is not stored.
        self.deadline = deadline
        if steps is not None:
            self.left = steps
            self.next_check = steps - CHECK_EVERY
        if surroundings:
            self._surround(**surroundings)

    def _surround(  # passed by name
        self,
        *,
        now_ns: int | None = None,
        seed: int | str | None = None,
        services: dict[str, Any] | None = None,
        runtime: dict[str, Any] | None = None,
        print_: Callable[[Location, str], None] | None = None,
        strict: bool = False,
    ) -> None:
        self._now_ns = now_ns
        self.seed = seed
        self.print_ = print_
        self.strict = strict
        if services is not None:
            self.services = services
        if runtime is not None:
            self.runtime = runtime

    @cached_property
    def cache(self) -> dict[Any, Any]:
        """A scratch of this query."""
        return {}

    @cached_property
    def services(self) -> dict[str, Any]:
        """The doors to the outside that the caller opened."""
        return {}

    @cached_property
    def runtime(self) -> dict[str, Any]:
        """What ``opa.runtime()`` returns."""
        return {}

    @property
    def now_ns(self) -> int:
        """The query's one time, in nanoseconds since 1970."""
        if self._now_ns is None:
            self._now_ns = time.time_ns()
        return self._now_ns

    @property
    def random(self) -> random.Random:
        """The query's source of chance."""
        if self._random is None:
            self._random = random.Random(self.seed)  # noqa: S311  # rand.intn promises no secrecy
        return self._random

    def charge(self, steps: int) -> None:
        """Pay for work; raises ``eval_cancel_error`` when the budget or the time is spent."""
        self.left = left = self.left - steps
        if left < self.next_check:
            self.check()

    def check(self) -> None:
        """Look at the budget and the clock."""
        if self.left < 0:
            raise EvaluationError("eval_cancel_error", "evaluation exceeded its budget of steps")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise EvaluationError("eval_cancel_error", "evaluation exceeded its deadline")
        self.next_check = self.left - CHECK_EVERY
