"""``waddle uninstall``: removes Waddle from a cluster in an order that blocks no request."""

from __future__ import annotations

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import cluster_options

_HELP = """Remove Waddle from a cluster, in an order in which no request is ever held up.

\b
  waddle uninstall --webhooks --yes    before its Pods go: nothing asks them any more
  waddle uninstall --policies --yes    after they have gone: what replicas made, and policies

--webhooks removes the webhook configurations of this installation. --policies removes what outlives
its Pods and its manifests: generated ValidatingAdmissionPolicies, policy reports, every constraint,
template, mutator and other object of its kinds, and their CRDs. It refuses while replicas run, or
Gatekeeper, whose policies they are as well. Without --yes nothing is removed: what would be is shown.
"""


@click.command("uninstall", help=_HELP + exit_codes.paragraph("uninstall"))
@click.option("--webhooks", is_flag=True, help="Remove the webhook configurations.")
@click.option(
    "--policies",
    is_flag=True,
    help="Remove all objects that replicas created, all policies and their CRDs.",
)
@click.option(
    "--name", default="waddle", show_default=True, help="The prefix of the installation's names."
)
@click.option("--yes", is_flag=True, help="Remove the objects; without it they are only shown.")
@cluster_options
def command(
    *,
    webhooks: bool,
    policies: bool,
    name: str,
    yes: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> int:
    """Show what there is to remove, or with ``--yes`` remove it."""
    if not webhooks and not policies:
        raise click.UsageError("add --webhooks, --policies or both")
    # Imported here: it loads aiohttp and the event loop.
    from webhook.cli.uninstall.run import Uninstallation, run  # noqa: PLC0415

    return run(
        Uninstallation(webhooks=webhooks, policies=policies, name=name, namespace=namespace),
        remove=yes,
        kubeconfig=kubeconfig,
        context=context,
    )
