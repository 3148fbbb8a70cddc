"""``waddle rego test``: unit tests written in Rego, found and told as ``opa test`` does."""

from __future__ import annotations

import click

from webhook.cli import exit_codes, rego_report
from webhook.cli.rego_options import BUNDLE, IGNORE, V0, V1, Duration, runtime, version_of
from webhook.cli.terminal import complain, write
from webhook.policies.rego_files import LoadErrors, load
from webhook.rego.errors import BuiltinError, RegoErrors
from webhook.rego.run.patterns import pattern
from webhook.rego.tester import UnitTests

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
@BUNDLE
@IGNORE
@V0
@V1
def command(  # noqa: PLR0913  # one for each option
    paths: tuple[str, ...],
    *,
    wanted: str,
    output: str,
    verbose: bool,
    timeout: float,
    exit_zero_on_skipped: bool,
    fail_on_empty: bool,
    sort: str,
    parallel: int,
    bundle: bool,
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Run tests and report."""
    del parallel, v1_compatible
    try:
        found = pattern(wanted).found_in if wanted else bool
    except BuiltinError as error:
        raise click.BadParameter(error.message, param_hint="--run") from None
    try:
        version = version_of(v0_compatible=v0_compatible)
        files = load(paths, version=version, ignore=ignore, bundles=bundle)
        tests = UnitTests(files.modules, files.data, wanted=found)
    except (LoadErrors, RegoErrors) as errors:
        complain(str(errors))
        return exit_codes.NO
    results = list(tests.run(timeout, runtime=runtime()))
    if output == "json":
        if sort == "duration":
            results.sort(key=lambda result: -result.seconds)
        write(rego_report.as_json(results))
    else:
        write(rego_report.as_text(results, verbose=verbose))
    if not results and fail_on_empty:
        complain("no tests were run")
        return exit_codes.NO
    fine = all(result.passed or (result.skipped and exit_zero_on_skipped) for result in results)
    return exit_codes.OK if fine else exit_codes.UNKNOWN
