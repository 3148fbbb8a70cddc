"""Policies are validated for pipelines, on a thread of its own and never beyond its time."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any, Final

from webhook.app.bounded_thread import BoundedThread
from webhook.policies.effect import concerned, effect_on_data, only
from webhook.server.validation import (
    ANSWER_SECONDS,
    WAITING_MAX,
    PoliciesRefused,
    read_policies,
)
from webhook.trials.validation import validate_tried

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from webhook.constraint.client import Client
    from webhook.trials.trials import Trials

EFFECT_SECONDS: Final = 5.0
"""For the comparison of synced objects, in one call."""


class ValidationThread:
    """Validates policies on top of those in force."""

    def __init__(
        self, make_in_force: Callable[[], Client], trials: Trials, evaluation_seconds: float
    ) -> None:
        """``make_in_force`` gives a client with the policies in force, thrown away after a call."""
        self._make_in_force = make_in_force
        self._trials = trials
        self._seconds = evaluation_seconds
        self._thread = BoundedThread("validate", waiting_max=WAITING_MAX)

    def validate(self, body: bytes, *, with_effect: bool) -> Future[dict[str, Any]]:
        """What is wrong with policies, and how many violations of synced objects they change."""
        try:
            return self._thread.submit(
                lambda: self._validate(body, with_effect=with_effect), ANSWER_SECONDS
            )
        except queue.Full:
            raise PoliciesRefused(429, "other policies are being validated: try later") from None

    def stop(self) -> None:
        """Validate nothing more."""
        self._thread.stop()

    def _validate(self, body: bytes, *, with_effect: bool) -> dict[str, Any]:
        documents = read_policies(body)
        after = self._make_in_force()
        problems = validate_tried(after, documents, self._seconds, self._trials)
        answer: dict[str, Any] = {
            "valid": not any(problem.severity == "error" for problem in problems),
            "problems": [problem.document() for problem in problems],
        }
        if not with_effect:
            return answer
        before = self._make_in_force()
        keys = concerned(
            documents,
            [item.key for client in (before, after) for item in client.snapshot.constraints],
        )
        snapshots = only(before, keys), only(after, keys)
        effect, is_whole = effect_on_data(*snapshots, keys, EFFECT_SECONDS)
        answer["effect"] = {**effect.document(examples=False), "complete": is_whole}
        return answer
