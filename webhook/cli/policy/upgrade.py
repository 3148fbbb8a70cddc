"""``waddle policy upgrade``: another version of policies that are installed."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import cluster_options
from webhook.cli.policy.install import DRY_RUN
from webhook.cli.registry_access import ArtifactSource, source_options

_HELP = """Upgrade installed policies to another version.

A constraint keeps the enforcementAction that it has in the cluster; a new one begins at dryrun.
As install does, it says first what in the cluster would violate them.

\b
  waddle policy upgrade registry.example/team/policies:v2
"""


@click.command(name="upgrade", help=_HELP + exit_codes.paragraph("policy upgrade"))
@click.argument("image", metavar="REF")
@click.option("--prune", is_flag=True, help="Delete what the new version does not have.")
@DRY_RUN
@cluster_options
@source_options
def command(
    image: str,
    *,
    prune: bool,
    dry_run: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    source: ArtifactSource,
) -> int:
    """Pull, check and apply."""
    # Here and not above: they bring aiohttp, the engine and the event loop.
    from webhook.cli.policy import install_run  # noqa: PLC0415

    options = install_run.ClusterOptions(
        kubeconfig, context, namespace, upgrades=True, prunes=prune, dry_run=dry_run
    )
    return install_run.run(image, source, options)
