"""``waddle size``: how many replicas a load needs, from measured curves."""

from __future__ import annotations

import json
from importlib import resources

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.size.model import UTILISATION_MAX, Figures, Load, NoPlan
from webhook.cli.terminal import write
from webhook.printable import quantity

_HELP = """Say how many replicas a load needs, one core for each.

The costs were measured on one machine (see loadtest/README.md): measure yours by
`make bench-curves`, or give its --speed.
"""


@click.command("size", help=_HELP + exit_codes.paragraph("size"))
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), required=True, help="Requests a second."
)
@click.option(
    "--constraints",
    type=click.IntRange(min=1),
    required=True,
    help="The number of constraints that match a typical request.",
)
@click.option(
    "--p99",
    "p99_ms",
    type=click.FloatRange(min=0, min_open=True),
    required=True,
    metavar="MS",
    help="The limit of the 99th percentile of latency, in milliseconds.",
)
@click.option(
    "--spare",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="The number of replicas that may fail while the others still carry the load.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="The speed of a core, relative to the measured one: 0.5 is half as fast.",
)
@output_option(*words.SHORT)
def command(
    rate: float, constraints: int, p99_ms: float, spare: int, speed: float, output: str
) -> None:
    """Find the plan and print it."""
    document = json.loads(resources.files("webhook.cli").joinpath("size_figures.json").read_bytes())
    figures = Figures.read(document)
    try:
        plan = figures.plan(Load(rate, constraints, p99_ms, speed))
    except NoPlan as impossible:
        raise click.ClickException(str(impossible)) from None
    total = plan.replicas + spare
    if output == "json":
        sizing = {
            "replicas": total,
            "spare": spare,
            "utilisation": round(plan.utilisation, 3),
            "cpu_ms": round(plan.cpu_ms, 3),
            "p99_ms": round(plan.p99_ms, 2),
            "memory_mib": round(plan.memory_mib),
            "processor": figures.processor,
        }
        write(json.dumps(sizing))
        return
    write(
        f"{quantity(total, 'replica')}: {plan.replicas} for the load, {spare} to spare\n"
        f"each at {plan.utilisation:.0%} of a core while {plan.replicas} serve "
        f"(at most {UTILISATION_MAX:.0%} is planned), {plan.cpu_ms:.2g} ms of it for each request\n"
        f"p99 {plan.p99_ms:.2g} ms, of {p99_ms:g} ms\n"
        f"memory about {plan.memory_mib:.0f} MiB each, without synced data\n"
        f"measured on: {figures.processor}"
    )
