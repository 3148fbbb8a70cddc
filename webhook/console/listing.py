"""Long lists: their pages, and the values of their filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

T = TypeVar("T")

PAGE_ROWS: Final = 100
CHOICES_MAX: Final = 200
"""The most values of one filter; the most frequent ones are kept."""


def choices(counts: Counter[str], chosen: str) -> list[dict[str, Any]]:
    """Returns the values of a filter, the most frequent first; always includes the chosen value."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:CHOICES_MAX]
    if chosen and chosen not in dict(ordered):
        ordered.append((chosen, counts[chosen]))
    return [{"value": value, "found": number} for value, number in ordered]


def page_of(
    rows: Sequence[T], number: int, size: int = PAGE_ROWS
) -> tuple[Sequence[T], dict[str, int]]:
    """Returns the rows of a page, and its position in the list. The first page is 1."""
    position = position_of(len(rows), number, size)
    begin = (position["page"] - 1) * size
    return rows[begin : begin + size], position


def position_of(total: int, number: int, size: int, pages_max: int | None = None) -> dict[str, int]:
    """Returns the position of a page in the list, or of the nearest existing page."""
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
