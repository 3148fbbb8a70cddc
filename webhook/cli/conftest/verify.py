"""``waddle conftest verify``: unit tests written in Rego."""

from __future__ import annotations

import sys
from typing import Any

import click

from webhook import __version__
from webhook.cli import exit_codes
from webhook.cli.conftest.options import (
    CONFIG_FILE,
    LOADING,
    SHOWING,
    TLS,
    UPDATE,
    ConftestExit,
    Flags,
    is_coloured,
    lists,
)
from webhook.cli.conftest.test import encodable, policy_options, write_results
from webhook.cli.terminal import complain

_HELP = """Run the unit tests of policies: rules whose names begin with test_.

\b
  waddle conftest verify -p policy/
  waddle conftest verify -p policy/ --report fails
"""


@click.command(name="verify", cls=Flags, help=_HELP + exit_codes.paragraph("conftest verify"))
@click.argument("paths", nargs=-1, metavar="")
@LOADING
@click.option(
    "-n", "--namespace", multiple=True, metavar="NAME", help="Run the tests of these packages only."
)
@click.option(
    "--report", default="", help="Print every test with its traces: full, notes or fails."
)
@click.option("--var-values", is_flag=True, help="The same as --report=fails.")
@UPDATE
@TLS
@SHOWING
@CONFIG_FILE
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Load, run and report."""
    del paths  # conftest takes them, and has no use for them
    # Here and not above: --help and a mistyped flag need none of it.
    from webhook.conftest.policies import ConftestPolicyError  # noqa: PLC0415

    try:
        return _run(options)
    except ConftestPolicyError as error:
        raise ConftestExit(f"running verification: load: {error}") from None


def _run(options: dict[str, Any]) -> int:
    from webhook.conftest import output, report, result, verify  # noqa: PLC0415  # as above

    if options["update"]:
        from webhook.conftest import fetched  # noqa: PLC0415  # as above

        fetched.update(lists(options["policy"])[0], lists(options["update"]), tls=options["tls"])
    kind = options["report"] or ("fails" if options["var_values"] else "")
    outcome = verify.verify(
        lists(options["policy"]),
        lists(options["data"]),
        policy_options(options),
        namespaces=lists(options["namespace"]),
        trace=kind in report.KINDS,
    )
    for fault in outcome.faults:
        complain(f"Error: running verification: {fault}")
    if outcome.faults and not outcome.results:
        return exit_codes.NO
    code = result.exit_code(outcome.results)
    if code or not options["quiet"]:
        if kind in report.KINDS:
            if options["output"] != "stdout":
                raise ConftestExit("report flag is supported with stdout only")
            sys.stdout.write(encodable(report.report(outcome.tests, kind)))
        else:
            shown = output.OutputOptions(
                color=is_coloured(no_color=options["no_color"]),
                show_skipped=True,
                junit_hide_message=options["junit_hide_message"],
                github_hide_passed=options["github_hide_passed"],
                version=__version__,
            )
            write_results(outcome.results, options["output"], shown, trace=options["trace"])
    return code or (exit_codes.NO if outcome.faults else 0)
