"""``waddle migrate kubewarden``: Kubewarden's policies, written as constraints and groups."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import filenames_option

_HELP = """Convert Kubewarden's policies and policy groups, where they have an equivalent.

\b
  waddle migrate kubewarden -f groups.yaml > policies/groups.yaml
  waddle migrate kubewarden -f groups.yaml --kind my-policy=MyPolicy

A policy becomes a constraint, a group a ConstraintGroup. Of others nothing is written: standard
error names them, and docs/migrating.md says what becomes of them. cel-policy becomes a template in
CEL. pod-privileged, allow-privilege-escalation-psp, host-namespaces-psp, trusted-repos and
safe-labels become those of the policy library: give its templates beside what is written.
"""


@click.command("kubewarden", help=_HELP + exit_codes.paragraph("migrate kubewarden"))
@filenames_option("A file or folder, or - for standard input, as FILE alone is. Repeatable.")
@click.option(
    "--kind",
    "pairs",
    metavar="MODULE=KIND",
    multiple=True,
    help=(
        "The KIND of your template that replaces a MODULE; the module's settings become its "
        "parameters. MODULE is its address, or the last part of the address without the "
        "version. Repeatable."
    ),
)
def command(*, filenames: tuple[str, ...], pairs: tuple[str, ...]) -> int:
    """Read, translate and write."""
    # Here and not above: --help and a mistyped option need none of it.
    from webhook.cli.migrate import kubewarden_groups  # noqa: PLC0415

    kinds = dict(pair.rpartition("=")[::2] for pair in pairs)
    if not all(kinds) or not all(kinds.values()):
        raise click.UsageError("--kind must be MODULE=KIND")
    return kubewarden_groups.run(filenames, kinds)
