"""``waddle rego check``: whether Rego sources can be used, as ``opa check`` says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.rego_options import BUNDLE, IGNORE, V0, V1, version_of
from webhook.cli.rego_report import place
from webhook.cli.terminal import complain
from webhook.policies.rego_files import LoadErrors, load
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.run.text import json_indented

_HELP = """Check Rego files for faults: what they say wrong, with the place of each.

Nothing is printed where all is well.

\b
  waddle rego check policy/
  waddle rego check --strict --format json policy/
"""


@click.command(name="check", help=_HELP + exit_codes.paragraph("rego check"))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "-f",
    "--format",
    "output",
    type=click.Choice(["pretty", "json"]),
    default="pretty",
    show_default=True,
    help="The format of the faults.",
)
@click.option("-S", "--strict", is_flag=True, help="Refuse what OPA's strict mode refuses, too.")
@click.option(
    "-m", "--max-errors", default=10, show_default=True, help="Faults told at most; 0 for all."
)
@BUNDLE
@IGNORE
@V0
@V1
def command(
    paths: tuple[str, ...],
    *,
    output: str,
    strict: bool,
    max_errors: int,
    bundle: bool,
    ignore: tuple[str, ...],
    v0_compatible: bool,
    v1_compatible: bool,
) -> int:
    """Load, compile and report."""
    del v1_compatible
    version = version_of(v0_compatible=v0_compatible)
    try:
        files = load(paths, version=version, ignore=ignore, bundles=bundle, documents=bundle)
        program = compile_modules(files.modules, options=replace(CompileOptions(), strict=strict))
        program.check_data(files.data)
    except LoadErrors as errors:
        told = [{"message": message} for message in errors.messages]
        complain(_json(told) if output == "json" else str(errors))
        return exit_codes.NO
    except RegoErrors as errors:
        shown = errors.errors[: max_errors or None]
        if output == "json":
            complain(_json([document(error) for error in shown]))
        else:
            complain(str(RegoErrors(shown)))
            if len(shown) < len(errors.errors):
                complain("rego_compile_error: error limit reached")
        return exit_codes.NO
    return 0


def document(error: RegoLoadError) -> dict[str, Any]:
    """A fault of a source as OPA writes it."""
    found: dict[str, Any] = {"message": error.message, "code": error.code}
    if error.location.row:
        found["location"] = place(error.location)
    if error.details:
        found["details"] = "\n".join(error.details)
    return found


def _json(errors: list[dict[str, Any]]) -> str:
    return json_indented({"errors": errors}, "", "  ")
