"""Unit tests in Rego, run and told as ``opa test`` does."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.rego import report as rego_report
from webhook.cli.rego.context import runtime, version_of
from webhook.cli.terminal import complain, write
from webhook.policies.rego_files import LoadErrors, load
from webhook.rego.engine import CompileOptions
from webhook.rego.errors import BuiltinError, RegoErrors
from webhook.rego.run.patterns import pattern
from webhook.rego.tester import UnitTests


def run(  # noqa: PLR0913  # one for each option of the command
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
    max_errors: int,
    bundle: bool,
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Run tests and report."""
    del parallel, v1_compatible  # taken from OPA, without effect
    try:
        name_matches = pattern(wanted).found_in if wanted else bool
    except BuiltinError as error:
        raise click.BadParameter(error.message, param_hint="--run") from None
    try:
        version = version_of(v0_compatible=v0_compatible)
        files = load(paths, version=version, ignore=ignore, bundles=bundle)
        tests = UnitTests(
            files.modules, files.data, wanted=name_matches, options=CompileOptions(annotations=True)
        )
    except (LoadErrors, RegoErrors) as errors:
        complain(str(errors.limited(max_errors) if isinstance(errors, RegoErrors) else errors))
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
