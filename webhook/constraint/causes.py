"""Why a constraint that matches may have no verdict, and what its owner can want then."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

OnError: TypeAlias = Literal["lastGood", "reject", "allow"]


ON_ERROR: Final[tuple[OnError, ...]] = ("lastGood", "reject", "allow")


OnUndecidable: TypeAlias = Literal["refuse", "ignore"]
"""The answer to a request for which a constraint cannot be decided because of its own object, or of
its user's other requests."""


ON_UNDECIDABLE: Final[tuple[OnUndecidable, ...]] = ("refuse", "ignore")


FaultStage: TypeAlias = Literal[
    "parse", "compile", "template", "constraint", "engine", "environment"
]
"""Where a policy was found broken: its source, as text or in its meaning, or the object; or the
engine that it is written for is not there; or the machine could not compile it, and will be asked
again."""


UndecidedCause: TypeAlias = Literal[
    "parse",
    "compile",
    "template",
    "constraint",
    "engine",
    "environment",
    "error",
    "overrun",
    "suspended",
    "deadline",
    "object",
    "requester",
]
"""A stage; or its evaluation failed, took more than it may, was not begun after it had done so
repeatedly, or had no time left in the request: because of its object, of its user's other requests,
or (``deadline``) of neither."""


OF_THE_REQUEST: Final[frozenset[UndecidedCause]] = frozenset({"deadline", "object", "requester"})
"""Causes that say nothing of the policy: ``OnUndecidable`` answers them, and not ``OnError``."""
