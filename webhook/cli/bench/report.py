"""Shows a measurement, and the comparison with an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import duration
from webhook.cli import run_times
from webhook.cli.table import table
from webhook.printable import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    EngineTimes = Mapping[str, Any]

_PERCENTILES = ("p50", "p95", "p99", "mean")


def as_table(results: Sequence[EngineTimes]) -> str:
    """Returns a block for each engine, and a comparison of several engines."""
    blocks = [_block(result) for result in results]
    if len(results) > 1:
        rows = [
            ("", *(result["engine"] for result in results)),
            ("reviews a second", *(f"{result['reviewsPerSecond']:.0f}" for result in results)),
            *(
                (name, *(_shown(result["latencies"][name]) for result in results))
                for name in ("mean", "p95", "p99")
            ),
        ]
        blocks.append("\n".join(table(rows)))
    return "\n\n".join(blocks)


def _block(result: EngineTimes) -> str:
    reviews = result["iterations"] * result["objectCount"]
    counts = (
        quantity(result["templateCount"], "template"),
        quantity(result["constraintCount"], "constraint"),
        quantity(result["objectCount"], "object"),
        quantity(reviews, "review"),
        quantity(result["violationCount"], "violation"),
    )
    lines = [f"{result['engine']}: {', '.join(counts)}"]
    for key, noun in (("skippedTemplates", "template"), ("skippedConstraints", "constraint")):
        if result[key]:
            names = ", ".join(result[key])
            lines.append(
                f"skipped, because another engine evaluates them: {quantity(len(result[key]), noun)}: "
                f"{names}"
            )
    rows = [
        ("set up", _shown(result["setupDuration"])),
        *((f"  {_words(step)}", _shown(ns)) for step, ns in result["setupBreakdown"].items()),
        *((f"a review, {name}", _shown(ns)) for name, ns in result["latencies"].items()),
        ("reviews a second", f"{result['reviewsPerSecond']:.0f}"),
    ]
    lines += table(rows, right={1})
    if result.get("statsEntries"):
        lines += ["", *run_times.as_table(result["statsEntries"])]
    return "\n".join(lines)


def _words(name: str) -> str:
    """``clientCreation`` as ``client creation``."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _shown(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3f} ms"


def as_documents(results: Sequence[EngineTimes]) -> list[dict[str, Any]]:
    """Returns the results in gator's format: durations are texts."""
    return [
        {
            **result,
            "totalReviews": result["iterations"] * result["objectCount"],
            **{key: duration.shown(result[key]) for key in ("setupDuration", "totalDuration")},
            **{
                key: {name: duration.shown(ns) for name, ns in result[key].items()}
                for key in ("setupBreakdown", "latencies")
            },
        }
        for result in results
    ]


class ComparedNumber(NamedTuple):
    """A number before and now.

    ``change`` is in percent, ``passed`` whether within the threshold.
    """

    engine: str
    metric: str
    before: float
    now: float
    change: float
    passed: bool


def compare(
    before: Sequence[EngineTimes], results: Sequence[EngineTimes], threshold: float, least_ns: int
) -> list[ComparedNumber]:
    """Compares each number of an engine that was measured before, too.

    A regression exceeds the threshold and, for times, so many nanoseconds.
    """
    by_engine = {result["engine"]: result for result in before}
    compared = []
    for result in results:
        engine = result["engine"]
        if (earlier := by_engine.get(engine)) is None:
            continue
        for name in _PERCENTILES:
            old, new = earlier["latencies"][name], result["latencies"][name]
            change = _change(old, new)
            passed = change <= threshold or (least_ns > 0 and new - old < least_ns)
            compared.append(ComparedNumber(engine, f"latency {name}", old, new, change, passed))
        old, new = earlier["reviewsPerSecond"], result["reviewsPerSecond"]
        change = _change(old, new)
        mean = earlier["latencies"]["mean"]
        spared = least_ns > 0 and mean > 0 and old - new < old * least_ns / mean
        passed = -change <= threshold or spared
        compared.append(ComparedNumber(engine, "reviews a second", old, new, change, passed))
    return compared


def _change(before: float, now: float) -> float:
    if not before:
        return 100.0 if now else 0.0
    return (now - before) / before * 100


def comparison_table(compared: Sequence[ComparedNumber], threshold: float) -> str:
    """Returns all numbers, and at the end the regressions."""
    rows: list[tuple[str, ...]] = [("engine", "metric", "before", "now", "change", "")]
    for number in compared:
        is_time = number.metric.startswith("latency")
        before, now = (
            _shown(value) if is_time else f"{value:.0f}" for value in (number.before, number.now)
        )
        verdict = "" if number.passed else "REGRESSION"
        rows.append((number.engine, number.metric, before, now, f"{number.change:+.1f}%", verdict))
    worse = sum(not number.passed for number in compared)
    summary = quantity(worse, "regression") if worse else "no regression"
    return "\n".join([*table(rows, right={2, 3, 4}), "", f"{summary} (threshold {threshold:g}%)"])
