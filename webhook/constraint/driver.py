"""The seam to a policy language: a driver compiles a template into an evaluator.

Drivers hold no templates, constraints or data: what they compile is kept by the
client's snapshots, so that an evaluation never meets a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.limits import Limits
    from webhook.constraint.template import Code, Template


class DriverViolation(NamedTuple):
    """A violation that a template reports: a message and free details."""

    msg: str
    details: Any


class Evaluator(Protocol):
    """A compiled template. Immutable; reviews share it freely."""

    @property
    def reads_constraint(self) -> bool:
        """Whether it is given constraints whole and not their parameters alone."""

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> Any:
        """Return what one review's evaluations of this template share; :meth:`evaluate` gets it back.

        ``shared`` is what all templates' evaluations of the review do: its driver's to fill.
        """

    def evaluate(self, given: Any, review: Any, state: Any) -> Sequence[DriverViolation]:
        """The violations of constraints with these parameters, in the order to be shown.

        ``given`` are the parameters, None where there are none, or the constraint. They depend on the arguments alone. Raises :class:`~webhook.constraint.errors.PolicyError` when the evaluation fails.
        """


def asks_providers(evaluator: Evaluator | None) -> bool:
    """Return whether an evaluator says that it may ask providers: others are evaluated meanwhile."""
    return getattr(evaluator, "asks_providers", False)


class Driver(Protocol):
    """A policy language."""

    @property
    def name(self) -> str:
        """The engine's name, as ``spec.targets[].code[].engine`` has it."""

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
