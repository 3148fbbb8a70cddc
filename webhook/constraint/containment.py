"""Turns every exception of reading or evaluating a policy into a fault of that policy.

Lexer, parser, checks, generator, CPython's compiler, schemas and matches work on text of users.
They refuse it with an error of the framework. Beyond that a text may exceed Python's stack or the
memory, or may trigger a bug of ours. In each case the fault goes to the status of that policy, and
all other policies load. A failure of the machine (memory, a file, a library) says nothing against
the template, so it has an error of its own and is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from webhook import heap
from webhook.constraint.errors import (
    CompileError,
    ConstraintFrameworkError,
    InvalidConstraint,
    OutOfMemory,
    PassingFault,
    PolicyError,
)

_Read = TypeVar("_Read", bound="Callable[..., object]")


def of_template(read: _Read) -> _Read:
    """Decorates a reader of templates: only errors of the framework leave it."""
    return _contained(_but_for_the_machine(read), CompileError)


def of_constraint(read: _Read) -> _Read:
    """Decorates a reader of constraints: only errors of the framework leave it."""
    return _contained(read, InvalidConstraint)


def of_evaluation(error: Exception) -> PolicyError:
    """Returns the error of one policy for an exception of its evaluation."""
    if isinstance(error, PolicyError):
        # A caller that keeps the error in a variable would, in a circle, keep all values of the
        # evaluation.
        heap.free_what_failed(error)
        return error
    if isinstance(error, RecursionError):
        message = "evaluation met values nested too deeply"
        return PolicyError(message, overrun=True, too_deep=True)
    if isinstance(error, MemoryError):
        return PolicyError("evaluation needs more memory than there is", overrun=True)
    return PolicyError(f"policy met a fault of the engine: {type(error).__name__}", bug=error)


def _but_for_the_machine(read: _Read) -> _Read:
    """Decorates a reader: failures of the machine become :class:`PassingFault`, to be tried again."""

    @wraps(read)
    def classified(*args: object, **options: object) -> object:
        try:
            return read(*args, **options)
        except MemoryError:
            raise OutOfMemory from None
        except (OSError, ImportError) as error:
            text = f"{type(error).__name__}: {error}"
            raise PassingFault(f"policy could not be compiled here: {text}") from None

    return classified  # type: ignore[return-value]  # the same signature, with other errors


def _contained(read: _Read, refusal: type[ConstraintFrameworkError]) -> _Read:
    @wraps(read)
    def contained(*args: object, **options: object) -> object:
        try:
            return read(*args, **options)
        except ConstraintFrameworkError:
            raise
        except RecursionError:
            raise refusal("policy is nested too deeply") from None
        except MemoryError:
            raise refusal("policy needs more memory than there is") from None
        except Exception as bug:  # a fault of Waddle: the caller logs it with its cause
            fault = refusal(f"policy cannot be used for a fault of Waddle: {type(bug).__name__}")
            fault.bug = bug
            raise fault from bug

    return contained  # type: ignore[return-value]  # the same signature, with other errors
