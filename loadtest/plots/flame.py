"""Flame graphs: folded stacks, one line each with its count, as an SVG of nested bars."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

WIDTH, ROW, PIXELS_MIN, CHARACTER = 1200.0, 17, 0.5, 6.6


@dataclass(slots=True)
class Frame:
    """A function as called from the one below it: samples in it and in what it called."""

    name: str
    samples: int = 0
    calls: dict[str, "Frame"] = field(default_factory=dict)

    def depth(self) -> int:
        """Returns the depth of the calls above this one."""
        return 1 + max((call.depth() for call in self.calls.values()), default=0)


def tree(folded: Iterable[str], *, below: str = "") -> Frame:
    """Stacks added up from the root; ``below`` leaves out the frames up to one of that name."""
    root = Frame("all")
    for line in folded:
        stack, _, count = line.rpartition(" ")
        if not stack:
            continue
        names = stack.split(";")
        for number, name in enumerate(names):
            if below and name.startswith(below):
                names = names[number:]
                break
        node = root
        node.samples += int(count)
        for name in names:
            node = node.calls.setdefault(name, Frame(name))
            node.samples += int(count)
    return root


def flame_graph(title: str, root: Frame) -> str:
    """The picture: wide is much, what calls stands below what it calls."""
    height = (root.depth() + 2) * ROW
    canvas = _Canvas(WIDTH / max(1, root.samples), height, max(1, root.samples))
    canvas.draw(root, 0.0, 0)
    body = "\n".join(canvas.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" '
        f'width="{WIDTH:.0f}" height="{height}" font-family="monospace" font-size="11">\n'
        f'<rect width="{WIDTH:.0f}" height="{height}" fill="#fff"/>\n'
        f'<text x="{WIDTH / 2:.0f}" y="13" text-anchor="middle">{escape(title)}</text>\n'
        f"{body}\n</svg>\n"
    )


@dataclass(slots=True)
class _Canvas:
    """The drawing so far; ``pixels`` is the width of a sample."""

    pixels: float
    height: int
    total: int
    parts: list[str] = field(default_factory=list)

    def draw(self, frame: Frame, x: float, level: int) -> None:
        """A frame, and above it what it called."""
        width = frame.samples * self.pixels
        if width < PIXELS_MIN:
            return
        y = self.height - (level + 1) * ROW
        part = 100 * frame.samples / self.total
        self.parts.append(
            f"<g><title>{escape(frame.name)}: {frame.samples} samples, {part:.1f} %</title>"
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" '
            f'fill="{_colour(frame.name)}"/>'
        )
        if (characters := int(width / CHARACTER)) > 3:
            label = escape(frame.name[:characters])
            self.parts.append(f'<text x="{x + 3:.1f}" y="{y + 12}">{label}</text>')
        self.parts.append("</g>")
        for call in sorted(frame.calls.values(), key=lambda one: one.name):
            self.draw(call, x, level + 1)
            x += call.samples * self.pixels


def _colour(name: str) -> str:
    """Warm, and always the same for a name."""
    number = zlib.crc32(name.encode())
    return f"rgb({205 + number % 50},{90 + number // 50 % 110},{number // 5500 % 60})"
