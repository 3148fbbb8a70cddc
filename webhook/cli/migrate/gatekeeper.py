"""``waddle migrate gatekeeper``: lists for each object whether it runs, differs or is missing."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import CONTEXT, ask_cluster
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import KUBECONFIG, filenames_option

_HELP = """Say, object by object, what of an installation of Gatekeeper runs here as it is.

\b
  waddle migrate gatekeeper                   # the cluster's, by the kubeconfig
  waddle migrate gatekeeper -f policies/      # a folder's; with Gatekeeper's own manifests, its flags too

Templates are compiled and tried, constraints and mutators checked, flags of Gatekeeper's
Deployments read one by one. What differs is a row of docs/compatibility/*.md. Nothing is written.
"""


@click.command("gatekeeper", help=_HELP + exit_codes.paragraph("migrate gatekeeper"))
@filenames_option(
    "A file or folder, or - for standard input, as FILE alone is. Repeatable. Without it "
    "the cluster is read."
)
@KUBECONFIG
@CONTEXT
@click.option(
    "-n",
    "--namespace",
    default="gatekeeper-system",
    show_default=True,
    help="The namespace that Gatekeeper runs in.",
)
@output_option(*words.SHORT)
def command(
    *,
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    output: str,
) -> int:
    """Read, judge and tell."""
    # Imported here: --help and a mistyped option do not need it.
    from webhook.cli.migrate import run as migrate_run  # noqa: PLC0415

    all_read = True
    if filenames:
        manifests, all_read = migrate_run.from_files(filenames)
    else:
        manifests = ask_cluster(
            kubeconfig, context, lambda client: migrate_run.from_cluster(client, namespace)
        )
    code = migrate_run.notify(manifests, output)
    return code if all_read or code else exit_codes.UNKNOWN
