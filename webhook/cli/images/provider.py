"""``waddle provider images``: an external-data provider that says whether images are signed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.images.options import ImagePlace, place_options
from webhook.cli.policy_options import KUBECONFIG, InputPath
from webhook.cli.terminal import complain

if TYPE_CHECKING:
    import socket

    from webhook.images.provider_process import ImageProviderOptions

_HELP = """Answer whether images are signed, as VerificationPolicies ask.

It speaks Gatekeeper's external-data protocol: keys are references of images. A path of / gives
objects of image, digest, verified, by, attestations, mutable and why; /digest gives the image by its
digest, for mutators. Clients show a certificate, by TLS 1.3. Policies and certificates that change
are read again.

\b
  waddle provider images -f policies/ --cert-dir certs/ --client-ca-name ca.crt
  waddle provider images --kubernetes --secrets /secrets --cert-dir certs/
"""


@click.command("images", help=_HELP + exit_codes.paragraph("provider images"))
@place_options
@click.option(
    "--cert-dir",
    "certificates",
    metavar="DIR",
    required=True,
    type=InputPath(file_okay=False),
    help=(
        "The folder with the certificate (tls.crt), its key (tls.key) and the authorities of "
        "clients."
    ),
)
@click.option(
    "--client-ca-name",
    metavar="NAME",
    default="ca.crt",
    show_default=True,
    help="The file in it with the authorities of clients' certificates.",
)
@click.option(
    "--host", default="", help="The address to listen on; empty for all, of IPv4 and IPv6."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="The port; 0 lets the system choose one.",
)
@click.option(
    "--answer-within",
    "deadline_seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 60),
    default=2.5,
    show_default=True,
    help=(
        "The time to wait for a registry. It must be less than the timeout of the Provider object."
    ),
)
@click.option(
    "--cache",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help=(
        "A file to keep results in, so that they survive a restart. It is created if it does "
        "not exist."
    ),
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help=("The port of /metrics, /healthz and /readyz, without TLS; 0 lets the system choose one."),
)
@click.option(
    "--kubernetes",
    "follows_cluster",
    is_flag=True,
    help="Follow the VerificationPolicies of the cluster, too.",
)
@KUBECONFIG
def command(  # noqa: PLR0913  # each is an option
    *,
    policies: tuple[Path, ...],
    secrets: Path | None,
    place: ImagePlace,
    certificates: Path,
    client_ca_name: str,
    host: str,
    port: int,
    deadline_seconds: float,
    cache: Path | None,
    metrics_port: int | None,
    follows_cluster: bool,
    kubeconfig: str | None,
) -> int:
    """Serve until a signal."""
    if not policies and not follows_cluster:
        raise click.UsageError("no policies are given: add -f PATH or --kubernetes")
    # Here and not above: --help and a mistyped option need none of it.
    from webhook.images.provider_process import CONNECTIONS_MAX, ImageProviderOptions  # noqa: PLC0415
    from webhook.server.http.listener import listen  # noqa: PLC0415

    try:
        listening = listen(host, port, backlog=CONNECTIONS_MAX)
        metrics = None
        if metrics_port is not None:
            metrics = listen(host, metrics_port, backlog=CONNECTIONS_MAX)
    except OSError as error:
        complain(f"{host}:{port}: {error.strerror or error}")
        return exit_codes.NO
    options = ImageProviderOptions(
        policies,
        certificates,
        client_ca_name,
        deadline_seconds,
        secrets,
        cache,
        follows_cluster,
        kubeconfig,
    )
    return _serve(listening, metrics, place, options)


def _serve(
    listening: socket.socket,
    metrics: socket.socket | None,
    place: ImagePlace,
    options: ImageProviderOptions,
) -> int:
    """Serves on these sockets; ``metrics`` has /metrics and the probes, without TLS."""
    from webhook import garbage, log  # noqa: PLC0415  # as above
    from webhook.certificates.pairs import InvalidCertificate  # noqa: PLC0415
    from webhook.cluster.credentials import CredentialsError  # noqa: PLC0415
    from webhook.images.facts_file import UnusableFactsFile  # noqa: PLC0415
    from webhook.images.policy import InvalidVerificationPolicy  # noqa: PLC0415
    from webhook.images.provider_process import serve  # noqa: PLC0415
    from webhook.registry.errors import RegistryError  # noqa: PLC0415

    lines = log.open_log()
    log.adopt_standard_logging(lines)
    garbage.running()

    async def run() -> None:
        async with place.open() as registry:
            await serve(listening, registry, options, lines.logger("provider"), metrics)

    try:
        asyncio.run(run())
    except (
        InvalidVerificationPolicy,
        InvalidCertificate,
        RegistryError,
        UnusableFactsFile,
        CredentialsError,
    ) as error:
        complain(str(error))
        return exit_codes.NO
    return exit_codes.OK
