"""Stage 11: which functions always pay for their loops, and which only once a loop is long.

Counting the steps of a typical evaluation would cost more than the limit could save. So loops of up
to :data:`~webhook.rego.write.function.FREE_TURNS` turns are free if the total of free steps is
bounded: with each nested loop at its longest free length, and with all called functions. The first
longer loop makes the evaluation pay from there on (``P`` in a function, :data:`PAYS` between
functions): for every turn, call, built-in and member, however short later loops are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from webhook.rego.write.statement import PAYS, WrittenFunction
from webhook.values import dataclass

FREE_STEPS: Final = 40_000
"""The most free steps of an evaluation: at most 2 ms, a fifth of its budget on the admission thread
(`docs/adr/0020`).
"""

FREE_STEPS_REPEATED: Final = 4_000
"""The most free steps of one call of a function that may be called any number of times. Its caller
counts the call in its own steps.
"""

STRAIGHT_STEPS: Final = 400
"""The most free steps outside of loops in one call. A function with more steps, including its
callees, pays for them when it begins.
"""

_BEGINS: Final = f"P = {PAYS}"
_ALWAYS: Final = f"{_BEGINS} = True; X = S[2]"


@dataclass(frozen=True, slots=True)
class Payment:
    """The highest cost of one call of a function, in steps."""

    free: int
    """Itself, while no loop is longer than its free turns."""
    straight: int
    """The steps outside of loops: they remain unpaid if loops pay."""
    calls: list[tuple[str, int]]
    """Functions called, and how often at most while loops are free."""
    pays: bool
    """Whether it has loops."""
    repeats: bool
    """Whether it may be called any number of times; a document is computed once."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The lines that a function begins with, which pay for it."""

    lines: list[str]
    always: bool = False
    """Whether it pays for all that it does."""


_NOTHING: Final = Beginning([])


def sources(
    functions: Iterable[WrittenFunction], payments: Mapping[str, Payment], *, modifies: bool
) -> list[str]:
    """Returns the text of each function, beginning with its way of paying.

    ``modifies`` is true if documents may be computed any number of times.
    """
    beginnings = _beginnings(payments, 0 if modifies else FREE_STEPS)
    sources = []
    for function in functions:
        beginning = _NOTHING if function.settled else beginnings[function.name]
        sources.append(function.source(beginning.lines, always=beginning.always))
    return sources


def _beginnings(payments: Mapping[str, Payment], rest: int) -> dict[str, Beginning]:
    """Returns the lines that each function begins with, where ``rest`` steps may be free."""
    beginnings: dict[str, Beginning] = {}
    order = _callees_first(payments)
    often = _times(payments, order)
    unpaid: dict[
        str, tuple[int, int]
    ] = {}  # the steps that callers charge: with loops free, and with loops paying
    for name in order:
        payment, times = payments[name], often[name]
        free, straight = payment.free, payment.straight
        for callee, turns in payment.calls:
            steps, outside = unpaid.get(callee, (0, 0))
            free += steps * turns
            if turns == 1:
                straight += outside
        lines = [_BEGINS] if payment.pays else []
        always = False
        if times is not None and free * times <= rest:
            rest -= free * times
            free = 0
        elif not payment.repeats or free > FREE_STEPS_REPEATED:
            free = straight
            always = payment.pays
            lines = [_ALWAYS] if always else [f"{PAYS} = True"]
        if straight > STRAIGHT_STEPS:
            lines.append(f"S[2].pay({straight})")
            free, straight = max(free - straight, 0), 0
        unpaid[name] = free, straight
        beginnings[name] = Beginning(lines, always)
    return beginnings


def _callees_first(payments: Mapping[str, Payment]) -> list[str]:
    """Returns all names, each function after its callees."""
    ordered: dict[str, None] = {}
    entered: set[str] = set()
    for first in payments:
        waiting = [first]
        while waiting:
            name = waiting[-1]
            if name in entered:
                waiting.pop()
                ordered[name] = None
            else:
                entered.add(name)
                calls = payments[name].calls
                waiting += [call for call, _ in calls if call in payments and call not in entered]
    return list(ordered)


def _times(payments: Mapping[str, Payment], order: list[str]) -> dict[str, int | None]:
    """Returns the most calls of each function in one evaluation; None if a loop may repeat it."""
    called = {callee for payment in payments.values() for callee, _ in payment.calls}
    total: dict[str, int | None] = {}
    for name in order:
        # A function that none calls is perhaps put in another's place.
        first = None if payments[name].repeats else 1
        total[name] = 0 if name in called else first
    for name in reversed(order):
        times = total[name]
        for callee, turns in payments[name].calls:
            before = total.get(callee)
            if before is not None:
                total[callee] = None if turns > 1 or times is None else before + times
    return total
