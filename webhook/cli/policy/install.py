"""``waddle policy install``: policies of a registry in a cluster, which deny nothing yet."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import cluster_options
from webhook.cli.registry_access import ArtifactSource, source_options

_HELP = """Install the templates and constraints of a registry in a cluster.

First it says what in the cluster would violate them, as waddle check --cluster does. Then they
are applied, and every constraint begins at dryrun: it is audited and denies nothing. What is in
the cluster and not by this package stays as it is, and nothing is applied.

\b
  waddle policy install registry.example/team/policies:v1
"""

DRY_RUN = click.option("--dry-run", is_flag=True, help="Check and compare, but apply nothing.")


@click.command(name="install", help=_HELP + exit_codes.paragraph("policy install"))
@click.argument("image", metavar="REF")
@DRY_RUN
@cluster_options
@source_options
def command(
    image: str,
    *,
    dry_run: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    source: ArtifactSource,
) -> int:
    """Pull, check and apply."""
    # Here and not above: they bring aiohttp, the engine and the event loop.
    from webhook.cli.policy import install_run  # noqa: PLC0415

    options = install_run.ClusterOptions(kubeconfig, context, namespace, dry_run=dry_run)
    return install_run.run(image, source, options)
