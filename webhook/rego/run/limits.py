"""The limits of one evaluation and its access to the outside: time, steps, a clock, services.

A step is about 50 ns of work. Generated code charges the length of a collection when it enters a
loop over it (:mod:`webhook.rego.write.payment` says which), and built-ins charge before work that
is long in C; the deadline is checked after each :data:`CHECK_EVERY` paid steps, so a turn of a loop
costs a comparison and not a system call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from webhook.rego.errors import EvaluationError
from webhook.rego.location import Location

CHECK_EVERY: Final = 20_000
"""Steps between two looks at the clock: about a millisecond."""

DEFAULT_STEPS: Final = 200_000_000
"""The default budget: about ten seconds of work, for callers that give no deadline."""


UNBOUNDED_STEPS: Final = 1 << 62
"""The budget of an evaluation that is limited by its time alone."""


class EvaluationContext:
    """One evaluation's limits and services; made for each query.

    ``deadline`` is on :func:`time.monotonic`'s clock, in seconds; None for none. ``steps`` is the
    budget of work. ``services`` are the external services that the caller provides. ``print_``
    receives each line that the policy prints with its place; without it prints are evaluated and
    dropped. ``strict`` ends the evaluation at a built-in's error, which otherwise makes the call
    *undefined*.
    """

    # Made for every evaluation: slots, and no more of them than are stored.
    __slots__ = (
        "_cache",
        "_lent",
        "_now_ns",
        "_random",
        "deadline",
        "error",
        "left",
        "next_check",
        "print_",
        "strict",
    )

    _cache: dict[Any, Any]
    _now_ns: int
    _random: random.Random

    def __init__(  # noqa: PLR0917  # given by name; a keyword-only one costs 15 ns
        self,
        deadline: float | None = None,
        steps: int | None = None,
        print_: Callable[[Location, str], None] | None = None,
        strict: bool = False,
        now_ns: int | None = None,
        seed: int | str | None = None,
        services: dict[str, Any] | None = None,
        runtime: dict[str, Any] | None = None,
    ) -> None:
        self.deadline = deadline
        if steps is None:
            self.left = DEFAULT_STEPS
            self.next_check = DEFAULT_STEPS - CHECK_EVERY
        else:
            self.left = steps
            self.next_check = steps - CHECK_EVERY
        self.print_ = print_
        self.strict = strict
        self.error: EvaluationError | None = None
        self._lent = (seed, services, runtime)
        if now_ns is not None:
            self._now_ns = now_ns

    shared: dict[str, Any] | None = None
    """Documents that evaluations of other policies with the same ``input.review`` have, too."""
    left: int
    """The rest of the budget of steps."""
    next_check: int
    """Where the clock is looked at next."""
    error: EvaluationError | None
    """The first complaint of a built-in, where ``strict``; raised once the answer is known."""

    @property
    def cache(self) -> dict[Any, Any]:
        """A scratch of this query."""
        try:
            return self._cache
        except AttributeError:
            self._cache = {}
            return self._cache

    @property
    def services(self) -> dict[str, Any]:
        """Returns the services that the caller passed."""
        return self._lent[1] or {}

    @property
    def runtime(self) -> dict[str, Any]:
        """Returns the value of ``opa.runtime()``."""
        return self._lent[2] or {}

    @property
    def now_ns(self) -> int:
        """The time of the query, the same for the whole evaluation, in nanoseconds since 1970."""
        try:
            return self._now_ns
        except AttributeError:
            self._now_ns = time.time_ns()
            return self._now_ns

    @property
    def random(self) -> random.Random:
        """The query's source of chance."""
        try:
            return self._random
        except AttributeError:
            seed = self._lent[0]
            self._random = random.Random(seed)  # noqa: S311  # rand.intn promises no secrecy
            return self._random

    @property
    def is_particular(self) -> bool:
        """Whether the time or a random number was read, so that results may vary."""
        return hasattr(self, "_now_ns") or hasattr(self, "_random")

    def charge(self, steps: int) -> None:
        """Pay for work; raises ``eval_cancel_error`` when the budget or the time is spent."""
        self.left = left = self.left - steps
        if left < self.next_check:
            self.check()

    def pay(self, steps: int) -> bool:
        """As :meth:`charge`; True, as generated code wants it."""
        self.left = left = self.left - steps
        if left < self.next_check:
            self.check()
        return True

    def check(self) -> None:
        """Looks at the budget and the clock."""
        if self.left < 0:
            raise EvaluationError("eval_cancel_error", "evaluation exceeded its budget of steps")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise EvaluationError("eval_cancel_error", "evaluation exceeded its deadline")
        self.next_check = self.left - CHECK_EVERY
