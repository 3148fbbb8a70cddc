"""Errors of mutators, and of objects that they should change."""

from __future__ import annotations


class InvalidMutator(ValueError):
    """A mutator that cannot be used; the message is Gatekeeper's."""


class ApplyError(Exception):
    """An object that is not as a mutator's location says, or that cannot be matched."""


class MutationError(Exception):
    """A request whose object cannot be mutated.

    ``iterations`` is how many passes were begun, as Gatekeeper's metric counts them, and
    ``mutator`` the identity of the mutator at fault, or empty where there is no single one.
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
    """Mutating takes longer than this thread has for one object, and may go on elsewhere."""
