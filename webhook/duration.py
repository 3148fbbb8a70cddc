"""Durations as Go writes them: ``1h30m``, ``500ms``, ``0`` (``time.ParseDuration``)."""

from __future__ import annotations

import re
from typing import Final

NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,  # a Greek mu: Go reads both
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
"""The nanoseconds of each unit."""

_INT64: Final = 1 << 63
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)


class InvalidDuration(ValueError):
    """A text is no duration; ``unit`` is an unknown unit, or None for another fault."""

    def __init__(self, unit: str | None = None) -> None:
        """``unit`` is None if the unit is not the fault."""
        super().__init__("invalid duration" if unit is None else f"unknown unit {unit!r}")
        self.unit = unit


class TooLongDuration(InvalidDuration):
    """A duration exceeds 64 bits of nanoseconds: more than 292 years."""


def parse_duration(text: str) -> int:
    """Returns the nanoseconds, in 64 bits.

    Raises :class:`InvalidDuration`, :class:`TooLongDuration`.
    """
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return 0
    if not rest:
        raise InvalidDuration
    total = 0
    while rest:
        match = _PART.match(rest)
        assert match, "every part of it may be empty"
        whole, part, unit = match.groups()
        if not whole and not part:
            raise InvalidDuration
        if whole and int(whole[:25]) > _INT64:
            raise TooLongDuration
        size = NANOSECONDS.get(unit)
        if size is None:
            raise InvalidDuration(unit)
        total += int(whole or "0") * size
        if part:
            total += _fraction(part, size)
        if total > _INT64:
            raise TooLongDuration
        rest = rest[match.end() :]
    if text[0] == "-":
        return -total
    if total == _INT64:
        raise TooLongDuration
    return total


def duration_seconds(text: str, *, too_long: float | None = None) -> float | None:
    """Returns the seconds of a Go duration (``3s``, ``1m0s``, ``500ms``, ``0``).

    None for other texts. A duration with a sign gives None too: no setting may be negative. A
    duration beyond 64 bits of nanoseconds gives ``too_long``.
    """
    if text[:1] in {"+", "-"}:
        return None
    try:
        return parse_duration(text) / 1e9
    except TooLongDuration:
        return too_long
    except InvalidDuration:
        return None


def shown(ns: int) -> str:
    """Returns a span of time as Go writes it: ``1h30m0s``, ``1.5ms``."""
    size = abs(ns)
    sign = "-" if ns < 0 else ""
    for unit in ("ns", "\u00b5s", "ms"):
        if 0 < size < NANOSECONDS[unit] * 1_000:
            return f"{sign}{_decimal(size, NANOSECONDS[unit])}{unit}"
    minutes, rest = divmod(size, NANOSECONDS["m"])
    text = f"{_decimal(rest, NANOSECONDS['s'])}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
    return f"{sign}{minutes // 60}h{text}" if minutes >= 60 else f"{sign}{text}"


def _decimal(size: int, unit: int) -> str:
    whole, rest = divmod(size, unit)
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _fraction(digits: str, size: int) -> int:
    """Returns a fraction of a unit in floating point, with all digits that fit, as in Go."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (_INT64 - 1) // 10 or value * 10 + int(digit) > _INT64:
            break
        value, scale = value * 10 + int(digit), scale * 10
    return int(float(value) * (float(size) / scale))
