"""``waddle rego test``: unit tests written in Rego, found and told as ``opa test`` does."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.rego.options import BUNDLE, IGNORE, MAX_ERRORS, V0, V1, Duration

_HELP = """Run the unit tests in Rego files: rules whose names begin with test_.

Each PATH is a file or a folder that is read with all below it: .rego files are
modules, .json and .yaml files are data. Rules whose names begin with todo_test_
are told and not run.

\b
  waddle rego test policy/
  waddle rego test policy/ --run 'data.k8s.*labels' -v
  waddle rego test policy/ --format json > result.json
"""


@click.command(name="test", help=_HELP + exit_codes.paragraph("rego test"))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("-r", "--run", "wanted", metavar="REGEX", default="", help="Run only what matches.")
@click.option(
    "-f",
    "--format",
    "output",
    type=click.Choice(["pretty", "json"]),
    default="pretty",
    show_default=True,
    help="The format of the results.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show what passed, too.")
@click.option(
    "--timeout",
    type=Duration(),
    default="5s",
    show_default=True,
    help="The longest that one test may take.",
)
@click.option(
    "-z", "--exit-zero-on-skipped", is_flag=True, help="Skipped tests do not fail the run."
)
@click.option("--fail-on-empty", is_flag=True, help="Fail where no test was run.")
@click.option(
    "--sort",
    type=click.Choice(["none", "duration"]),
    default="none",
    show_default=True,
    help="The order of results in JSON.",
)
@click.option(
    "-p", "--parallel", type=int, default=1, hidden=True, help="Taken from OPA, without effect."
)
@MAX_ERRORS
@BUNDLE
@IGNORE
@V0
@V1
def command(**options: Any) -> int:
    """Run tests and report."""
    # The engine is half of what there is to import: help and errors of usage do without it.
    from webhook.cli.rego.test_run import run  # noqa: PLC0415

    return run(**options)
