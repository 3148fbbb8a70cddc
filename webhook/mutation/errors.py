"""Errors of mutators, and of objects that they should change."""

from __future__ import annotations


class InvalidMutator(ValueError):
    """A mutator that cannot be used; the message is Gatekeeper's."""


class ApplyError(Exception):
    """An object that is not as a mutator's location says, or that cannot be matched."""


class MutationError(Exception):
    """A request whose object cannot be mutated.

    ``iterations`` is the number of passes begun, as in Gatekeeper's metric. ``mutator`` is the
    identity of the failing mutator, or empty if there is no single one.
    """

    def __init__(self, message: str, iterations: int, mutator: str = "") -> None:
        super().__init__(message)
        self.iterations = iterations
        self.mutator = mutator


class NotConverging(MutationError):
    """Mutators that would change the object for ever."""


class OutOfTime(MutationError):
    """The time for the request ended before its mutators came to an end."""


class OverBudget(OutOfTime):
    """Mutating one object exceeds the budget of this thread; another may continue."""
