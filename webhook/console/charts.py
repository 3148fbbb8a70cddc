"""Charts as numbers of an SVG: a template draws them, without a style that a page's policy forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 640
_ROW: Final = 26
_LABEL: Final = 264
_NUMBER: Final = 60
_LABEL_CHARACTERS: Final = 32
"""At 8 each there is room for them; a wider label is cut where its bar begins."""


def bars(rows: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Horizontal bars, each with its label and number."""
    most = max((number for _, number in rows), default=0) or 1
    room = WIDTH - _LABEL - _NUMBER
    return {
        "width": WIDTH,
        "height": _ROW * len(rows),
        "bars": [
            {
                "label": _short(label),
                "full": label,
                "number": number,
                "x": _LABEL,
                "y": index * _ROW + 4,
                "width": round(room * number / most, 1),
                "height": _ROW - 8,
                "baseline": index * _ROW + _ROW // 2 + 4,
            }
            for index, (label, number) in enumerate(rows)
        ],
    }


def columns(numbers: Sequence[int], height: int = 80) -> dict[str, Any]:
    """One column for each number, as for each minute of an hour; there is one at least."""
    most = max(numbers) or 1
    step = WIDTH / len(numbers)
    return {
        "width": WIDTH,
        "height": height,
        "most": max(numbers),
        "columns": [
            {
                "x": round(index * step, 1),
                "y": round(height - height * number / most, 1),
                "width": round(step * 0.8, 1),
                "height": round(height * number / most, 1),
                "number": number,
                "ago": len(numbers) - 1 - index,
            }
            for index, number in enumerate(numbers)
        ],
    }


def _short(label: str) -> str:
    if len(label) <= _LABEL_CHARACTERS:
        return label
    return f"{label[: _LABEL_CHARACTERS - 1]}…"
