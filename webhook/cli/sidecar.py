"""``waddle sidecar``: the decision log's durable half."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from webhook import log
from webhook.cli import exit_codes
from webhook.decisions.configuration import ConfigurationError, load
from webhook.decisions.sidecar.memory import bound_allocator
from webhook.decisions.sidecar.process import run_sidecar
from webhook.decisions.sidecar.settings import read_settings


@click.command(
    "sidecar",
    help="Receive decisions, make them durable, acknowledge them and drain them to sinks."
    + exit_codes.paragraph("sidecar"),
)
@click.option(
    "--config",
    required=True,
    type=click.Path(path_type=Path),
    help="Configuration file; see docs/decisions.md.",
)
@click.option("--check", is_flag=True, help="Read the configuration, say what is wrong, and exit.")
def command(config: Path, *, check: bool) -> None:
    """Run until SIGTERM."""
    try:
        settings = read_settings(load(config))
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    if check:
        click.echo("the configuration is good")
        return
    bound_allocator()
    lines = log.open_log()
    log.adopt_standard_logging(lines)
    try:
        asyncio.run(run_sidecar(settings, lines.logger("sidecar")))
    except OSError as error:
        raise click.ClickException(str(error)) from None
