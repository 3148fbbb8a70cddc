"""The interface of a policy language: a driver compiles a template into an evaluator.

A driver keeps no templates, constraints or data. Snapshots keep the compiled templates, so that a
change never affects a running evaluation.
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
    """A compiled template. Immutable and shared between reviews."""

    @property
    def reads_constraint(self) -> bool:
        """Whether the evaluator gets whole constraints and not only their parameters."""

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> Any:
        """Returns the state that one review's evaluations of this template share.

        :meth:`evaluate` gets it back. ``shared`` is a dict that all templates of the review share;
        drivers fill it.
        """

    def evaluate(self, given: Any, review: Any, state: Any) -> Sequence[DriverViolation]:
        """Returns the violations of constraints with these parameters, in display order.

        ``given`` are the parameters (None if absent), or the whole constraint. The result depends
        only on the arguments. Raises :class:`~webhook.constraint.errors.PolicyError` if the
        evaluation fails.
        """


def asks_providers(evaluator: Evaluator | None) -> bool:
    """Whether an evaluator may ask providers: then others are evaluated in the meantime."""
    return getattr(evaluator, "asks_providers", False)


def lost_violations(evaluator: Evaluator | None) -> str:
    """Returns what an evaluation found by now that denied nothing for want of a message."""
    return getattr(evaluator, "lost", "")


class Driver(Protocol):
    """A policy language."""

    @property
    def name(self) -> str:
        """The name of the engine in ``spec.targets[].code[].engine``."""

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
