"""``waddle rego test``: finds and runs unit tests in Rego, as ``opa test`` does."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import Duration, dash_is_standard_input
from webhook.cli.rego.options import (
    BUNDLE,
    CAPABILITIES,
    COVERAGE_RUNS,
    IGNORE,
    MAX_ERRORS,
    SCHEMA,
    V0,
    V1,
    VAR_VALUES,
    WASM,
    format_option,
    refused,
)

_HELP = """Run the unit tests in Rego files: rules whose names begin with test_.

Each PATH is a file or a folder that is read with all below it: .rego files are
modules, .json and .yaml files are data. Rules whose names begin with todo_test_
are listed and not run.

\b
  waddle rego test policy/
  waddle rego test policy/ --run 'data.k8s.*labels' -v
  waddle rego test policy/ --format json > result.json
  waddle rego test policy/ --coverage --threshold 90
"""


@click.command(name="test", help=_HELP + exit_codes.paragraph("rego test"))
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, callback=dash_is_standard_input
)
@click.option(
    "-r", "--run", "selection", metavar="REGEX", default="", help="Run only tests that match."
)
@format_option("The format of the results.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also show tests that passed, and how failed tests were evaluated.",
)
@click.option(
    "--explain",
    type=click.Choice(["fails", "notes", "full", "debug"]),
    help=(
        "The steps of failed tests to show. Implies --verbose, whose default is fails and notes."
    ),
)
@VAR_VALUES
@click.option(
    "-c",
    "--coverage",
    is_flag=True,
    help="If all tests pass, report the lines that they reached, as JSON.",
)
@COVERAGE_RUNS
@click.option(
    "--threshold",
    type=float,
    default=0.0,
    help="The lowest coverage in per cent; the exit code is 2 below it. Implies --coverage.",
)
@click.option("--count", type=int, default=1, help="How often to run all tests.")
@click.option(
    "--timeout",
    type=Duration(),
    default="5s",
    show_default=True,
    help="The time limit of a test.",
)
@click.option(
    "-z", "--exit-zero-on-skipped", is_flag=True, help="Skipped tests do not fail the run."
)
@click.option("--fail-on-empty", is_flag=True, help="Fail if no test was run.")
@click.option(
    "--sort",
    type=click.Choice(["none", "duration"]),
    default="none",
    show_default=True,
    help="The order of results in JSON.",
)
@click.option(
    "-p",
    "--parallel",
    type=int,
    default=1,
    help="Without effect, as tests run one after the other.",
)
@MAX_ERRORS
@BUNDLE
@CAPABILITIES
@SCHEMA
@IGNORE
@V0
@V1
@WASM
@refused("--bench", flag=True, because="there are no benchmarks here; use opa test --bench.")
@refused("--benchmem", flag=True, because="there are no benchmarks here; use opa test --bench.")
@refused(
    "-w", "--watch", flag=True, because="run the command again, or use a watcher such as entr."
)
def command(**options: Any) -> int:
    """Run tests and report."""
    # The engine is half of all imports; help and usage errors do not need it.
    from webhook.cli.rego.test_run import UnitTestOptions, run  # noqa: PLC0415

    return run(UnitTestOptions(**options))
