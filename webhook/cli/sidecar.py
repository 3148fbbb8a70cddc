"""``waddle sidecar``: stores the decision log durably and sends it to sinks."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import InputPath
from webhook.printable import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.decisions.sidecar.settings import SidecarSettings
    from webhook.log import Logger

LOOK_SECONDS: Final = 2.0
"""The interval between reads of an unusable configuration with ``--wait``, in seconds."""


@click.command(
    "sidecar",
    help="Receive decisions, store them on disk, and deliver them to sinks."
    + exit_codes.paragraph("sidecar"),
)
@click.option(
    "--config",
    required=True,
    multiple=True,
    type=InputPath(exists=False),
    help=(
        "The configuration file; see docs/decisions.md. If repeated, the sinks of later "
        "files are added."
    ),
)
@click.option(
    "--wait",
    is_flag=True,
    help=(
        "Wait for a valid configuration instead of ending. A sidecar that ends at once can "
        "keep its Pod's other containers from starting."
    ),
)
@click.option("--check", is_flag=True, help="Check the configuration, print its errors, and exit.")
def command(config: tuple[Path, ...], *, wait: bool, check: bool) -> None:
    """Run until SIGTERM."""
    # Imported here: --help and a mistyped option do not need it.
    import asyncio  # noqa: PLC0415

    from webhook import garbage, heap, log  # noqa: PLC0415
    from webhook.decisions.configuration import InvalidConfiguration, load_all  # noqa: PLC0415
    from webhook.decisions.sidecar.process import run_sidecar  # noqa: PLC0415
    from webhook.decisions.sidecar.settings import read_settings  # noqa: PLC0415

    try:
        settings = read_settings(load_all(config))
    except InvalidConfiguration as error:
        if check or not wait:
            raise click.ClickException(str(error)) from None
        logger = log.open_log().logger("sidecar")
        settings = _wait_for(lambda: read_settings(load_all(config)), logger)
    if check:
        click.echo("the configuration is valid")
        return
    # Batches of a few hundred KiB fragment the arena of each thread. With gRPC, 60,000 records sent
    # at once left 73 MiB resident, and 56 MiB with one arena and separately mapped batches.
    heap.bound(arenas_max=1, mapped_bytes=64 * 1024)
    lines = log.open_log()
    log.adopt_standard_logging(lines)
    garbage.running()
    try:
        asyncio.run(run_sidecar(settings, lines.logger("sidecar")))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{place}{reason_of(error)}") from None


def _wait_for(read: Callable[[], SidecarSettings], logger: Logger) -> SidecarSettings:
    """Returns the settings once they can be read; SIGTERM ends the process."""
    from webhook.decisions.configuration import InvalidConfiguration  # noqa: PLC0415  # see command

    # The first process of a container ignores signals without a handler.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(exit_codes.OK))
    logged = ""
    while True:
        try:
            settings = read()
        except InvalidConfiguration as error:
            fault = str(error)
        else:
            signal.signal(signal.SIGTERM, before)
            return settings
        if logged != fault:
            logged = fault
            logger.error("the configuration is invalid; waiting for a valid one", error=fault)
        time.sleep(LOOK_SECONDS)
