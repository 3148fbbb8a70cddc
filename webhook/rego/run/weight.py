"""The weight of a value: the steps of work that a walk through it takes, known before the walk.

Values share their parts: ``c1 := [c0, c0]``, ``c2 := [c1, c1]`` and so on is small in memory, and
its text is twice as long with every line. So code that writes a value as text, or visits all of it
(keys, comparisons, merging), weighs the value first. A weight counts a shared part as often as it
occurs.

There are three cases:

1. Up to :data:`FREE_STEPS` the walk is free.
2. Up to :data:`MAX_STEPS` the weight is charged to the evaluation, as any other step of it.
3. Beyond, ``eval_cancel_error`` ends the evaluation, whatever is left of its budget.

A value of at most :data:`PLAIN_PARTS` parts is weighed by a plain walk. For a larger one
:func:`_shared_steps` visits each part once and multiplies, so that weighing takes time with the
parts in memory, and not with the length of the text.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.errors import GENERATED, EvaluationError
from webhook.slices import in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from webhook.rego.run.limits import EvaluationContext

NODE_STEPS: Final = 8
"""The steps for one part of a value: 0.4 µs in most walks."""

COLLECTION_PARTS: Final = 5
"""Of an array, object or set, in parts and beside its members: its key takes 4 µs."""

CHARACTERS_A_STEP: Final = 8
"""Characters of a string that one step writes."""

BITS_A_STEP: Final = 1
"""Bits of an integer beyond 64 bits that one step writes: time grows faster than the digits."""

FREE_STEPS: Final = 256
"""The weight that is free: some twenty parts or 2,000 characters, 10 µs at most."""

PLAIN_PARTS: Final = 1000
"""The most parts that a plain walk counts; it is faster than looking for shared parts."""

MAX_STEPS: Final = 1 << 21
"""The most that may be walked or written at once: 262,144 scalars, 40,000 collections, or the
longest string that may be made. It takes a tenth of a second or two and some 30 MB. An object of
1.5 MB, the largest that an API server stores, has 20,000 collections."""

WEIGHED_AT_ONCE: Final = 512
"""Members that are gone through before their steps are charged."""

PAID_STEPS: Final = 1 << 15
"""The steps of weighing between two looks at the clock: some two milliseconds."""

WALKED_STEPS: Final = 1 << 24
"""The most steps of a walk that keeps nothing of the visited parts, such as the built-in ``walk``.
"""


PART_CHARACTERS: Final = NODE_STEPS * CHARACTERS_A_STEP
COLLECTION_CHARACTERS: Final = COLLECTION_PARTS * PART_CHARACTERS
_PLAIN_CHARACTERS: Final = PLAIN_PARTS * PART_CHARACTERS

FREE_CHARACTERS: Final = FREE_STEPS * CHARACTERS_A_STEP
""":data:`FREE_STEPS` in characters."""

SHORT: Final = 1 << 64
"""Integers below it weigh as any scalar."""

SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def afford_tree(value: Any, most: int = MAX_STEPS) -> None:
    """Charges a walk through a value; a string or number counts as one part.

    Raises ``eval_cancel_error``.
    """
    steps = _plain_steps(value)
    if steps < 0:
        _shared_steps(value, most, texts=False, pay=charge)
    elif steps > FREE_STEPS:
        charge(steps)


def afford_text(value: Any) -> None:
    """Charges writing a value as text; raises ``eval_cancel_error``."""
    steps = text_steps(value)
    if steps > FREE_STEPS:
        charge(steps)


def afford_smaller(a: Any, b: Any) -> None:
    """Charges a comparison, which ends where the smaller of both ends; a scalar is compared at once.

    Raises ``eval_cancel_error`` where both are too large.
    """
    if type(a) in SCALARS or type(b) in SCALARS:
        return
    a_steps, b_steps = _plain_steps(a), _plain_steps(b)
    if 0 <= a_steps <= FREE_STEPS or 0 <= b_steps <= FREE_STEPS:
        return
    if a_steps < 0:
        try:
            a_steps = _shared_steps(a, MAX_STEPS, texts=False)
        except EvaluationError:
            a_steps = MAX_STEPS
            if b_steps < 0:
                b_steps = tree_steps(b)
    charge(a_steps if b_steps < 0 else min(a_steps, b_steps))


def tree_steps(value: Any) -> int:
    """Weigh an array, object or set without its texts.

    Raises ``eval_cancel_error`` beyond :data:`MAX_STEPS`.
    """
    steps = _plain_steps(value)
    return _shared_steps(value, MAX_STEPS, texts=False) if steps < 0 else steps


def _plain_steps(value: Any) -> int:
    """Weigh a value without its texts; -1 where it has more than :data:`PLAIN_PARTS` parts."""
    steps_left = PLAIN_PARTS
    waiting = [value]
    for item in waiting:
        kind = type(item)
        if kind is list:
            members = item
        elif kind is dict:
            members = item.values()
        else:
            members = _members(item)
        steps_left -= len(members) + COLLECTION_PARTS
        if steps_left < 0:
            return -1
        for member in members:
            if type(member) not in SCALARS:
                waiting.append(member)  # noqa: PERF401  # without a list for each
    return (PLAIN_PARTS - steps_left) * NODE_STEPS


def text_steps(value: Any) -> int:
    """Weigh any value with the lengths of its strings and numbers; raises as :func:`tree_steps`."""
    if type(value) in SCALARS:
        return _scalar_steps(value)
    characters_left = _PLAIN_CHARACTERS
    waiting = [value]
    for item in waiting:
        kind = type(item)
        if kind is dict:
            characters_left -= len("".join(item))
            members = item.values()
        elif kind is list:
            members = item
        else:
            members = _members(item)
        characters_left -= len(members) * PART_CHARACTERS + COLLECTION_CHARACTERS
        if characters_left < 0:
            return _shared_steps(value, MAX_STEPS, texts=True)
        for member in members:
            kind = type(member)
            if kind is str:
                characters_left -= len(member)
            elif kind not in SCALARS:
                waiting.append(member)
            elif kind is int and not -SHORT < member < SHORT:
                characters_left -= member.bit_length() * CHARACTERS_A_STEP // BITS_A_STEP
    if characters_left < 0:
        return _shared_steps(value, MAX_STEPS, texts=True)
    return (_PLAIN_CHARACTERS - characters_left) // CHARACTERS_A_STEP


def _members(item: Any) -> Collection[Any]:
    """Returns the members of a collection; a scalar has none, nor has an instance of a subclass."""
    if isinstance(item, (int, float, str)):
        return ()
    if type(item) is list:
        return item
    members: Collection[Any] = item.values() if type(item) is dict else item.parts()
    return members


def _scalar_steps(value: Any) -> int:
    kind = type(value)
    if kind is str:
        return NODE_STEPS + len(value) // CHARACTERS_A_STEP
    bits: int = value.bit_length() if kind is int else 0
    return NODE_STEPS + bits // BITS_A_STEP if bits > 64 else NODE_STEPS


def _shared_steps(
    value: Any, most: int, *, texts: bool, pay: Callable[[int], None] | None = None
) -> int:
    """Weighs a value with shared parts: each is visited once and counted at each occurrence.

    ``pay`` charges the steps of the visited parts, on the way and at the end.
    """
    known: dict[int, int] = {}
    looked_at = (1 + COLLECTION_PARTS) * NODE_STEPS
    paid = 0
    # A collection whose members are known stands below the mark. There are no pairs of both: a
    # million would be 56 MB, and would have the interpreter look for garbage in them.
    waiting = [value]
    while waiting:
        item = waiting.pop()
        is_ready = item is _READY
        if is_ready:
            item = waiting.pop()
        if id(item) in known:
            continue
        members = _members(item)
        if not is_ready:
            waiting += (item, _READY)
            for part in (
                (members,)
                if len(members) <= WEIGHED_AT_ONCE
                else in_slices(members, WEIGHED_AT_ONCE)
            ):
                within = [member for member in part if type(member) not in SCALARS]
                # Each occurrence weighs at least that much.
                looked_at += (len(part) + len(within) * COLLECTION_PARTS) * NODE_STEPS
                if looked_at > most:
                    raise too_heavy()
                if pay is not None and looked_at - paid > PAID_STEPS:
                    pay(looked_at - paid)
                    paid = looked_at
                waiting += within
            continue
        steps = (1 + COLLECTION_PARTS) * NODE_STEPS
        if texts and type(item) is dict:
            steps += len("".join(item)) // CHARACTERS_A_STEP
        for member in members:
            if type(member) not in SCALARS:
                steps += known[id(member)]
            else:
                steps += _scalar_steps(member) if texts else NODE_STEPS
        if steps > most:
            raise too_heavy()
        known[id(item)] = steps
    if pay is not None:
        pay(known[id(value)] - paid)
    return known[id(value)]


_READY: Final = object()
"""The mark behind a collection in the list, whose members have been weighed."""


def too_heavy() -> EvaluationError:
    """Returns the error that ends an evaluation with a value beyond its bound."""
    return EvaluationError(
        "eval_cancel_error", "evaluation met a value too large to be compared or written"
    )


def charge(steps: int) -> None:
    """Charges steps to the evaluation that runs on this thread; do nothing where none runs.

    The evaluation is found in the frame of the generated code that led here. Passing it to each set
    and comparison would cost every evaluation, and only large values come here.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001  # CPython's documented way to a caller
    while frame is not None:
        if frame.f_code.co_filename == GENERATED:
            state = frame.f_locals.get("S")
            if state is not None:
                context: EvaluationContext = state[2]
                context.charge(steps)
                return
        frame = frame.f_back
