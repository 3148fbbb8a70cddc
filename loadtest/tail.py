"""Causes of a replica's slowest answers: ``python -m loadtest.tail NOTES serve …`` notes its work.

It runs `waddle` with these arguments. What keeps the thread that answers, or the interpreter, is noted
with its begin and end: reviews, garbage collection, policies that are read and compiled, scrapes, the
decision log. At its end NOTES gets a line for each. :func:`causes` lays them beside requests as a client
timed them, and :func:`drawing` draws the slowest. What is not noted is the rest: the network, TLS, HTTP,
and threads that wait for a core.
"""

import atexit
import functools
import gc
import json
import runpy
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

REVIEW = "reviews"
COLLECTION = "garbage collection"
REST = "the rest"

NOTED = {
    REVIEW: ("webhook.server.endpoint:ReviewEndpoint.respond",),
    "policies": ("webhook.policies.loader:PolicyLoader.load",),
    "compilation": (
        "webhook.constraint.drivers.rego:RegoDriver.compile",
        "webhook.constraint.drivers.rego:RegoDriver._specialise",
        "webhook.constraint.memo:Memo._derive",
    ),
    "scrapes": ("webhook.metrics.exposition:Exposition.render",),
    "decision log": (
        "webhook.decisions.exporter.exporter:Exporter.settle",
        "webhook.decisions.exporter.unix:_UnixConnection._written",
        "webhook.decisions.exporter.unix:_UnixConnection.data_received",
    ),
}
"""The functions of each cause; a call within another of the same cause is noted twice and counts once."""

COLOURS = {
    REVIEW: "#4a7fb5",
    "policies": "#c0504d",
    "compilation": "#e28b3d",
    COLLECTION: "#7b5ea7",
    "scrapes": "#3f9a7c",
    "decision log": "#b8a12e",
    REST: "#dddddd",
}
WIDTH, ROW, LEFT = 1100.0, 14, 90.0


class Note(NamedTuple):
    """A cause with its begin and end, in seconds since 1970."""

    cause: str
    began: float
    ended: float


class Slow(NamedTuple):
    """A request from when it was due to its answer, and the seconds of each cause within it."""

    due: float
    answered: float
    notes: tuple[Note, ...]
    seconds: dict[str, float]


def install(notes: list[Note]) -> None:
    """Have what is noted put down from now on."""
    for cause, places in NOTED.items():
        for place in places:
            module, _, path = place.partition(":")
            owner_name, _, name = path.partition(".")
            owner = getattr(import_module(module), owner_name)
            setattr(owner, name, _noting(getattr(owner, name), cause, notes))
    began = [0.0]

    def collected(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.time()
        else:
            notes.append(Note(COLLECTION, began[0], time.time()))

    gc.callbacks.append(collected)


def _noting(function: Callable[..., Any], cause: str, notes: list[Note]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*arguments: Any, **named: Any) -> Any:
        began = time.time()
        try:
            return function(*arguments, **named)
        finally:
            notes.append(Note(cause, began, time.time()))

    return noted


def slowest(samples: Path, started: float, share: float = 0.001) -> list[tuple[float, float]]:
    """The slowest requests of a generator's samples, each from when it was due to its answer."""
    rows = [list(map(int, line.split())) for line in samples.read_text().splitlines()]
    rows.sort(key=lambda row: -row[2])
    return [
        (started + due / 1e6, started + (due + latency) / 1e6)
        for due, _, latency in rows[: max(1, round(len(rows) * share))]
    ]


def causes(requests: Iterable[tuple[float, float]], notes: Sequence[Note]) -> list[Slow]:
    """Lay what was noted beside requests, in order of time.

    Time of a review in which something else was noted counts for that; other causes count for each.
    """
    found = []
    for due, answered in sorted(requests):
        within = tuple(
            Note(one.cause, max(one.began, due), min(one.ended, answered))
            for one in notes
            if one.began < answered and one.ended > due
        )
        others = _joined(one[1:] for one in within if one.cause != REVIEW)
        seconds = {
            cause: _length(_joined(one[1:] for one in within if one.cause == cause))
            for cause in dict.fromkeys(one.cause for one in within)
        }
        whole = _length(_joined(one[1:] for one in within))
        if REVIEW in seconds:
            seconds[REVIEW] = whole - _length(others)
        seconds[REST] = max(0.0, answered - due - whole)
        found.append(Slow(due, answered, within, seconds))
    return found


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same time without overlaps."""
    joined: list[tuple[float, float]] = []
    for began, ended in sorted(spans):
        if joined and began <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], ended)
        else:
            joined.append((began, ended))
    return joined


def _length(spans: Iterable[tuple[float, float]]) -> float:
    return sum(ended - began for began, ended in spans)


def table(found: Sequence[Slow]) -> list[str]:
    """A line for each cause: its share of the time of these requests."""
    sums: Counter[str] = Counter()
    for one in found:
        sums.update(one.seconds)
    whole = sum(one.answered - one.due for one in found) or 1.0
    return [f"{cause}: {seconds / whole:.0%}" for cause, seconds in sums.most_common()]


def drawing(title: str, found: Sequence[Slow]) -> str:
    """A row for each request, with what was done from when it was due to its answer."""
    longest = max((one.answered - one.due for one in found), default=1.0)
    pixels = (WIDTH - LEFT) / longest
    height = (len(found) + 3) * ROW
    parts = [f'<text x="{WIDTH / 2}" y="11" text-anchor="middle">{escape(title)}</text>']
    for number, (cause, colour) in enumerate(COLOURS.items()):
        x = LEFT + number * (WIDTH - LEFT) / len(COLOURS)
        parts.append(f'<rect x="{x:.1f}" y="{ROW + 2}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14:.1f}" y="{ROW + 11}">{escape(cause)}</text>')
    for number, one in enumerate(found):
        y = (number + 2) * ROW + 4
        spent = "; ".join(f"{cause} {1000 * took:.2f} ms" for cause, took in one.seconds.items())
        parts.append(f"<g><title>{escape(spent)}</title>")
        parts.append(f'<text x="4" y="{y + 10}">{1000 * (one.answered - one.due):.1f} ms</text>')
        rest = Note(REST, one.due, one.answered)
        for note in (rest, *sorted(one.notes, key=lambda each: each.cause != REVIEW)):
            x, width = LEFT + (note.began - one.due) * pixels, (note.ended - note.began) * pixels
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 3}" '
                f'fill="{COLOURS[note.cause]}"/>'
            )
        parts.append("</g>")
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" '
        f'width="{WIDTH:.0f}" height="{height}" font-family="monospace" font-size="10">\n'
        f'<rect width="{WIDTH:.0f}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def read(file: Path) -> list[Note]:
    """Reads what a replica noted."""
    return [Note(*json.loads(line)) for line in file.read_text().splitlines()]


def main(file: Path, arguments: Sequence[str]) -> None:
    """Run `waddle`, and write the notes at its end."""
    notes: list[Note] = []
    install(notes)
    atexit.register(lambda: file.write_text("".join(f"{json.dumps(one)}\n" for one in notes)))
    sys.argv = ["webhook", *arguments]
    runpy.run_module("webhook", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
