"""``waddle conftest pull``: policies fetched from registries, git, the web and files."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, TLS, ConftestExit, Flags

_HELP = """Download policies into a folder.

A SOURCE is oci://HOST/REPOSITORY[:TAG], git::URL, git::URL//FOLDER?ref=TAG,
github.com/OWNER/NAME, http:// or https:// of a file, or a path. Credentials for registries are
those of Docker's configuration.

\b
  waddle conftest pull oci://registry.example/policies:v1
  waddle conftest pull 'git::https://git.example/team/policies//rego?ref=v1'
  waddle conftest pull -p policy https://files.example/deny.rego
"""


@click.command(name="pull", cls=Flags, help=_HELP + exit_codes.paragraph("conftest pull"))
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option(
    "-p",
    "--policy",
    default="policy",
    show_default=True,
    metavar="FOLDER",
    help="The folder to write policies to, below the working folder.",
)
@TLS
@click.option(
    "--absolute-paths", is_flag=True, help="Allow --policy to be outside the working folder."
)
@CONFIG_FILE
def command(
    sources: tuple[str, ...],
    *,
    policy: str,
    tls: bool | None,
    absolute_paths: bool,
    config_file: str,
) -> None:
    """Fetch each."""
    del config_file
    if not sources:
        raise ConftestExit("missing required arguments")
    from webhook.conftest import fetched  # noqa: PLC0415  # --help needs none of it
    from webhook.conftest.policies import ConftestPolicyError  # noqa: PLC0415

    folder = policy if absolute_paths else policy.lstrip("/") or "."
    try:
        fetched.pull(folder, sources, tls=tls)
    except ConftestPolicyError as error:
        raise ConftestExit(str(error)) from None
