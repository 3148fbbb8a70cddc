"""Differences of composed literals that are explained: exact ones, and each time counted."""

from typing import Final

from tests.differential.composition.comparison import Difference

CONFLICT: Final = "function data.t.{} produced conflicting values for the same inputs"

KNOWN: Final = {
    "the same fault: a function that maps strings is asked about all of them at once": (
        lambda one: (
            one.real == ("error", "eval_conflict_error", CONFLICT.format("table"))
            and one.mine[0] == "set"
        )
    ),
    "a fault of OPA 1.22: its index of comprehensions evaluates a literal before its operands": (
        lambda one: (
            one.real[:2] == ("error", "eval_internal_error")
            and one.real[2].startswith("built-in function ")
            and " that requires evaluation: " in one.real[2]
            and "__local" in one.real[2]
        )
    ),
}
"""By the reason: whether a difference is one of this kind."""


def reason(one: Difference) -> str:
    """Why the difference is known; empty if it is not."""
    return next((why for why, explains in KNOWN.items() if explains(one)), "")
