"""Compares two texts character by character, and colours the result as ``opa fmt --diff`` does.

The algorithm is that of Myers, from both ends, with the shortcuts of OPA's library. The shortcuts
decide between several equally short differences.
"""

from __future__ import annotations

import time
from typing import Final

_DEADLINE_SECONDS: Final = 10.0
"""The time of a comparison at most, in seconds. A text that takes longer (some 30 KB with changed
indentation only) is shown as deleted and inserted as a whole."""

_COLOURS: Final = {1: "\x1b[32m", -1: "\x1b[31m"}
_PLAIN: Final = "\x1b[0m"

Edits = list[tuple[int, str]]
"""Texts, each inserted (1), deleted (-1) or equal (0)."""


def coloured(before: str, after: str) -> str:
    """Returns the difference with green insertions and red deletions."""
    parts = _compared(before, after, time.monotonic() + _DEADLINE_SECONDS)
    return "".join(_coloured(kind, text) for kind, text in parts)


def _coloured(kind: int, text: str) -> str:
    if not kind:
        return text
    return "\n".join(f"{_COLOURS[kind]}{line}{_PLAIN}" for line in text.split("\n"))


def _prefix(first: str, other: str) -> int:
    alike = min(len(first), len(other))
    if first[:alike] == other[:alike]:
        return alike
    return next(at for at in range(alike) if first[at] != other[at])


def _suffix(first: str, other: str) -> int:
    return _prefix(first[::-1], other[::-1])


def _compared(before: str, after: str, deadline: float) -> Edits:
    if before == after:
        return [(0, before)] if before else []
    start = _prefix(before, after)
    end = _suffix(before[start:], after[start:])
    middle = _middle(before[start : len(before) - end], after[start : len(after) - end], deadline)
    parts = [(0, before[:start])] if start else []
    parts += middle
    if end:
        parts.append((0, before[len(before) - end :]))
    return _merged(parts)


def _middle(before: str, after: str, deadline: float) -> Edits:
    """Returns the differences of texts without a common beginning or end."""
    if not before or not after:
        return [(1, after)] if after else [(-1, before)]
    long, short = (before, after) if len(before) > len(after) else (after, before)
    kind = -1 if len(before) > len(after) else 1
    at = long.find(short)
    if at >= 0:
        return [(kind, long[:at]), (0, short), (kind, long[at + len(short) :])]
    if len(short) == 1:
        return [(-1, before), (1, after)]
    half = _half(before, after)
    if half is not None:
        first, second, common = half
        left = _compared(*first, deadline)
        return [*left, (0, common), *_compared(*second, deadline)]
    return _bisected(before, after, deadline)


def _half(before: str, after: str) -> tuple[tuple[str, str], tuple[str, str], str] | None:
    """Returns a common text of half the longer text's length, and the texts around it."""
    long, short = (before, after) if len(before) > len(after) else (after, before)
    if len(long) < 4 or len(short) * 2 < len(long):
        return None
    quarter = _seeded(long, short, (len(long) + 3) // 4)
    half = _seeded(long, short, (len(long) + 1) // 2)
    longer = half if quarter is None or (half and len(quarter[4]) <= len(half[4])) else quarter
    if longer is None:
        return None
    long_left, long_right, short_left, short_right, common = longer
    if len(before) > len(after):
        return (long_left, short_left), (long_right, short_right), common
    return (short_left, long_left), (short_right, long_right), common


def _seeded(long: str, short: str, at: int) -> tuple[str, str, str, str, str] | None:
    """Returns the longest common text around a quarter of the longer text, and its surroundings."""
    seed = long[at : at + len(long) // 4]
    best: tuple[str, str, str, str, str] = ("", "", "", "", "")
    at_short = short.find(seed)
    while at_short >= 0:
        right = _prefix(long[at:], short[at_short:])
        left = _suffix(long[:at], short[:at_short])
        if len(best[4]) < left + right:
            common = short[at_short - left : at_short + right]
            ends = long[: at - left], long[at + right :]
            best = (*ends, short[: at_short - left], short[at_short + right :], common)
        at_short = short.find(seed, at_short + 1)
    return best if len(best[4]) * 2 >= len(long) else None


def _bisected(before: str, after: str, deadline: float) -> Edits:
    """Splits the texts where the paths from both ends meet, and compares the halves."""
    met = _Ways(before, after).meet(deadline)
    if met is None:
        return [(-1, before), (1, after)]
    x, y = met
    left = _compared(before[:x], after[:y], deadline)
    return [*left, *_compared(before[x:], after[y:], deadline)]


class _Way:
    """The furthest places reached from one end, on each diagonal."""

    def __init__(self, before: str, after: str, most: int) -> None:
        self.before, self.after = before, after
        self.middle = most
        self.reached = [-1] * (2 * most + 2)
        self.reached[most + 1] = 0
        self.first = self.last = 0

    def step(self, steps: int, diagonal: int) -> tuple[int, int]:
        """Goes one step further, then along equal characters; returns the place."""
        reached, at = self.reached, self.middle + diagonal
        down = diagonal == -steps or (diagonal != steps and reached[at - 1] < reached[at + 1])
        x = reached[at + 1] if down else reached[at - 1] + 1
        y = x - diagonal
        before, after = self.before, self.after
        while x < len(before) and y < len(after) and before[x] == after[y]:
            x += 1
            y += 1
        reached[at] = x
        return x, y


class _Ways:
    """The searches from both ends."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after = before, after
        self.most = (len(before) + len(after) + 1) // 2
        self.front = _Way(before, after, self.most)
        self.back = _Way(before[::-1], after[::-1], self.most)
        self.delta = len(before) - len(after)

    def meet(self, deadline: float) -> tuple[int, int] | None:
        """Returns the place where they meet; None without one, or after the deadline."""
        for steps in range(self.most):
            if steps % 16 == 0 and time.monotonic() > deadline:
                return None
            met = self._walk(self.front, steps, is_front=True) or self._walk(
                self.back, steps, is_front=False
            )
            if met is not None:
                return met
        return None

    def _walk(self, way: _Way, steps: int, *, is_front: bool) -> tuple[int, int] | None:
        looks = (self.delta % 2 != 0) == is_front
        diagonal = -steps + way.first
        while diagonal <= steps - way.last:
            x, y = way.step(steps, diagonal)
            if x > len(self.before):
                way.last += 2
            elif y > len(self.after):
                way.first += 2
            elif looks and (met := self._met(x, diagonal, is_front=is_front)) is not None:
                return met
            diagonal += 2
        return None

    def _met(self, x: int, diagonal: int, *, is_front: bool) -> tuple[int, int] | None:
        other = self.back if is_front else self.front
        across = self.delta - diagonal
        at = self.most + across
        if not 0 <= at < 2 * self.most or other.reached[at] == -1:
            return None
        far = other.reached[at]
        if x < len(self.before) - far:
            return None
        return (x, x - diagonal) if is_front else (far, far - across)


def _merged(parts: Edits) -> Edits:
    """Joins neighbours of one kind, and moves their common beginnings and ends into equal texts."""
    while True:
        shifted, changed = _shifted(_factored(parts))
        if not changed:
            return shifted
        parts = shifted


def _factored(parts: Edits) -> Edits:
    """Reduces the edits between two equal texts to one deletion and one insertion."""
    done: Edits = []
    changes: Edits = []
    for kind, parts_text in [*parts, (0, "")]:
        text = parts_text
        if kind:
            changes.append((kind, text))
            continue
        if not changes:
            _equal(done, text)
            continue
        if len(changes) > 1:
            start, changes, end = _as_two(changes)
            if start:
                _equal(done, start)
            text = end + text
        done += [*changes, (0, text)]
        changes = []
    return done if done[-1][1] else done[:-1]


def _as_two(changes: Edits) -> tuple[str, Edits, str]:
    """Returns the common beginning, at most two changes, and the common end."""
    kinds = {kind for kind, _ in changes}
    deleted = "".join(text for kind, text in changes if kind < 0)
    inserted = "".join(text for kind, text in changes if kind > 0)
    start = _prefix(inserted, deleted)
    first, inserted, deleted = inserted[:start], inserted[start:], deleted[start:]
    end = len(inserted) - _suffix(inserted, deleted)
    last, deleted = inserted[end:], deleted[: len(deleted) - (len(inserted) - end)]
    both = [(-1, deleted), (1, inserted[:end])]
    return first, [edit for edit in both if edit[0] in kinds], last


def _equal(parts: Edits, text: str) -> None:
    """Appends to the equal text at the end, or begins one."""
    if parts and parts[-1][0] == 0:
        parts[-1] = (0, parts[-1][1] + text)
    else:
        parts.append((0, text))


def _shifted(parts: Edits) -> tuple[Edits, bool]:
    """Shifts a single change over an equal neighbour if that removes the neighbour."""
    changed, at = False, 1
    while at < len(parts) - 1:
        (left_kind, left), (kind, text), (right_kind, right) = parts[at - 1 : at + 2]
        if left_kind == 0 and right_kind == 0:
            if text.endswith(left):
                moved = left + text[: len(text) - len(left)]
                parts[at - 1 : at + 2] = [(kind, moved), (0, left + right)]
                changed = True
            elif text.startswith(right):
                moved = text[len(right) :] + right
                parts[at - 1 : at + 2] = [(0, left + right), (kind, moved)]
                changed = True
        at += 1
    return parts, changed
