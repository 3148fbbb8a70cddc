"""Names with a ``*`` in front, at the end or at both: Gatekeeper's wildcard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def matches(pattern: str, name: str) -> bool:
    """``*x*`` is contained in the name, ``*x`` ends it, ``x*`` begins it, ``x`` is it."""
    if pattern.startswith("*"):
        if pattern.endswith("*"):
            return pattern[1:].removesuffix("*") in name
        return name.endswith(pattern[1:])
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern


def matches_generate_name(pattern: str, prefix: str) -> bool:
    """Whether every name generated from this prefix matches: the pattern must end in ``*``."""
    return pattern.endswith("*") and matches(pattern, prefix)


def any_of(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Compile patterns into one test; plain names cost one look-up together."""
    plain = frozenset(pattern for pattern in patterns if "*" not in pattern)
    wild = tuple(pattern for pattern in patterns if "*" in pattern)
    if not wild:
        return plain.__contains__

    def test(name: str) -> bool:
        return name in plain or any(matches(pattern, name) for pattern in wild)

    return test
