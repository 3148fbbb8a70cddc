"""``waddle migrate kyverno``: lists the policies that run, and parts without an equivalent."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import filenames_option

_HELP = """Say, policy by policy, what of Kyverno's policies runs here.

\b
  waddle migrate kyverno -f kyverno-policies/
  waddle migrate kyverno -f kyverno-policies/ --converted policies.yaml

A ValidatingPolicy in CEL runs as it is: at every command, and in a cluster with --kyverno-policies.
What it uses and is not here is named. Rules of a ClusterPolicy in CEL, with patterns, conditions of
deny, foreach or podSecurity become ValidatingPolicies. Tests in the given folders and beside the
policies (kyverno-test.yaml) are run by these: each case that differs is named. Rules with
verifyImages and ImageValidatingPolicies become VerificationPolicies, which `waddle provider images`
reads, and a constraint of the template policies/supply-chain/signed-images. PolicyExceptions of
kyverno.io become exceptions of the converted rules. Of all others the line says what takes their
place.
"""


@click.command("kyverno", help=_HELP + exit_codes.paragraph("migrate kyverno"))
@filenames_option("A file or folder, or - for standard input, as FILE alone is. Repeatable.")
@click.option(
    "--converted",
    "target",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "The file to write converted rules to: ValidatingPolicies, VerificationPolicies, "
        "constraints and exceptions."
    ),
)
@output_option(*words.SHORT)
def command(*, filenames: tuple[str, ...], target: Path | None, output: str) -> int:
    """Read, judge and tell."""
    # Imported here: --help and a mistyped option do not need it.
    from webhook.cli.migrate import kyverno_run  # noqa: PLC0415

    return kyverno_run.run(filenames, output, target)
