"""Why a constraint that matches may have no verdict, and what its owner can want then."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

OnError: TypeAlias = Literal["lastGood", "reject", "allow"]


ON_ERROR: Final[tuple[OnError, ...]] = ("lastGood", "reject", "allow")


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
]
"""A stage; or its evaluation failed, took more than it may, was not begun after it had done so
repeatedly, or had no time left in the request."""
