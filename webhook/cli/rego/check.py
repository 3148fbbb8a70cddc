"""``waddle rego check``: checks Rego sources as ``opa check`` does."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import dash_is_standard_input
from webhook.cli.rego.options import (
    BUNDLE,
    CAPABILITIES,
    IGNORE,
    MAX_ERRORS,
    SCHEMA,
    V0,
    V1,
    format_option,
    refused,
)

_HELP = """Check Rego files for faults: what they say wrong, with the place of each.

Nothing is printed where all is well.

\b
  waddle rego check policy/
  waddle rego check --strict --format json policy/
"""


@click.command(name="check", help=_HELP + exit_codes.paragraph("rego check"))
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, callback=dash_is_standard_input
)
@format_option("The format of the errors.")
@click.option("-S", "--strict", is_flag=True, help="Also report what OPA's strict mode reports.")
@MAX_ERRORS
@BUNDLE
@CAPABILITIES
@SCHEMA
@IGNORE
@V0
@V1
@refused(
    "--v0-v1", flag=True, because="check the files twice: with --v0-compatible and without it."
)
def command(**options: Any) -> int:
    """Load, compile and report."""
    # The engine is half of all imports; help and usage errors do not need it.
    from webhook.cli.rego.check_run import run  # noqa: PLC0415

    return run(**options)
