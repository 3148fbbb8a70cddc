"""Charts as SVG text: lines over a scale, and bars in groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from loadtest.plots.scale import Scale, shown

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 72
COLOURS = ("#1b6ca8", "#c0392b", "#7f8c8d", "#27ae60", "#8e44ad", "#d68910")


@dataclass(frozen=True, slots=True)
class Series:
    """A name and its points, in order of x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axes:
    """The titles and scales of a plot."""

    title: str
    x: str
    y: str
    x_logarithmic: bool = False
    y_logarithmic: bool = False


def lines(axes: Axes, series: Sequence[Series]) -> str:
    """A chart of lines with a mark at each point."""
    drawn = [one for one in series if one.points]
    across = Scale.of(
        (x for one in drawn for x, _ in one.points),
        LEFT,
        WIDTH - RIGHT,
        logarithmic=axes.x_logarithmic,
    )
    up = Scale.of(
        (y for one in drawn for _, y in one.points),
        HEIGHT - BOTTOM,
        TOP,
        logarithmic=axes.y_logarithmic,
    )
    parts = [*_frame(axes), *_grid(up), *_x_ticks(across), *_legend([one.name for one in drawn])]
    for number, one in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        places = [(across.place(x), up.place(y)) for x, y in one.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (value_x, value_y) in zip(places, one.points, strict=True):
            label = escape(f"{one.name}: {shown(value_x)}, {shown(value_y)}")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}">'
                f"<title>{label}</title></circle>"
            )
    return _document(parts)


def bars(axes: Axes, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """A chart of groups of bars, each with its number above it."""
    up = Scale.of(
        (value for _, values in series for value in values),
        HEIGHT - BOTTOM,
        TOP,
        logarithmic=axes.y_logarithmic,
    )
    parts = [*_frame(axes), *_grid(up), *_legend([name for name, _ in series])]
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = room * 0.8 / max(1, len(series))
    floor = up.place(up.low)
    for group, name in enumerate(groups):
        middle = LEFT + room * (group + 0.5)
        parts.append(_text(middle, HEIGHT - BOTTOM + 16, name))
        for number, (_, values) in enumerate(series):
            x = LEFT + room * (group + 0.1) + width * number
            y = up.place(values[group])
            colour = COLOURS[number % len(COLOURS)]
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.92:.1f}" '
                f'height="{max(0.0, floor - y):.1f}" fill="{colour}"/>'
            )
            parts.append(_text(x + width * 0.46, y - 4, shown(values[group]), size=10))
    return _document(parts)


def _document(parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _frame(axes: Axes) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        _text(WIDTH / 2, 18, axes.title, size=13),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, axes.x),
        _upright(middle, axes.y),
    ]


def _upright(y: float, text: str) -> str:
    turned = f'transform="rotate(-90 14 {y:.0f})"'
    return f'<text x="14" y="{y:.0f}" text-anchor="middle" {turned}>{escape(text)}</text>'


def _grid(up: Scale) -> list[str]:
    parts = []
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, shown(tick), anchor="end"))
    return parts


def _x_ticks(across: Scale) -> list[str]:
    return [_text(across.place(tick), HEIGHT - BOTTOM + 16, shown(tick)) for tick in across.ticks()]


def _legend(names: Sequence[str]) -> list[str]:
    parts, x = [], float(LEFT)
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<rect x="{x:.0f}" y="{HEIGHT - 18}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(_text(x + 14, HEIGHT - 9, name, anchor="start"))
        x += 30 + 6.2 * len(name)
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )
