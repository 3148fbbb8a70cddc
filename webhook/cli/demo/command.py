"""``waddle demo``: a complete installation on this machine, for a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webhook.cli import exit_codes

_HELP = """Run three replicas, a control plane, traffic, a bad policy and the console on this machine.

\b
  waddle demo                            until Control-C, which ends all of it
  waddle demo --kubeconfig kind.yaml     with a cluster of yours that has no policies yet

The control plane is a real API server with etcd, without nodes. It is built once, of the sources that
come with this program, by Go 1.26 or later: some minutes, or a quarter of an hour where nothing of it
has been fetched; then it is kept and starts within seconds. In a checkout `make demo` builds it with a
Go that it gets from the Python registry.

A cluster of yours must reach this machine at --address. Nothing is written to one that has templates or
Gatekeeper, and what was written is removed at the end. Policies hold in the demonstration's namespaces
alone there; in its own cluster they hold everywhere but in waddle-system and kube-system.
"""


@click.command("demo", help=_HELP + exit_codes.paragraph("demo"))
@click.option(
    "--api-server",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A control plane program that was built before.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The kubeconfig of an existing cluster to use instead.",
)
@click.option(
    "--address",
    metavar="IP",
    default="127.0.0.1",
    show_default=True,
    help="The address at which that cluster's API server reaches this machine.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="The console's port; 0 lets the system choose one.",
)
def command(**options: Any) -> int:
    """Run until a signal."""
    # Here and not above: it brings aiohttp and the event loop.
    from webhook.cli.demo.run import run  # noqa: PLC0415

    return run(**options)
