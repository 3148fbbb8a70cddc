"""``waddle bench``: how long policies take for objects, by engine, and whether that got worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import exit_codes
from webhook.cli.formats.words import Output, emit, output_option
from webhook.cli.policy_options import FILENAMES, PROVIDERS, InputPath
from webhook.cli.terminal import complain, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Measure how long policies take for the objects among the files, as gator bench does.

Every object is reviewed again and again, one after the other, as a replica decides them. Results
that were saved, by gator as well, can be compared with.

\b
  waddle bench -f policies/ -f manifests/
  waddle bench -f policies/ -f manifests/ --engine rego --stats
  waddle bench -f policies/ -f manifests/ --save before.json
  waddle bench -f policies/ -f manifests/ --compare before.json --min-threshold 1ms
"""


def _nanoseconds(_context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Returns a duration as Go writes it."""
    from webhook.duration import duration_seconds  # noqa: PLC0415  # --help needs none of it

    seconds = duration_seconds(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 1ms", param=parameter)
    return int(seconds * 1e9)


@click.command("bench", help=_HELP + exit_codes.paragraph("bench"))
@FILENAMES
@click.option(
    "-e",
    "--engine",
    type=click.Choice(["rego", "cel", "all"]),
    default="all",
    show_default=True,
    help="The engine that evaluates templates; all measures each engine separately.",
)
@click.option(
    "-n",
    "--iterations",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="How often to review each object. Below 1000 the 99th percentile is not reliable.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How often to review each object before the measurement begins.",
)
@click.option("--stats", is_flag=True, help="Show each constraint's times in the first iteration.")
@click.option(
    "--save",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write the results to: YAML if its name says so, else JSON.",
)
@click.option(
    "--compare",
    "baseline",
    metavar="FILE",
    type=InputPath(dir_okay=False),
    help="Saved results to compare with. The exit code is 1 if something got worse.",
)
@click.option(
    "--threshold",
    metavar="PERCENT",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="The percentage by which a number may get worse.",
)
@click.option(
    "--min-threshold",
    "least",
    metavar="DURATION",
    default="0s",
    callback=_nanoseconds,
    help="Ignore times that grew by less than this, such as 1ms.",
)
@PROVIDERS
@output_option("table", "json", "yaml")
def command(  # noqa: PLR0913  # each is an option
    filenames: tuple[str, ...],
    *,
    engine: str,
    iterations: int,
    warmup: int,
    stats: bool,
    save: Path | None,
    baseline: Path | None,
    threshold: float,
    least: int,
    answers: RecordedAnswers,
    output: str,
) -> int:
    """Measure, print, save and compare."""
    # Here and not above: --help and a mistyped option need none of it.
    from webhook.cli.bench import report  # noqa: PLC0415
    from webhook.cli.bench.run import BenchOptions  # noqa: PLC0415

    before = None if baseline is None else _saved(baseline)
    results = _measured(filenames, engine, BenchOptions(iterations, warmup, stats, answers))
    is_table = output == "table"
    write(report.as_table(results) if is_table else _text(report.as_documents(results), output))
    if save is not None:
        emit(Output("", save), _text(results, "yaml" if save.suffix in _YAML else "json"))
    if before is None:
        return exit_codes.OK
    compared = report.compare(before, results, threshold, least)
    if not compared:
        complain(f"nothing was compared: {baseline} has results of other engines only")
        return exit_codes.UNKNOWN
    shown = report.comparison_table(compared, threshold)
    if is_table:
        write(f"\n{shown}")
    else:
        complain(shown)
    return exit_codes.OK if all(comparison.passed for comparison in compared) else exit_codes.NO


_YAML = (".yaml", ".yml")


def _measured(filenames: Sequence[str], engine: str, options: Any) -> list[dict[str, Any]]:
    """Returns the results of each engine; with all engines, one may lack policies to measure."""
    from webhook.cli.bench.run import ENGINES, CannotBench, bench  # noqa: PLC0415  # see command
    from webhook.cli.sources import read_sources  # noqa: PLC0415

    sources = read_sources([Path(name) for name in filenames], any_value=False)
    for warning in sources.warnings:
        complain(warning)
    if engine != "all":
        return [bench(engine, sources.manifests, options)]
    results, faults = [], []
    for name in ENGINES:
        try:
            results.append(bench(name, sources.manifests, options))
        except CannotBench as error:
            faults.append(str(error))
    if not results:
        raise CannotBench("\n".join(dict.fromkeys(faults)))
    for fault in faults:
        complain(fault)
    return results


def _text(document: Any, word: str) -> str:
    from webhook.cli.formats.document import as_json, as_yaml  # noqa: PLC0415  # see command

    return as_json(document) if word == "json" else as_yaml(document)


def _saved(file: Path) -> list[dict[str, Any]]:
    """Returns the results of an earlier run; raises :class:`CannotBench`."""
    from webhook.cli.bench.run import CannotBench  # noqa: PLC0415  # see command
    from webhook.policies.manifests import UnreadableFile, read_values  # noqa: PLC0415

    try:
        values = [document.value for document in read_values(file)]
    except (OSError, UnreadableFile) as error:
        raise CannotBench(f"{file}: {error}") from None
    needed = {"engine", "latencies", "reviewsPerSecond"}
    results: Any = values[0] if len(values) == 1 else None
    if not isinstance(results, list) or not all(
        isinstance(result, dict) and needed <= result.keys() for result in results
    ):
        raise CannotBench(f"{file}: these are not results of --save")
    return results
