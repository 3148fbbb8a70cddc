"""``waddle console``: pages that show what is in force and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import cluster_options

_HELP = """Serve pages that show policies, what they find, and a place to try them.

Over files, on this machine:

\b
  waddle console --policies policies/
  waddle console --policies policies/ --manifests manifests/

Over a cluster, from a laptop or as a Deployment of its own:

\b
  waddle console --kubeconfig ~/.kube/config

Nothing is written and nothing is decided here: admissions are answered by `waddle serve`.
Every page is JSON, too, with ?format=json.
"""

_PATH = click.Path(exists=True, path_type=Path)


@click.command("console", help=_HELP + exit_codes.paragraph("console"))
@click.option(
    "--policies",
    metavar="PATH",
    multiple=True,
    type=_PATH,
    help="A file or folder of templates and constraints. Repeatable.",
)
@click.option(
    "--manifests",
    metavar="PATH",
    multiple=True,
    type=_PATH,
    help="A file or folder of objects, which are reviewed by the policies. Repeatable.",
)
@click.option(
    "--kubernetes",
    is_flag=True,
    help="Follow a cluster: that of the pod, of $KUBECONFIG, or of the user's kubeconfig.",
)
@cluster_options
@click.option(
    "--decisions",
    metavar="PATH",
    type=_PATH,
    help="A file of the decision log, or a sidecar's queue: for the page of decisions.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="The port; 0 for one that the system chooses.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A name, besides localhost, by which browsers may ask for the console. Repeatable.",
)
def command(**options: Any) -> int:
    """Serve until told to stop."""
    # Here and not above: --help and a mistyped option need none of it.
    from webhook.cli.console_run import run  # noqa: PLC0415

    return run(**options)
