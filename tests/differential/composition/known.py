"""Differences of composed literals that are explained: exact ones, and each time counted."""

import re
from typing import Final

from tests.differential.composition.comparison import Difference

CONFLICT: Final = "function data.t.{} produced conflicting values for the same inputs"

INDEXED: Final = re.compile(r"\b(\w+) in input\.[\w.]+;.*(?:\b\1 == [\"1]|\[?\"a\"\]? == \1)")

KNOWN: Final = {
    "OPA 1.17 lets what comes of an empty collection be of any type": (
        lambda one: (
            one.way == "load"
            and "some i, v in []; " in one.rule.text
            and (one.mine, one.real) == (("refused", "rego_type_error"), ("accepted", None))
        )
    ),
    "a fault of OPA 1.22: its index of rules with a member of the input that equals a constant": (
        lambda one: (
            INDEXED.search(one.rule.text) is not None
            and one.mine[0] == one.real[0] == "set"
            and one.real[1] < one.mine[1]
        )
    ),
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
    """Returns the reason of a known difference; empty if it is unknown."""
    return next((why for why, explains in KNOWN.items() if explains(one)), "")
