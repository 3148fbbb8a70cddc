"""Policies are validated for pipelines, on a thread of its own and never beyond its time."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from webhook.app.bounded_thread import BoundedThread
from webhook.server.validation import (
    ANSWER_SECONDS,
    WAITING_MAX,
    PoliciesRefused,
    read_policies,
)
from webhook.trials.validated import validated

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from webhook.api.shapes import Json
    from webhook.constraint.client import Client
    from webhook.review.policy_set import PolicySet
    from webhook.trials.trials import Trials


class ValidationThread:
    """Validates policies on top of those in force."""

    def __init__(
        self,
        make_in_force: Callable[[], Client],
        trials: Trials,
        evaluation_seconds: float,
        around: Callable[[], PolicySet | None],
    ) -> None:
        """``make_in_force`` gives a client with the policies in force, thrown away after a call.

        ``around`` gives all that is in force, for what decides beside templates and constraints.
        """
        self._around = around
        self._make_in_force = make_in_force
        self._trials = trials
        self._seconds = evaluation_seconds
        self._thread = BoundedThread("validate", waiting_max=WAITING_MAX)

    def validate(self, body: bytes, *, with_effect: bool) -> Future[Json]:
        """What is wrong with policies, and how many violations of synced objects they change."""
        try:
            return self._thread.submit(
                lambda: validated(
                    self._make_in_force,
                    read_policies(body),
                    self._seconds,
                    self._trials,
                    around=self._around(),
                    with_effect=with_effect,
                ),
                ANSWER_SECONDS,
            )
        except queue.Full:
            raise PoliciesRefused(429, "other policies are being validated: try later") from None

    def stop(self) -> None:
        """Validate nothing more."""
        self._thread.stop()
