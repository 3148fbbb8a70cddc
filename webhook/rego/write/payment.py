"""Stage 5c: which functions pay for their loops always, and which only once a loop is long.

What most evaluations do is so little that counting it would cost more than it could
save. So loops of up to :data:`~webhook.rego.write.writer.FREE_TURNS` turns are free,
where all that can be done that way is little: with each of them at its longest, one
inside the other, and with what the functions do that they call. The first longer loop
makes the evaluation pay from there on (``P`` in a function, :data:`PAYS` between them):
for every turn, call, built-in and member, however short the loops after it are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.rego.write.writer import PAYS

if TYPE_CHECKING:
    from webhook.rego.write.unit import Unit

FREE_STEPS: Final = 40_000
"""What an evaluation may do for nothing: 2 ms at most, a fifth of what it has on the thread that
answers admissions (`docs/adr/0020`)."""

FREE_STEPS_REPEATED: Final = 4_000
"""The same for one call of a function that may be called any number of times. Whoever calls it
counts it as its own."""

STRAIGHT_STEPS: Final = 400
"""What may stand outside of loops in one call: a function that does more, with all that it calls,
pays for it when it begins."""

FUNCTIONS: Final = "fm"
"""Letters of what may be called any number of times; a document is computed once."""

_PAYS: Final = f"    P = {PAYS}"
_ALWAYS: Final = f"{_PAYS} = True; X = S[2]"

_PAY: Final = re.compile(r"( *)(?:if P.*?: )?(?:P = S\[\d\] = )?S\[2\]\.pay\((.*)\)")
"""A line that pays. Where it always does, what it calls is written in its place: half the time."""

_MARKS: Final = ("    # ", f"{_PAYS}  # ")


def mark(name: str, *, pays: bool) -> str:
    """The line of a function in whose place stands how it pays, once all functions are known."""
    return f"P = {PAYS}  # {name}" if pays else f"# {name}"


@dataclass(frozen=True, slots=True)
class Payment:
    """What one call of a function may cost, in steps."""

    free: int
    """Itself, while no loop is longer than its free turns."""
    straight: int
    """The part of it outside of loops: where loops pay, it is what remains unpaid."""
    calls: list[tuple[str, int]]
    """Functions called, and how often at most while loops are free."""
    pays: bool
    """Whether it has loops."""


def settle(unit: Unit) -> None:
    """Write at each function's beginning how it pays."""
    beginnings = _beginnings(unit.payments, 0 if unit.modifies else FREE_STEPS)
    lines: list[str] = []
    always = False
    for line in unit.lines:
        if line.startswith(_MARKS):
            beginning = beginnings[line.rpartition(" ")[2]]
            always = beginning[:1] == [_ALWAYS]
            lines.extend(beginning)
        elif line.startswith("def "):
            always = False
            lines.append(line)
        elif always and (found := _PAY.match(line)) is not None:
            indent, steps = found.groups()
            lines.append(f"{indent}X.left -= {steps}")
            lines.append(f"{indent}if X.left < X.next_check: X.check()")
        else:
            lines.append(line)
    unit.lines = lines


def _beginnings(payments: dict[str, Payment], rest: int) -> dict[str, list[str]]:
    """The lines at each function's beginning, where ``rest`` steps may be free."""
    found: dict[str, list[str]] = {}
    order = _callees_first(payments)
    often = _times(payments, order)
    unpaid: dict[str, tuple[int, int]] = {}  # what callers count: loops being free, and paying
    for name in order:
        payment, times = payments[name], often[name]
        free, straight = payment.free, payment.straight
        for callee, turns in payment.calls:
            steps, outside = unpaid.get(callee, (0, 0))
            free += steps * turns
            if turns == 1:
                straight += outside
        lines = [_PAYS] if payment.pays else []
        if times is not None and free * times <= rest:
            rest -= free * times
            free = 0
        elif name[0] not in FUNCTIONS or free > FREE_STEPS_REPEATED:
            free = straight
            lines = [_ALWAYS] if payment.pays else [f"    {PAYS} = True"]
        if straight > STRAIGHT_STEPS:
            lines.append(f"    S[2].pay({straight})")
            free, straight = max(free - straight, 0), 0
        unpaid[name] = free, straight
        found[name] = lines
    return found


def _callees_first(payments: dict[str, Payment]) -> list[str]:
    """All names in an order in which a function comes after those that it calls."""
    found: dict[str, None] = {}
    entered: set[str] = set()
    for first in payments:
        waiting = [first]
        while waiting:
            name = waiting[-1]
            if name in entered:
                waiting.pop()
                found[name] = None
            else:
                entered.add(name)
                calls = payments[name].calls
                waiting += [one for one, _ in calls if one in payments and one not in entered]
    return list(found)


def _times(payments: dict[str, Payment], order: list[str]) -> dict[str, int | None]:
    """How often each is called in one evaluation at most; None where a loop may repeat it."""
    called = {callee for payment in payments.values() for callee, _ in payment.calls}
    found: dict[str, int | None] = {}
    for name in order:
        # A function that none calls is perhaps put in another's place.
        first = None if name[0] in FUNCTIONS else 1
        found[name] = 0 if name in called else first
    for name in reversed(order):
        times = found[name]
        for callee, turns in payments[name].calls:
            before = found.get(callee)
            if before is not None:
                found[callee] = None if turns > 1 or times is None else before + times
    return found
