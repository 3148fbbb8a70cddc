"""``waddle sidecar``: the decision log's durable half."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes


@click.command(
    "sidecar",
    help="Receive decisions, make them durable, acknowledge them and drain them to sinks."
    + exit_codes.paragraph("sidecar"),
)
@click.option(
    "--config",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="Configuration file; see docs/decisions.md. Repeated: sinks of later files are added.",
)
@click.option("--check", is_flag=True, help="Read the configuration, say what is wrong, and exit.")
def command(config: tuple[Path, ...], *, check: bool) -> None:
    """Run until SIGTERM."""
    # Here and not above: --help and a mistyped option need none of it.
    import asyncio  # noqa: PLC0415

    from webhook import garbage, log  # noqa: PLC0415
    from webhook.decisions.configuration import ConfigurationError, load_all  # noqa: PLC0415
    from webhook.decisions.sidecar.memory import bound_allocator  # noqa: PLC0415
    from webhook.decisions.sidecar.process import run_sidecar  # noqa: PLC0415
    from webhook.decisions.sidecar.settings import read_settings  # noqa: PLC0415

    try:
        settings = read_settings(load_all(config))
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    if check:
        click.echo("the configuration is good")
        return
    bound_allocator()
    lines = log.open_log()
    log.adopt_standard_logging(lines)
    garbage.running()
    try:
        asyncio.run(run_sidecar(settings, lines.logger("sidecar")))
    except OSError as error:
        raise click.ClickException(str(error)) from None
