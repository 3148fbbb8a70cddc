"""``waddle krm``: a function on Kubernetes' resources, as kustomize and kpt run them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import PROVIDERS, filenames_option
from webhook.cli.terminal import complain, write

if TYPE_CHECKING:
    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Validate a ResourceList from standard input, as kustomize and kpt run functions.

Policies are those among its items, those of the files given, and those of the files that its
functionConfig names (spec.policies, or a ConfigMap's data.policies). The list is printed as it
came, with a result for each violation: deny is an error, warn a warning, dryrun an info.
Warnings about policies and files are results, too. Standard error has them in lines, for
kustomize, which shows no results.

\b
  kpt fn eval manifests/ --exec "waddle krm -f policies/"
  kustomize build --enable-alpha-plugins --enable-exec overlay/
"""


@click.command(name="krm", help=_HELP + exit_codes.paragraph("krm"))
@filenames_option("A file or folder of policies, as FILE alone is. Repeatable.")
@PROVIDERS
def command(filenames: tuple[str, ...], answers: RecordedAnswers) -> int:
    """Review the items and print the list with the results."""
    # Here and not above: --help, completion and a mistyped option need none of it.
    from webhook.cli.krm import run as krm_run  # noqa: PLC0415
    from webhook.cli.sources import CannotTest  # noqa: PLC0415

    if "-" in filenames:
        raise click.UsageError(
            "standard input is the ResourceList: give policies as files, or as items of that list"
        )
    raw = sys.stdin.buffer.read(krm_run.BYTES_MAX + 1)
    try:
        outcome = krm_run.validate(raw, [Path(name) for name in filenames], answers)
    except CannotTest as error:
        raise error.exiting(exit_codes.NO) from None
    write(outcome.text)
    for line in outcome.messages:
        complain(line)
    if outcome.nothing:
        return exit_codes.UNKNOWN
    return exit_codes.NO if outcome.failed else exit_codes.OK
