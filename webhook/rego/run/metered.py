"""Steps of generated code whose time grows with the size of their values.

A loop charges for its turns. A turn that compares large values, or computes their keys, may take a
thousand times as long as another, so such steps charge the weight of their values
(:mod:`webhook.rego.run.weight`). The time of a search is known only at its end: a long search is
charged then, and after the longest ones the deadline is checked.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

from webhook.rego.run.runtime import CONTEXT, LONG_TEXT, PAYING, State, index, too_long, values
from webhook.rego.run.text import argument_text
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value, compare, equal, key

WORK_STEPS: Final = 20
"""The steps of a built-in's call, of making a text or of making a member's key within a loop: a
microsecond. A loop is paid for when it begins, a step a turn; without this a turn's work would be
free."""

LONG_SECONDS: Final = 20e-6
"""The free time of a loop's turn, in seconds: collections of some twenty members compared."""

LONG_STEPS: Final = 400
"""The steps of a turn that takes longer: twenty microseconds, however long it was, since the thread
may only have been made to wait. After five of them an evaluation with a budget looks at its clock,
which knows."""

LONGEST_SECONDS: Final = 1e-3
"""The time of a search in seconds after which the deadline is always checked."""

MANY_MEMBERS: Final = 64
"""The number of members from which a search for one is charged: 0.5 µs for strings."""


def _pay(state: State, seconds: float) -> None:
    if seconds > LONG_SECONDS:
        state[CONTEXT].charge(LONG_STEPS)
        if seconds > LONGEST_SECONDS:
            state[CONTEXT].check()


def same(_state: State, a: Value, b: Value) -> bool:
    """``a == b``."""
    return equal(a, b)


def before(_state: State, a: Value, b: Value) -> bool:
    """``a < b``."""
    return compare(a, b) < 0


def not_after(_state: State, a: Value, b: Value) -> bool:
    """``a <= b``."""
    return compare(a, b) <= 0


def member_key(_state: State, member: Value) -> Any:
    """Returns the key of a member in a set."""
    return key(member)


def member(state: State, item: Value, collection: Value) -> bool:
    """``item in collection``."""
    kind = type(collection)
    if kind is not list and kind is not dict and kind is not RegoObject and kind is not RegoSet:
        return False
    length = len(collection)
    if type(item) is str:
        if kind is RegoSet:
            return item in collection
        if length > MANY_MEMBERS:
            state[CONTEXT].charge(length // 4)
        return item in (collection if kind is list else collection.values())
    if kind is RegoSet:
        return item in collection
    if length > MANY_MEMBERS:
        state[CONTEXT].charge(length * 2)
    began = monotonic()
    is_member = any(equal(item, other) for other in values(collection))
    _pay(state, monotonic() - began)
    return is_member


def member_at(_state: State, name: Value, item: Value, collection: Value) -> bool:
    """``name, item in collection``."""
    member = index(collection, name)
    return member is not UNDEFINED and equal(member, item)


# --- texts ---------------------------------------------------------------------------------------

JOINED_MAX: Final = 3
"""Values between texts for which there is a function: most messages of policies show no more."""


def join1(state: State, first: str, a: Value, last: str) -> str:
    """Returns a text with one value in it, as ``sprintf`` formats a template of bare verbs."""
    text = f"{first}{a if type(a) is str else argument_text(a)}{last}"
    if state[PAYING] or len(text) > LONG_TEXT:
        made(state, text)
    return text


def join2(state: State, first: str, a: Value, second: str, b: Value, last: str) -> str:
    """Returns a text with two values in it."""
    text = (
        f"{first}{a if type(a) is str else argument_text(a)}"
        f"{second}{b if type(b) is str else argument_text(b)}{last}"
    )
    if state[PAYING] or len(text) > LONG_TEXT:
        made(state, text)
    return text


def join3(  # noqa: PLR0917  # texts and values in turn
    state: State, first: str, a: Value, second: str, b: Value, third: str, c: Value, last: str
) -> str:
    """Returns a text with three values in it."""
    text = (
        f"{first}{a if type(a) is str else argument_text(a)}"
        f"{second}{b if type(b) is str else argument_text(b)}"
        f"{third}{c if type(c) is str else argument_text(c)}{last}"
    )
    if state[PAYING] or len(text) > LONG_TEXT:
        made(state, text)
    return text


def made(state: State, text: str) -> None:
    """Pay for the making of a text, and for its length."""
    context = state[CONTEXT]
    context.left = left = context.left - WORK_STEPS
    if left < context.next_check:  # as its method does, in half of the time
        context.check()
    if len(text) > LONG_TEXT:
        too_long(state, text)
