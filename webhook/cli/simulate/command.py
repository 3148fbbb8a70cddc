"""``waddle simulate``: availability and enforcement of N replicas, computed and measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import orjson

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import InputPath
from webhook.cli.simulate.run import (
    QUANTILES,
    Comparison,
    Distribution,
    LogNormal,
    all_quantile,
    all_within,
    availability,
    compare,
)
from webhook.cli.table import table
from webhook.cli.terminal import complain, write
from webhook.parsers import utf8_of

REPLICAS_MAX: Final = 100
DEFAULT_INGEST: Final = "20,40"
POINTS: Final = 16
"""The number of rows of the curve: one screen."""
BAR: Final = 30

_HELP = """Show what N replicas without a leader give.

Each follows the API server by itself. All of N are unavailable with probability P^N, and all
enforce a change by time t with probability P(t)^N, where P and P(t) are those of one replica.
P(t) is the share of requests, too, that meet the change by then: each goes to one of them.

\b
  waddle simulate --replicas 3 --p-fail 0.01 --ingest-ms 18,30
  waddle simulate --replicas 3 --measured loadtest/results/enforcement.json

--measured takes the rounds of a cluster (`make bench-enforcement` writes them) and shows how
far the formula is from them; with --ingest-ms too, what was measured stands beside its curve.
"""


@click.command("simulate", help=_HELP + exit_codes.paragraph("simulate"))
@click.option(
    "--replicas",
    default=3,
    show_default=True,
    type=click.IntRange(1, REPLICAS_MAX),
    help="The number of replicas.",
)
@click.option(
    "--p-fail",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="The share of time that one replica is unavailable.",
)
@click.option(
    "--ingest-ms",
    default=None,
    metavar="MEDIAN[,P95]",
    help=("The time until one replica enforces a change.  [default: the measured times, or 20,40]"),
)
@click.option(
    "--measured",
    type=InputPath(dir_okay=False),
    help="Measured rounds: JSON with an array of arrays named rounds_ms.",
)
@output_option(*words.SHORT)
def command(
    *, replicas: int, p_fail: float, ingest_ms: str | None, measured: Path | None, output: str
) -> int:
    """Compute the curves and print them."""
    comparison: Comparison | None = None
    try:
        if measured is not None:
            comparison = compare(_rounds(measured))
    except ValueError as error:
        complain(f"{measured}: {error}")
        return exit_codes.UNKNOWN
    try:
        distribution: Distribution
        if ingest_ms is None and comparison is not None:
            distribution = comparison.single
        else:
            distribution = _log_normal(ingest_ms or DEFAULT_INGEST)
    except ValueError as error:
        complain(f"--ingest-ms: {error}")
        return exit_codes.UNKNOWN
    if output == "json":
        write(orjson.dumps(_as_json(replicas, p_fail, distribution, comparison)).decode())
    else:
        write("\n".join(_as_table(replicas, p_fail, distribution, comparison)))
    return 0


def _log_normal(text: str) -> LogNormal:
    try:
        median, *rest = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"expected MEDIAN[,P95] in milliseconds, got {text!r}") from None
    if len(rest) > 1:
        raise ValueError(f"expected MEDIAN[,P95] in milliseconds, got {text!r}")
    return LogNormal(median, rest[0] if rest else median)


def _rounds(path: Path) -> list[list[float]]:
    """Returns the array ``rounds_ms`` at any depth of a results file; raises ``ValueError``."""
    lists = _find(orjson.loads(utf8_of(path.read_bytes())))
    if lists is None:
        raise ValueError("there is no array rounds_ms")
    if not all(
        isinstance(times, list) and all(type(time) in (int, float) for time in times)
        for times in lists
    ):
        raise ValueError("rounds_ms must hold an array of numbers for each round")
    return lists


def _find(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        if isinstance(value.get("rounds_ms"), list):
            rounds: list[Any] = value["rounds_ms"]
            return rounds
        value = list(value.values())
    if isinstance(value, list):
        return next((times for item in value if (times := _find(item)) is not None), None)
    return None


def _points(distribution: Distribution, replicas: int) -> list[float]:
    """Returns times that span the curve, up to the time when 99.9 % of changes are in force."""
    low, high = distribution.quantile(0.01), all_quantile(distribution, replicas, 0.999)
    step = (high - low) / (POINTS - 1)
    return [low + step * index for index in range(POINTS)] if step > 0 else [low]


def _as_json(
    replicas: int, p_fail: float, distribution: Distribution, comparison: Comparison | None
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "replicas": replicas,
        "pFail": p_fail,
        "availability": [
            {"replicas": item.replicas, "unavailable": item.unavailable}
            for item in availability(p_fail, replicas)
        ],
        "enforced": [
            {"ms": t, "one": distribution.within(t), "all": all_within(distribution, replicas, t)}
            | _seen(comparison, replicas, t)
            for t in _points(distribution, replicas)
        ],
        "quantilesMs": {str(q): all_quantile(distribution, replicas, q) for q in QUANTILES},
    }
    if comparison is not None:
        answer["measured"] = {
            "replicas": comparison.replicas,
            "rounds": len(comparison.all.times),
            "quantilesMs": {str(q): comparison.all.quantile(q) for q in QUANTILES},
            "error": comparison.error,
            "lateError": comparison.late_error,
        }
    return answer


def _seen(comparison: Comparison | None, replicas: int, t: float) -> dict[str, float]:
    """Returns the measured shares at a time.

    Of all replicas only if the number of replicas matches.
    """
    if comparison is None:
        return {}
    shares = {"measuredOne": comparison.single.within(t)}
    if comparison.replicas == replicas:
        shares["measuredAll"] = comparison.all.within(t)
    return shares


def _as_table(
    replicas: int, p_fail: float, distribution: Distribution, comparison: Comparison | None
) -> list[str]:
    lines = [f"Probability that all replicas are unavailable, if one is with {p_fail:g} (P^N)", ""]
    rows = [("N", "unavailable", "available", "none answers, per year")]
    rows += [
        (
            str(item.replicas),
            f"{item.unavailable:.3g}",
            _percent(1 - item.unavailable),
            _duration(item.seconds_a_year),
        )
        for item in availability(p_fail, replicas)
    ]
    lines += table(rows, right={0})
    lines += [
        "",
        f"The share of requests that meet a change (P(t)), and of changes that all {replicas} have",
        "",
    ]
    # A measurement of all replicas is comparable only with the formula for as many replicas.
    measured = comparison is not None
    seen = comparison is not None and comparison.replicas == replicas
    curve = [
        ["t", "requests", *(["measured"] if measured else []), "all"]
        + ["measured"] * seen
        + [""]  # of bars
    ]
    for t in _points(distribution, replicas):
        share, measures = all_within(distribution, replicas, t), _seen(comparison, replicas, t)
        cells = [f"{t:.1f} ms", f"{distribution.within(t):.1%}"]
        cells += [f"{measures['measuredOne']:.1%}"] if measured else []
        cells += [f"{share:.1%}"]
        cells += [f"{measures['measuredAll']:.1%}"] if seen else []
        curve.append([*cells, "█" * round(share * BAR)])
    lines += table(curve, right=range(len(curve[0]) - 1))
    lines += ["", f"All {replicas} by: {_quantiles(distribution, replicas)}"]
    if comparison is not None:
        lines.append(_verdict(comparison))
    return lines


def _quantiles(distribution: Distribution, replicas: int) -> str:
    return ", ".join(
        f"{all_quantile(distribution, replicas, q):.1f} ms ({q:.4g})" for q in QUANTILES
    )


def _verdict(comparison: Comparison) -> str:
    return (
        f"Measured on {comparison.replicas} replicas, {len(comparison.all.times)} changes: "
        f"last one by {comparison.all.quantile(0.5):.1f} ms (0.5), "
        f"{comparison.all.quantile(0.95):.1f} ms (0.95). P(t)^{comparison.replicas} is off by "
        f"{comparison.error:.3f} at most, and {comparison.late_error:+.1%} at the 95th percentile."
    )


def _percent(share: float) -> str:
    """Returns a percentage with up to ten significant digits."""
    return f"{share * 100:.10g} %"


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
