"""Long lists: a page of them, and what their filters may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

T = TypeVar("T")

PAGE_ROWS: Final = 100
CHOICES_MAX: Final = 200
"""Of one filter: those of which there are the most."""


def choices(counts: Counter[str], chosen: str) -> list[dict[str, Any]]:
    """Return the values of a filter, the most frequent first; the chosen one is there in any case."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:CHOICES_MAX]
    if chosen and chosen not in dict(ordered):
        ordered.append((chosen, counts[chosen]))
    return [{"value": value, "found": number} for value, number in ordered]


def page_of(
    rows: Sequence[T], number: int, size: int = PAGE_ROWS
) -> tuple[Sequence[T], dict[str, int]]:
    """The rows of a page, the first of which is 1, and where it stands among all."""
    position = position_of(len(rows), number, size)
    begin = (position["page"] - 1) * size
    return rows[begin : begin + size], position


def position_of(total: int, number: int, size: int, pages_max: int | None = None) -> dict[str, int]:
    """Where a page stands among all rows; the nearest that there is."""
    pages = max(1, -(-total // size))
    pages = pages if pages_max is None else min(pages, pages_max)
    page = min(max(1, number), pages)
    begin = (page - 1) * size
    return {
        "page": page,
        "pages": pages,
        "first": begin + 1 if total else 0,
        "last": min(begin + size, total),
        "total": total,
    }
