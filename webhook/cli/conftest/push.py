"""``waddle conftest push``: policies and data into a registry."""

from __future__ import annotations

import time

import click

from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, TLS, ConftestExit, Flags
from webhook.cli.terminal import write

_HELP = """Push policies and data to a registry, each file as a layer.

The files are loaded first, as a test does it: what cannot be used is not pushed.

\b
  waddle conftest push registry.example/policies:v1
  waddle conftest push -p rego -d data registry.example/policies:v1
"""


@click.command(name="push", cls=Flags, help=_HELP + exit_codes.paragraph("conftest push"))
@click.argument("repository", metavar="REPOSITORY", nargs=-1)
@click.option(
    "-p",
    "--policy",
    default="policy",
    show_default=True,
    metavar="PATH",
    help="Files or a folder of policies; '' for none.",
)
@click.option(
    "-d",
    "--data",
    default="",
    metavar="PATH",
    help="Files or folders of data; without it those of --policy.",
)
@TLS
@click.option(
    "--rego-version", default="v1", show_default=True, help="The syntax of Rego: v0 or v1."
)
@CONFIG_FILE
def command(
    repository: tuple[str, ...],
    *,
    policy: str,
    data: str,
    tls: bool | None,
    rego_version: str,
    config_file: str,
) -> None:
    """Load, check and push."""
    del config_file
    if not repository:
        raise ConftestExit("missing required arguments")
    if "/" not in repository[0]:
        raise ConftestExit("destination url missing repository")
    if not policy and not data:
        raise ConftestExit("either policy or data must be set")
    from webhook.conftest import registry  # noqa: PLC0415  # --help needs none of it
    from webhook.conftest.policies import ConftestPolicyError, PolicyOptions  # noqa: PLC0415
    from webhook.registry.errors import InvalidReference  # noqa: PLC0415
    from webhook.registry.reference import parse_reference  # noqa: PLC0415

    if rego_version.lower() not in {"v0", "v1"}:
        raise ConftestExit(f"push bundle: invalid Rego version: {rego_version}")
    options = PolicyOptions(version="v0" if rego_version.lower() == "v0" else "v1")
    try:
        reference = parse_reference(repository[0])
        _log(f"pushing bundle to: {reference}")
        digest = registry.push(reference, policy, data or policy, options, tls=tls)
    except (ConftestPolicyError, InvalidReference) as error:
        raise ConftestExit(f"push bundle: {error}") from None
    _log(f"pushed bundle with digest: {digest}")


def _log(text: str) -> None:
    """Writes a line as Go's log does."""
    write(f"{time.strftime('%Y/%m/%d %H:%M:%S')} {text}")
