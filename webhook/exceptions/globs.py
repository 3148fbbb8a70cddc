"""Matches names and texts with ``*`` for any text, at any place."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def glob(pattern: str) -> Callable[[str], bool]:
    """Returns the test of one pattern; its time is linear in the text, for any number of ``*``."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern.__eq__
    *between, last = rest

    def test(text: str) -> bool:
        if not text.startswith(first) or not text.endswith(last):
            return False
        at, end = len(first), len(text) - len(last)
        for part in between:
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return at <= end

    return test


def any_glob(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Returns the test whether one of the patterns matches."""
    tests = tuple(glob(pattern) for pattern in patterns)
    return lambda text: any(test(text) for test in tests)


def globs_overlap(first: str, other: str) -> bool:
    """Whether some text matches both patterns."""
    reached = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        at, its = waiting.pop()
        if (at, its) == (len(first), len(other)):
            return True
        mine, theirs = first[at : at + 1], other[its : its + 1]
        steps = []
        if mine == "*":
            steps += [(at + 1, its), *([(at, its + 1)] if theirs else [])]
        if theirs == "*":
            steps += [(at, its + 1), *([(at + 1, its)] if mine else [])]
        if mine and mine == theirs:
            steps.append((at + 1, its + 1))
        new = [step for step in steps if step not in reached]
        reached.update(new)
        waiting += new
    return False
