"""Differences of composed literals that are explained: exact ones, and each time counted."""

import re
from typing import Any, Final

from tests.differential.composition.comparison import Difference


def _as_int64(answer: Any) -> Any:
    """An answer with the name that Go's integers have since 1.22."""
    if isinstance(answer, str):
        return answer.replace("(int=", "(int64=").replace("EXTRA int=", "EXTRA int64=")
    if isinstance(answer, tuple | frozenset):
        return type(answer)(map(_as_int64, answer))
    return answer


CONFLICT: Final = "function data.t.{} produced conflicting values for the same inputs"

INDEXED: Final = re.compile(r"\b(\w+) in input\.[\w.]+;.*(?:\b\1 == [\"1]|\[?\"a\"\]? == \1)")

KNOWN: Final = {
    "OPA 1.17 lets what comes of an empty collection be of any type": (
        lambda one: (
            one.way == "load"
            and "some i, v in []; " in one.asked.text
            and (one.mine, one.real) == (("refused", "rego_type_error"), ("accepted", None))
        )
    ),
    "a fault of OPA 1.22: its index of rules with a member of the input that equals a constant": (
        lambda one: (
            INDEXED.search(one.asked.text) is not None
            and one.mine[0] == one.real[0] == "set"
            and one.real[1] < one.mine[1]
        )
    ),
    "OPA 1.17 tells sprintf's other verbs int, not int64 (check/compatibility.py)": (
        lambda one: _as_int64(one.real) == one.mine
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
    """Why the difference is known; empty if it is not."""
    return next((why for why, explains in KNOWN.items() if explains(one)), "")
