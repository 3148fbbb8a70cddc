"""Why a constraint that matches may have no verdict, and the choices of its owner."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

OnError: TypeAlias = Literal["lastGood", "reject", "allow"]


ON_ERROR: Final[tuple[OnError, ...]] = ("lastGood", "reject", "allow")


OnUndecidable: TypeAlias = Literal["refuse", "ignore"]
"""The answer if a constraint is undecided because of the request's own object, or of its user's
other requests.
"""


ON_UNDECIDABLE: Final[tuple[OnUndecidable, ...]] = ("refuse", "ignore")


FaultStage: TypeAlias = Literal[
    "parse", "compile", "template", "constraint", "engine", "environment"
]
"""The stage at which a policy is broken: parsing or compiling its source, reading the object, a
missing engine, or (``environment``) a machine that could not compile it and will try again.
"""


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
"""Why a constraint is undecided: a stage of the above; an error, an overrun or a suspension of its
evaluation; or no time left in the request, because of its object, its user's other requests or
(``deadline``) neither.
"""


OF_THE_REQUEST: Final[frozenset[UndecidedCause]] = frozenset({"deadline", "object", "requester"})
"""Causes that do not count against the policy: ``OnUndecidable`` decides them, and not ``OnError``.
"""
