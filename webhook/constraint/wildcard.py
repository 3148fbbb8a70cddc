"""Gatekeeper's wildcards: names with a ``*`` at the beginning, the end or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

WILDCARD: Final = "*"
"""The wildcard for every name, group, kind or operation."""

FEW: Final = 16
"""Up to this many patterns with ``*`` are tried one by one, in 4 µs; an index takes no less."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches.

    ``*x*`` by containing x, ``*x`` by its end, ``x*`` by its beginning, ``x`` exactly.
    """
    if pattern.startswith("*"):
        if pattern.endswith("*"):
            return pattern[1:].removesuffix("*") in name
        return name.endswith(pattern[1:])
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern


def matches_generate_name(pattern: str, prefix: str) -> bool:
    """Whether every name generated from a prefix matches: the pattern must end in ``*``."""
    return pattern.endswith("*") and matches(pattern, prefix)


def no_name(name: str) -> bool:
    """The test of no patterns. Callers may compare with it, to spare the look-up of a name."""
    del name
    return False


def any_of(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Compiles patterns into one test; plain names cost one look-up together."""
    if not patterns:
        return no_name
    plain = frozenset(pattern for pattern in patterns if "*" not in pattern)
    wild = tuple(pattern for pattern in patterns if "*" in pattern)
    if not wild:
        return plain.__contains__

    if len(wild) > FEW:
        return _indexed(plain, wild)

    def test(name: str) -> bool:
        return name in plain or any(matches(pattern, name) for pattern in wild)

    return test


def _indexed(plain: frozenset[str], wild: Sequence[str]) -> Callable[[str], bool]:
    """Returns the test of many patterns.

    Its cost depends on the name's length, not on their number.
    """
    within = {
        pattern[1:].removesuffix("*")
        for pattern in wild
        if pattern.startswith("*") and pattern.endswith("*")
    }
    ends = {
        pattern[1:] for pattern in wild if pattern.startswith("*") and not pattern.endswith("*")
    }
    beginnings = {
        pattern[:-1] for pattern in wild if pattern.endswith("*") and not pattern.startswith("*")
    }
    # A star that stands inside is a character like others.
    whole = plain.union(
        pattern for pattern in wild if not pattern.startswith("*") and not pattern.endswith("*")
    )
    lengths = [sorted({len(text) for text in texts}) for texts in (within, ends, beginnings)]

    def test(name: str) -> bool:
        size = len(name)
        return (
            name in whole
            or any(name[:length] in beginnings for length in lengths[2] if length <= size)
            or any(name[size - length :] in ends for length in lengths[1] if length <= size)
            or any(
                name[at : at + length] in within
                for length in lengths[0]
                for at in range(size - length + 1)
            )
        )

    return test
