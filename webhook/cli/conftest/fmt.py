"""``waddle conftest fmt``: Rego files laid out anew, as ``conftest fmt`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, ConftestExit, Flags
from webhook.cli.policy_options import dash_is_standard_input

if TYPE_CHECKING:
    from webhook.rego.errors import RegoLoadError
    from webhook.rego.syntax.ast import RegoVersion

_HELP = """Lay Rego files out anew, in their places; byte by byte as conftest does.

A file is left as it is if its layout would lose a comment or code: OPA's does in rare places.

\b
  waddle conftest fmt policy/
  waddle conftest fmt --check policy/
"""


@click.command(name="fmt", cls=Flags, help=_HELP + exit_codes.paragraph("conftest fmt"))
@click.argument("files", metavar="PATH...", nargs=-1, callback=dash_is_standard_input)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option(
    "--rego-version", default="v1", show_default=True, help="The syntax of Rego: v0 or v1."
)
@CONFIG_FILE
def command(files: tuple[str, ...], *, check: bool, rego_version: str, config_file: str) -> None:
    """Lay out, and write or complain."""
    del config_file
    version = rego_version.lower()
    if rego_version not in {"v0", "V0", "v1", "V1"}:
        raise ConftestExit(
            f"failed to parse rego-version flag: invalid Rego version: {rego_version}"
        )
    _lay_out(files, "v0" if version == "v0" else "v1", check=check)


def _lay_out(files: tuple[str, ...], version: RegoVersion, *, check: bool) -> None:
    from webhook.cli.rego.fmt_run import (  # noqa: PLC0415  # --help needs none of it
        Stopped,
        files_below,
        read,
        write,
    )
    from webhook.policies.rego_files import LoadErrors  # noqa: PLC0415
    from webhook.rego.errors import RegoErrors  # noqa: PLC0415
    from webhook.rego.format.module import Unformattable, error_text, formatted  # noqa: PLC0415
    from webhook.rego.syntax.parser import parse_module  # noqa: PLC0415

    faults: list[RegoLoadError] = []
    try:
        policies = {name: read(name) for path in files for name in files_below(path)}
    except Stopped as stopped:
        reason = str(stopped).removeprefix("l")
        raise ConftestExit(f"get rego files: 1 error occurred during loading: {reason}") from None
    for file, source in policies.items():
        try:
            parse_module(source, file, version)
        except RegoErrors as errors:
            faults += errors.errors
    if faults:
        raise ConftestExit(f"get rego files: {LoadErrors(faults)}")
    if not policies:
        raise ConftestExit(f"no policies found in [{' '.join(files)}]")
    for file, source in policies.items():
        try:
            text = formatted(source, file, version, version)
            if text != source and check:
                raise ConftestExit("files not formatted")
            if text != source:
                write(file, source, text, version)
        except Stopped as stopped:
            raise ConftestExit(str(stopped)) from None
        except RegoErrors as errors:
            raise ConftestExit(f"format: {error_text(errors)}") from None
        except Unformattable as fault:
            raise ConftestExit(f"format: {fault}") from None
