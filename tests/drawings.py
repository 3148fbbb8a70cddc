"""``python -m tests.drawings``: the drawn pictures in docs/pictures, of boxes and arrows, as SVG.

A picture is a file that every reader of Markdown shows, with no script and nothing from elsewhere.
A test compares what is there with what is drawn.
"""

import sys
from dataclasses import dataclass
from html import escape

from tests.programs import ROOT

PICTURES = ROOT / "docs" / "pictures"

LINE = 18
CHARACTER = 7.3
"""Width of a letter of 13 pixels, generously."""

STYLE = """
:root { --ground: #ffffff; --text: #17202a; --line: #4a5562; --box: #eef3f8; --ours: #d7e6f5; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12171c; --text: #e6eaee; --line: #aab4bf; --box: #1c232a; --ours: #23384d; }
}
text { font: 13px system-ui, sans-serif; fill: var(--text); text-anchor: middle; }
.quiet { font-size: 12px; fill: var(--line); }
.box { fill: var(--box); stroke: var(--line); }
.ours { fill: var(--ours); stroke: var(--line); }
.arrow { stroke: var(--line); fill: none; marker-end: url(#end); }
.ground { fill: var(--ground); }
.end { fill: var(--line); }
"""


@dataclass(frozen=True)
class Box:
    """A thing at a place of the middle, its lines; ``ours`` where Waddle is it."""

    x: int
    y: int
    lines: tuple[str, ...]
    ours: bool = True

    @property
    def half(self) -> tuple[float, float]:
        """Half of its width and of its height."""
        return max(map(len, self.lines)) * CHARACTER / 2 + 12, len(self.lines) * LINE / 2 + 8


@dataclass(frozen=True)
class Arrow:
    """From one box to another, straight; ``aside`` moves it, so that there and back are two."""

    start: str
    end: str
    label: str = ""
    aside: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Drawing:
    """A picture, with what it shows in words."""

    title: str
    size: tuple[int, int]
    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]


def _edge(box: Box, towards: tuple[float, float], aside: tuple[int, int]) -> tuple[float, float]:
    """Returns the point at which a line from a box's middle, moved aside, leaves the box."""
    x, y = box.x + aside[0], box.y + aside[1]
    dx, dy = towards[0] - x, towards[1] - y
    wide, high = box.half
    reach = min(
        (wide - abs(aside[0])) / abs(dx) if dx else 1e9,
        (high - abs(aside[1])) / abs(dy) if dy else 1e9,
    )
    return x + dx * reach, y + dy * reach


def _text(x: float, y: float, lines: tuple[str, ...], kind: str = "") -> str:
    top = y - (len(lines) - 1) * LINE / 2 + 4.5
    name = f' class="{kind}"' if kind else ""
    return "".join(
        f'<text x="{x:.0f}" y="{top + number * LINE:.0f}"{name}>{escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def _arrow(drawing: Drawing, arrow: Arrow) -> tuple[str, str]:
    """The line, and its label, which is drawn after all lines."""
    start, end, aside = drawing.boxes[arrow.start], drawing.boxes[arrow.end], arrow.aside
    x1, y1 = _edge(start, (end.x + aside[0], end.y + aside[1]), aside)
    x2, y2 = _edge(end, (start.x + aside[0], start.y + aside[1]), aside)
    line = f'<path class="arrow" d="M{x1:.0f} {y1:.0f} L{x2:.0f} {y2:.0f}"/>'
    if not arrow.label:
        return line, ""
    lines = tuple(arrow.label.split("\n"))
    wide, high = max(map(len, lines)) * 6.6 + 4, len(lines) * LINE
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    back = (
        f'<rect class="ground" x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}"'
        f' width="{wide:.0f}" height="{high}"/>'
    )
    return line, back + _text(x, y, lines, "quiet")


def svg(drawing: Drawing) -> str:
    """The picture's text."""
    width, height = drawing.size
    drawn = [_arrow(drawing, arrow) for arrow in drawing.arrows]
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}" role="img" aria-label="{escape(drawing.title, quote=True)}">'
        ),
        f"<title>{escape(drawing.title)}</title><style>{STYLE}</style>",
        (
            '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path class="end" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
        ),
        f'<rect class="ground" width="{width}" height="{height}"/>',
        *(line for line, _ in drawn),
        *(label for _, label in drawn if label),
    ]
    for box in drawing.boxes.values():
        wide, high = box.half
        parts.append(
            f'<rect class="{"ours" if box.ours else "box"}" x="{box.x - wide:.0f}"'
            f' y="{box.y - high:.0f}" width="{2 * wide:.0f}" height="{2 * high:.0f}" rx="6"/>'
            + _text(box.x, box.y, box.lines)
        )
    return "\n".join([*parts, "</svg>", ""])


ARCHITECTURE = Drawing(
    "Waddle in a cluster: the API server asks any replica; replicas, audit and console"
    " each watch the API server; decisions go to a sidecar and from there to sinks",
    (1100, 470),
    {
        "users": Box(95, 70, ("users,", "pipelines,", "controllers"), ours=False),
        "api": Box(330, 70, ("API server", "policies, objects, statuses"), ours=False),
        "one": Box(730, 70, ("replica", "policies in its memory")),
        "two": Box(730, 160, ("replica", "policies in its memory")),
        "three": Box(730, 250, ("replica", "policies in its memory")),
        "sidecar": Box(980, 160, ("a sidecar of each", "queue on disk")),
        "sinks": Box(980, 290, ("sinks", "file, HTTP,", "OTLP, Kafka"), ours=False),
        "audit": Box(130, 290, ("audit", "what is there already")),
        "console": Box(400, 290, ("console", "pages, playground")),
        "watching": Box(730, 400, ("Prometheus", "metrics"), ours=False),
        "people": Box(400, 400, ("people",), ours=False),
    },
    (
        Arrow("users", "api", "writes"),
        Arrow("api", "one", "AdmissionReview", (0, -10)),
        Arrow("one", "api", "watches, statuses", (0, 14)),
        Arrow("api", "two"),
        Arrow("api", "three"),
        Arrow("one", "sidecar"),
        Arrow("two", "sidecar", "decisions"),
        Arrow("three", "sidecar"),
        Arrow("sidecar", "sinks", "at least once"),
        Arrow("audit", "api", "lists, totals"),
        Arrow("console", "api", "watches, writes nothing"),
        Arrow("people", "console", "look"),
        Arrow("watching", "three", "read"),
    ),
)

ADMISSION = Drawing(
    "An admission: limits, decoding, the order of checks, the review by the snapshot in force,"
    " the verdict, the record, the answer",
    (980, 330),
    {
        "api": Box(85, 60, ("API server",), ours=False),
        "connection": Box(320, 60, ("server/connection, hub", "limits, one at a time")),
        "endpoint": Box(575, 60, ("server/endpoint", "JSON decoded once")),
        "decide": Box(820, 60, ("server/admission", "Gatekeeper's order of checks")),
        "elsewhere": Box(760, 170, ("another thread",)),
        "review": Box(820, 280, ("constraint/snapshot.review", "index, match, evaluate")),
        "judge": Box(520, 280, ("server/verdict", "allowed, warnings, denied")),
        "recorder": Box(200, 280, ("serving/recorder", "reports, Events, decision log")),
    },
    (
        Arrow("api", "connection", "POST"),
        Arrow("connection", "endpoint"),
        Arrow("endpoint", "decide"),
        Arrow("decide", "elsewhere", "Pending", (-45, 0)),
        Arrow("elsewhere", "decide", "resume", (25, 0)),
        Arrow("decide", "review", "", (85, 0)),
        Arrow("review", "judge", "Responses"),
        Arrow("judge", "recorder", "answer"),
        Arrow("decide", "recorder", "Unanswerable:\nfailurePolicy has it", (-40, 0)),
        Arrow("recorder", "api", "200, or another code"),
    ),
)

MUTATION = Drawing(
    "A change by mutators: the API server asks for a patch first, then for an admission, and stores",
    (900, 250),
    {
        "user": Box(90, 70, ("kubectl apply",), ours=False),
        "api": Box(300, 70, ("API server",), ours=False),
        "etcd": Box(300, 200, ("stored",), ours=False),
        "mutate": Box(730, 50, ("/v1/mutate", "passes until one changes nothing")),
        "admit": Box(730, 190, ("/v1/admit", "constraints, and what it would make")),
    },
    (
        Arrow("user", "api"),
        Arrow("api", "mutate", "the object", (0, -12)),
        Arrow("mutate", "api", "JSON Patch: only what changed", (0, 12)),
        Arrow("api", "admit", "the mutated object; allowed, or refused with a message"),
        Arrow("api", "etcd"),
    ),
)

PREVIEW = Drawing(
    "A preview: what mutators in force make is stored; what previewed ones would make besides"
    " is compared with it and told",
    (980, 230),
    {
        "object": Box(80, 115, ("the object",), ours=False),
        "enforced": Box(290, 60, ("mutators in force",)),
        "all": Box(290, 170, ("those, and the previewed ones",)),
        "stored": Box(540, 60, ("what is answered, and stored",)),
        "would": Box(540, 170, ("what it would be",)),
        "told": Box(830, 115, ("the difference is told:", "decision log, metric")),
    },
    (
        Arrow("object", "enforced"),
        Arrow("object", "all"),
        Arrow("enforced", "stored"),
        Arrow("all", "would"),
        Arrow("stored", "told"),
        Arrow("would", "told"),
    ),
)

PATCH = Drawing(
    "A Pod, the patch, and the Pod that comes of it",
    (900, 110),
    {
        "before": Box(120, 55, ("spec.containers[0]", "name: app", "image: app:v1"), ours=False),
        "patch": Box(420, 55, ("replace", "/spec/containers/0/image", "registry.example/app:v1")),
        "after": Box(
            750,
            55,
            ("spec.containers[0]", "name: app", "image: registry.example/app:v1"),
            ours=False,
        ),
    },
    (Arrow("before", "patch"), Arrow("patch", "after")),
)

EXCEPTION = Drawing(
    "A violation with an exception: policies decide first; what they find is excused where an"
    " exception is about it and the clock is within its time; else it is answered as found",
    (1040, 260),
    {
        "request": Box(80, 70, ("the object",), ours=False),
        "policies": Box(290, 70, ("policies decide", "as if there were none")),
        "good": Box(290, 200, ("nothing found:", "no exception is looked at")),
        "found": Box(560, 70, ("a violation", "exceptions of its constraint")),
        "kept": Box(560, 200, ("about none: denied", "as the policy says")),
        "excused": Box(880, 70, ("excused", "skip, warn or dryrun")),
        "told": Box(880, 200, ("shown by name: record,", "report, metrics, status")),
    },
    (
        Arrow("request", "policies"),
        Arrow("policies", "good"),
        Arrow("policies", "found"),
        Arrow("found", "kept"),
        Arrow("found", "excused", "match, subjects, time"),
        Arrow("excused", "told"),
    ),
)

EXTERNAL_DATA = Drawing(
    "External data: a review ends with what it wants to know; providers that nobody has asked yet are"
    " asked beside each other; their answers are kept, and the object is reviewed again",
    (1040, 280),
    {
        "request": Box(80, 70, ("the object",), ours=False),
        "review": Box(310, 70, ("the review", "external_data(keys)")),
        "answer": Box(310, 220, ("answered", "what a policy makes of it")),
        "kept": Box(630, 70, ("answers that are kept", "3 minutes, errors 10 s")),
        "asking": Box(630, 220, ("asked at once", "the thread waits for nobody")),
        "provider": Box(930, 220, ("a provider", "HTTPS, TLS 1.3"), ours=False),
    },
    (
        Arrow("request", "review"),
        Arrow("review", "kept", "known?", (0, -10)),
        Arrow("kept", "review", "again, with answers", (0, 14)),
        Arrow("kept", "asking", "not known"),
        Arrow("asking", "provider", "keys"),
        Arrow("review", "answer", "nothing more to ask"),
    ),
)

DRAWINGS = {
    "exception.svg": EXCEPTION,
    "external-data.svg": EXTERNAL_DATA,
    "architecture.svg": ARCHITECTURE,
    "admission.svg": ADMISSION,
    "mutation.svg": MUTATION,
    "mutation-patch.svg": PATCH,
    "mutation-preview.svg": PREVIEW,
}


def main() -> int:
    """Draw all of them."""
    for name, drawing in DRAWINGS.items():
        (PICTURES / name).write_text(svg(drawing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
