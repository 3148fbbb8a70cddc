"""A template with its constraints, as a snapshot holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.causes import OnError
    from webhook.constraint.constraint import Broken, Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.target import Target
    from webhook.constraint.template import Template


@dataclass(frozen=True, slots=True)
class Entry:
    """A template with its constraints in order of name.

    ``evaluator`` and ``crd`` are those of its last good revision, None where
    there is none. ``broken`` says why a newer one cannot be used, and
    ``on_error`` is what the newest one wants done about faults.
    """

    template: Template
    target: Target
    evaluator: Evaluator | None
    constraints: tuple[Constraint, ...]
    crd: Mapping[str, Any] | None
    on_error: OnError | None = None
    broken: Broken | None = None

    def on_error_for(self, constraint: Constraint) -> OnError | None:
        """What the constraint, or else its template, says; None where neither does."""
        return constraint.on_error or self.on_error

    def fault_of(self, constraint: Constraint, default: OnError) -> Broken | None:
        """Why a constraint is not evaluated; None where it is."""
        broken = constraint.broken or self.broken
        if broken is None:
            return None
        if constraint.is_good and self.evaluator is not None:
            on_error = self.on_error_for(constraint) or default
            return None if on_error == "lastGood" else broken
        return broken
