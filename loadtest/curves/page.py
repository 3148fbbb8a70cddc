"""The curves as plots and tables, with what limits each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtest.curves.points import Store
from loadtest.plots.scale import shown
from loadtest.plots.svg import Axes, Series, lines

PROGRAMS = ("waddle", "gatekeeper")

HEAD = """\
# Curves

Written by `make bench-curves` from the points in `curves/`. Waddle and Gatekeeper v3.23.1, each on
one core of the same machine, 8 connections where nothing else is said; every answer was checked.
Points marked *quick* were measured for a few seconds only: read their shape, not their digits.
"""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of a curve."""

    figure: str
    label: str
    logarithmic: bool = True


CPU = Plot("server_cpu_ms_per_request", "CPU ms for each request")
P99 = Plot("p99_ms", "p99 ms")
RATE = Plot("requests_per_second", "requests/s on one core")
MEMORY = Plot("server_rss_mib", "resident MiB", logarithmic=False)


@dataclass(frozen=True, slots=True)
class Curve:
    """The plots of a curve, and its limit."""

    name: str
    title: str
    x: str
    plots: tuple[Plot, ...]
    limit: str
    logarithmic: bool = True


CURVES = (
    Curve(
        "matching",
        "Constraints that match",
        "constraints",
        (CPU, RATE, MEMORY),
        "Evaluation: from about ten constraints on it is most of a request. A template's rules are "
        "compiled functions, called once for each set of parameters; constraints with equal "
        "parameters share a call. One admission at a time is decided, so one core is the limit of "
        "a replica: more replicas, not more cores.",
    ),
    Curve(
        "idle",
        "Constraints that do not match, beside one that does",
        "constraints",
        (CPU, MEMORY),
        "Nothing: constraints are found by kind and namespace. What is left is memory, some "
        "kilobytes for each.",
    ),
    Curve(
        "size",
        "Size of the object, with 12 constraints",
        "KiB",
        (CPU, P99),
        "Decoding, and from 256 KiB on TLS and copying: both grow with the bytes. Policies look at "
        "few fields whatever the size.",
    ),
    Curve(
        "load",
        "Load on a fixed schedule, 12 constraints",
        "part of one core's saturation",
        (Plot("p50_ms", "p50 ms"), P99),
        "Queueing: requests wait for the one before them. Beyond 0.7 of a core waiting grows "
        "faster than load; `waddle size` plans for no more than that.",
        logarithmic=False,
    ),
    Curve(
        "replicas",
        "Replicas, as processes of one machine",
        "replicas",
        (
            Plot("rss_mib", "resident MiB, all together", logarithmic=False),
            Plot("start_writes", "writes to the API server at the start", logarithmic=False),
            Plot("change_writes", "writes when a constraint changes", logarithmic=False),
        ),
        "Each replica holds policies and data of its own and writes its own statuses: both grow "
        "with the replicas. No replica waits for another.",
        logarithmic=False,
    ),
    Curve(
        "synced",
        "Synced objects that policies may read",
        "objects",
        (
            Plot("idle_rss_mib", "resident MiB before requests", logarithmic=False),
            Plot("ready_seconds", "seconds until ready", logarithmic=False),
            CPU,
        ),
        "Memory: each replica keeps what is synced. A look-up by name costs the same however many "
        "there are; a rule that goes through all of them costs by their number.",
        logarithmic=False,
    ),
    Curve(
        "changes",
        "Changes of constraints while 40 requests a second are answered",
        "changes a minute",
        (CPU, P99),
        "Each change makes a new snapshot, plans and selections: a few milliseconds of a thread "
        "beside admission's, and a status to write.",
        logarithmic=False,
    ),
)


def plots(store: Store) -> dict[str, str]:
    """Each plot's SVG, by the name of its file."""
    drawn = {}
    for curve in CURVES:
        points = store.points(curve.name)
        for plot in curve.plots if points else ():
            axes = Axes(
                f"{curve.title}: {plot.label}",
                curve.x + (", logarithmic" if curve.logarithmic else ""),
                plot.label + (", logarithmic" if plot.logarithmic else ""),
                x_logarithmic=curve.logarithmic,
                y_logarithmic=plot.logarithmic,
            )
            series = [
                Series(program, [(point["at"], point[program][plot.figure]) for point in points])
                for program in PROGRAMS
                if all(program in point for point in points)
            ]
            drawn[f"curves-{curve.name}-{plot.figure}.svg"] = lines(axes, series)
    return drawn


def markdown(store: Store) -> str:
    """The page of all curves."""
    sections = (_section(curve, points) for curve in CURVES if (points := store.points(curve.name)))
    return "\n".join((HEAD, *sections))


def _section(curve: Curve, points: Sequence[dict[str, Any]]) -> str:
    programs = [name for name in PROGRAMS if all(name in point for point in points)]
    heads = [f"{plot.label}: {name}" for plot in curve.plots for name in programs]
    rows = "".join(
        f"| {shown(point['at'])}{' *quick*' if point['quick'] else ''} | "
        + " | ".join(shown(point[name][plot.figure]) for plot in curve.plots for name in programs)
        + " |\n"
        for point in points
    )
    pictures = "\n".join(
        f"![{plot.label}](curves-{curve.name}-{plot.figure}.svg)" for plot in curve.plots
    )
    return (
        f"## {curve.title}\n\n**What limits it.** {curve.limit}\n\n"
        f"| {curve.x} | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}\n{rows}\n{pictures}\n"
    )
