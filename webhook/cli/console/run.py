"""Assembles the console: its source, its log, its port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook import garbage, log
from webhook.cli import exit_codes
from webhook.cli.clients import new_client
from webhook.cli.console.login import InvalidLogin, login_of
from webhook.cli.formats.finding import (
    Report,
    ShownFinding,
    level_of,
    place_in_cluster,
    shown_resource,
)
from webhook.cli.formats.sarif import as_sarif
from webhook.cli.terminal import complain
from webhook.cluster import event_loop
from webhook.cluster.credentials import CredentialsError
from webhook.console.application import ConsoleOptions
from webhook.console.files import FilesSource, Place
from webhook.console.gate import LOOPBACK
from webhook.console.picture import Picture, Shown, ShownCluster, ShownViolation, clusters_of
from webhook.console.process import CONNECTIONS_MAX, RunningSource, serve
from webhook.console.sorts import descriptions
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.server.http.listener import listen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.console.login import Login
    from webhook.console.rights import Rights
    from webhook.log import Logger
    from webhook.policies.recorded_answers import RecordedAnswers


def run(  # noqa: PLR0913  # one for each option of the command
    *,
    policies: tuple[Path, ...],
    manifests: tuple[Path, ...],
    answers: RecordedAnswers,
    kubernetes: bool,
    kubeconfig: str | None,
    contexts: tuple[str, ...],
    namespace: str,
    kyverno: str,
    decisions: Path | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    **sign_in: Any,
) -> int:
    """Serves until a signal; returns the exit code."""
    import fcntl  # noqa: F401, PLC0415  # Windows lacks it, and its signals differ

    over_cluster = kubernetes or kubeconfig is not None or bool(contexts)
    inputs = policies, contexts, decisions
    clusters, login = _clusters_and_login(*inputs, over_cluster=over_cluster, sign_in=sign_in)
    try:
        listening = listen(host, port, backlog=CONNECTIONS_MAX)
    except OSError as error:
        complain(f"{host}:{port}: {error.strerror or error}")
        return exit_codes.NO
    logger = _logger()

    def source(context: str | None, shown: Shown) -> RunningSource:
        if policies:
            client = new_client(reviewed_targets=ADMISSION_ALONE)
            return FilesSource(Place(policies, manifests, answers), client, shown, logger)
        # Only for clusters: this brings aiohttp, and kubernetes for credentials.
        from webhook.cluster.credentials import load_credentials  # noqa: PLC0415
        from webhook.console.cluster import ClusterSource  # noqa: PLC0415

        credentials = load_credentials(kubeconfig, context=context)
        followed = {"context": context or "", "kyverno": kyverno}
        return ClusterSource(credentials, namespace, new_client, shown, logger, **followed)

    names = {*LOOPBACK, *hosts, *([] if login is None else [login.host])}

    async def main() -> None:
        sources: dict[ShownCluster | None, tuple[RunningSource, Shown]] = {}
        for cluster in clusters or (None,):
            only = contexts[0] if contexts else None
            shown = Shown()
            followed = source(only if cluster is None else cluster.name, shown)
            sources[cluster] = followed, shown
        rights = rights_of(login, followed)
        options = ConsoleOptions(decisions, frozenset(names), sarif, login, rights, clusters)
        await serve(listening, sources, options, logger)

    try:
        event_loop.run(main())
    except CredentialsError as error:
        complain(str(error))
        return exit_codes.NO
    return exit_codes.OK


def _logger() -> Logger:
    """The console's, once the process is set up to write a log."""
    lines = log.open_log()
    log.adopt_standard_logging(lines)
    garbage.running()
    return lines.logger("console")


def _clusters_and_login(
    policies: tuple[Path, ...],
    contexts: tuple[str, ...],
    decisions: Path | None,
    *,
    over_cluster: bool,
    sign_in: dict[str, Any],
) -> tuple[tuple[ShownCluster, ...], Login | None]:
    """Returns the named clusters, if there are several, and the sign-in.

    Raises :class:`click.UsageError` for conflicting options.
    """
    if over_cluster == bool(policies):
        raise click.UsageError(
            "give either --policies, to show files, or --kubernetes, to show a cluster"
        )
    clusters = clusters_of(dict.fromkeys(contexts)) if len(set(contexts)) > 1 else ()
    if clusters and decisions is not None:
        raise click.UsageError("--decisions is the log of one cluster: give exactly one --context")
    try:
        login = login_of(over_cluster=over_cluster, **sign_in)
    except InvalidLogin as error:
        raise click.UsageError(str(error)) from None
    if clusters and login is not None:
        raise click.UsageError("a login is for one cluster: give exactly one --context")
    return clusters, login


def rights_of(login: Login | None, followed: RunningSource) -> Rights | None:
    """Returns the visitors' rights, as the cluster's API server decides them."""
    if login is None:
        return None
    from webhook.console.cluster import ClusterSource  # noqa: PLC0415  # as above
    from webhook.console.rights import Rights  # noqa: PLC0415

    assert isinstance(followed, ClusterSource)
    return Rights(lambda: followed.server)


def sarif(picture: Picture, violations: Sequence[ShownViolation]) -> str:
    """Violations as `waddle test` and `waddle audit` write them for code scanning."""
    reported, rules = {}, []
    for item, described in descriptions(picture.policies):
        if item.category == "constraint":
            name = f"{item.kind}/{item.name}"
            reported[name] = described
            if item.state in {"active", "degraded"}:
                rules.append(name)
    return as_sarif(Report(rules, list(map(_finding, violations)), descriptions=reported))


def _finding(item: ShownViolation) -> ShownFinding:
    file, _, line = item.place.rpartition(":")
    return ShownFinding(
        rule=item.policy,
        level=level_of(item.action.split(",")),
        label=item.action,
        subject=shown_resource(*item.resource),
        message=item.message,
        file=file,
        line=int(line or 1),
        place=place_in_cluster(*item.resource),
    )
