"""Differences of composed literals that are explained: exact ones, and each time counted."""

from typing import Final

from tests.differential.composition.comparison import Difference

KNOWN: Final = {
    "a fault of OPA 1.22: its index of comprehensions evaluates a literal before its operands": (
        lambda one: (
            one.real[:2] == ("error", "eval_internal_error")
            and one.real[2].startswith("built-in function ")
            and " that requires evaluation: __local" in one.real[2]
        )
    ),
}
"""By the reason: whether a difference is one of this kind."""


def reason(one: Difference) -> str:
    """Why the difference is known; empty if it is not."""
    return next((why for why, explains in KNOWN.items() if explains(one)), "")
