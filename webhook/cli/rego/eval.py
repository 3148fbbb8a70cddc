"""``waddle rego eval``: evaluates a query, with the flags and the output of ``opa eval``.

Flags of ``opa eval`` without an equivalent are declared by ``refused``, which names the
alternative.
"""

from __future__ import annotations

from typing import Any, Final

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import Duration, dash_is_standard_input
from webhook.cli.rego.options import (
    CAPABILITIES,
    COVERAGE_RUNS,
    IGNORE,
    SCHEMA,
    V0,
    V1,
    VAR_VALUES,
    WASM,
    refused,
)
from webhook.rego.trace.profile import SORT_KEYS

_HELP = """Evaluate a query over Rego files and data.

\b
  waddle rego eval '1 + 1'
  waddle rego eval -d policy/ -i input.json 'data.k8s.violation'
  waddle rego eval -d policy/ -f raw 'data.k8s.allow'
  waddle rego eval -b bundle.tar.gz -i input.json --profile 'data.k8s.violation'
"""

_PARTIAL: Final = "queries are always evaluated completely; use opa eval --partial."
_OPTIMIZED: Final = "policies are compiled unchanged; use opa build --optimize, and -b."


@click.command(name="eval", help=_HELP + exit_codes.paragraph("rego eval"))
@click.argument("query", required=False)
@click.option("--stdin", "query_stdin", is_flag=True, help="Read the query from standard input.")
@click.option(
    "-d",
    "--data",
    "paths",
    metavar="PATH",
    multiple=True,
    callback=dash_is_standard_input,
    help="Policies and data. Repeatable.",
)
@click.option("-i", "--input", "input_path", metavar="FILE", help="The input document.")
@click.option("-I", "--stdin-input", is_flag=True, help="Read the input from standard input.")
@click.option(
    "-f",
    "--format",
    "output",
    type=click.Choice(["json", "values", "bindings", "pretty", "raw", "discard"]),
    default="json",
    show_default=True,
    help="The format of the result.",
)
@click.option("--package", metavar="PATH", default="", help="The package to evaluate in.")
@click.option("--import", "imported", metavar="PATH", multiple=True, help="An import. Repeatable.")
@click.option("--fail", is_flag=True, help="Exit with 1 if the result is undefined.")
@click.option("--fail-defined", is_flag=True, help="Exit with 1 if there is a result.")
@click.option("-S", "--strict", is_flag=True, help="Report what OPA's strict mode reports.")
@click.option(
    "--strict-builtin-errors", is_flag=True, help="Stop at the first error of a built-in."
)
@click.option(
    "--timeout",
    type=Duration(),
    default="0",
    help="The time limit of the evaluation; 0 for none.",
)
@click.option(
    "-b",
    "--bundle",
    "bundles",
    metavar="PATH",
    multiple=True,
    help=(
        "A bundle: a folder or a .tar.gz file. Of its data files only data.json and "
        "data.yaml are read. Repeatable."
    ),
)
@CAPABILITIES
@SCHEMA
@click.option(
    "--explain",
    type=click.Choice(["off", "full", "notes", "fails", "debug"]),
    default="off",
    show_default=True,
    help="The steps of the evaluation to show before the result, with --format pretty.",
)
@VAR_VALUES
@click.option("--coverage", is_flag=True, help="Report the lines that the evaluation reached.")
@COVERAGE_RUNS
@click.option("--profile", is_flag=True, help="Report how long each line took. Implies --metrics.")
@click.option(
    "--profile-limit",
    type=int,
    help="The number of lines of a profile to show; 0 for all. Implies --profile. Default: 10.",
)
@click.option(
    "--profile-sort",
    metavar="KEY",
    multiple=True,
    help=f"The key to sort a profile by: {', '.join(SORT_KEYS)}. Implies --profile. Repeatable.",
)
@click.option(
    "--metrics", is_flag=True, help="Report how long loading, compiling and evaluating took."
)
@click.option(
    "--pretty-limit",
    type=int,
    default=80,
    help="Without effect, as in OPA: the table always shows whole cells.",
)
@click.option(
    "--disable-indexing",
    is_flag=True,
    help="In explanations, also evaluate rules that an index excludes.",
)
@click.option(
    "--disable-early-exit",
    is_flag=True,
    help="In explanations, also evaluate rules after an early exit.",
)
@IGNORE
@V0
@V1
@WASM
@refused("-p", "--partial", flag=True, because=_PARTIAL)
@refused("-u", "--unknowns", because=_PARTIAL)
@refused("--disable-inlining", because=_PARTIAL)
@refused("--shallow-inlining", flag=True, because=_PARTIAL)
@refused("--nondeterminstic-builtins", flag=True, because=_PARTIAL)
@refused("-O", "--optimize", because=_OPTIMIZED)
@refused("-e", "--entrypoint", because=_OPTIMIZED)
@refused("--instrument", flag=True, because="use --metrics and --profile to see where time goes.")
@refused("--count", because="there are no benchmarks here; use opa eval --count.")
@refused(
    "--show-builtin-errors",
    flag=True,
    because="use --strict-builtin-errors, which stops at the first error.",
)
@refused(
    "--optimize-store-for-read-speed",
    flag=True,
    because="data is always held in the form that is read fastest.",
)
def command(**options: Any) -> int:
    """Load, evaluate and print."""
    # The engine is half of all imports; help and usage errors do not need it.
    from webhook.cli.rego.eval_run import EvalOptions, run  # noqa: PLC0415

    return run(EvalOptions(**options))
