"""``waddle status``: the policies that each replica enforces, since when, and its obstacles."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

import click

from webhook.api import pod_status
from webhook.api.revision import InvalidRevision, PolicyRevision, read_revision
from webhook.cli import exit_codes
from webhook.cli.cluster_access import (
    EXTENSIONS,
    TEMPLATES,
    ask_cluster,
    cluster_options,
    list_objects,
)
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import Duration
from webhook.cli.status import report as status_report
from webhook.cli.status.report import ClusterStanding
from webhook.cli.terminal import complain, write
from webhook.cluster.kinds import PODS
from webhook.constraint import constraint
from webhook.controllers.status.convergence import (
    UNSEEN,
    Convergence,
    ExceptionStanding,
    by_subject,
    converge,
    subject_for,
)
from webhook.controllers.status_kinds import status_resource
from webhook.policy_kinds.known import STATUS_KINDS
from webhook.policy_kinds.table import CONSTRAINT_GROUPS, EXCEPTION_KINDS
from webhook.replicas.pods import WEBHOOK_PODS, replica

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.replicas.pods import Replica
    from webhook.webhook_rules.coverage import CoverageState

_StandingT = TypeVar("_StandingT")

_HELP = """Show templates, constraints, mutators and ExpansionTemplates, and which of Waddle's replicas enforce them.

Exceptions follow, those that end first before the others: whether each is in force, until when, and
when it excused something last.

The API server's own policies follow, validating and mutating ones: whether a binding names them,
whether parameters are there, what the API server's type check warns of, and how much of its limit of
cost their expressions are estimated to use up. Kyverno's policies follow. Synced kinds come last: which
paths of their objects replicas keep for policies, and which templates wait for more.

What keeps requests from the replicas stands below their names: a Service without endpoints, a Pod
that is killed again and again, a certificate that calls cannot use, a missing CRD, and namespaces
that no policy decides about. So do the faults in each replica's /readyz?verbose, which is asked
through the API server.

Read from the replicas' own status objects, so that it says the same whether or not
they are aggregated into .status.byPod, beside a running Gatekeeper for instance.
"""

_TIMEOUT = "How long to wait for each answer of the API server."


@click.command("status", help=_HELP + exit_codes.paragraph("status"))
@cluster_options
@click.option("--timeout", type=Duration(), default="5s", show_default=True, help=_TIMEOUT)
@output_option(*words.SHORT)
def command(
    *, kubeconfig: str | None, context: str | None, namespace: str, timeout: float, output: str
) -> int:
    """Read the cluster once and report."""

    async def question(client: ClusterClient) -> ClusterStanding:
        client.deadline_seconds = timeout
        return await read(client, namespace)

    standing = ask_cluster(kubeconfig, context, question)
    if output == "json":
        write(status_report.as_json(standing))
    else:
        write(status_report.as_table(standing, namespace))
    return 0


async def read(client: ClusterClient, namespace: str) -> ClusterStanding:
    """Reads the replicas, their status for each followed object, and its webhook coverage."""
    from webhook.cli.cluster_policies import kyverno_mode, kyverno_standings  # noqa: PLC0415  # see command
    from webhook.cli.status.admission_policies import (  # noqa: PLC0415  # it brings CEL
        admission_policy_standings,
    )
    from webhook.cli.status.outages import read_outages  # noqa: PLC0415  # it brings aiohttp
    from webhook.cli.status.synced import read_synced  # noqa: PLC0415  # it brings the compiler
    from webhook.cli.webhook_configurations import read_webhook_configurations  # noqa: PLC0415  # see command
    from webhook.cluster.discovery import Discovery  # noqa: PLC0415  # see command
    from webhook.policies.request_coverage import is_judged, read_coverage  # noqa: PLC0415  # see command

    # Objects are read first: a status is then at least as new as the object it is compared with.
    templates = await list_objects(client, TEMPLATES)
    documents = [*templates]
    for resource in await Discovery(client).kinds(constraint.GROUP, "v1beta1"):
        documents += await list_objects(client, resource)
    for resource in (CONSTRAINT_GROUPS.resource, *EXTENSIONS):
        documents += await list_objects(client, resource)
    statuses: list[Object] = []
    for kind in STATUS_KINDS:
        if kind == pod_status.CONFIG:
            continue
        resource = status_resource(kind)
        statuses += await list_objects(client, resource, namespace)
    pods = await list_objects(client, PODS, namespace, {"labelSelector": WEBHOOK_PODS})
    replicas = sorted(
        (item for item in map(replica, pods) if not item.finished), key=lambda item: item.name
    )
    objects = await _converged(client, documents, statuses, replicas)
    exceptions = [
        ExceptionStanding.of(document)
        for row in EXCEPTION_KINDS
        for document in await list_objects(client, row.resource)
    ]
    configured, read_kinds = await read_webhook_configurations(client, namespace)
    coverage = read_coverage(configured, namespace, read_kinds)
    coverage_states: Mapping[str, CoverageState] = {
        document["metadata"]["uid"]: asking
        for document in documents
        if is_judged(document) and (asking := coverage(document)) is not None
    }
    admission_policies = await _visible(
        admission_policy_standings(client), "the API server's own policies"
    )
    standings = kyverno_standings(client, kyverno_mode(pods), coverage)
    kyverno = await _visible(standings, "Kyverno's policies")
    kept = read_synced(client, namespace, templates, pods, objects)
    synced = await _visible(kept, "synced kinds")
    outages = await read_outages(client, namespace, configured, pods)
    return ClusterStanding(
        replicas, objects, exceptions, coverage_states, admission_policies, kyverno, synced, outages
    )


async def _converged(
    client: ClusterClient,
    documents: Sequence[Object],
    statuses: Sequence[Object],
    replicas: Sequence[Replica],
) -> list[Convergence]:
    """Returns the state of each object at each replica; reads trials if a replica waits."""
    grouped = by_subject(statuses)

    def converge_all(revisions: Sequence[PolicyRevision] = ()) -> list[Convergence]:
        return [
            converge(document, grouped.get(subject_for(document), ()), replicas, revisions)
            for document in documents
        ]

    objects = converge_all()
    if any(standing.state in UNSEEN for item in objects for standing in item.standings):
        return converge_all(await _visible(_revisions(client), "policies under trial"))
    return objects


async def _revisions(client: ClusterClient) -> list[PolicyRevision]:
    from webhook.controllers.revisions.keeper import REVISIONS  # noqa: PLC0415  # see command

    revisions = []
    for item in await list_objects(client, REVISIONS):
        with contextlib.suppress(InvalidRevision):
            revisions.append(read_revision(item))
    return revisions


async def _visible(standings: Awaitable[list[_StandingT]], subject: str) -> list[_StandingT]:
    """Returns rows to show; an empty list if the user may not read them."""
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # see command

    try:
        return await standings
    except ApiError as error:
        if not error.is_forbidden:
            raise
        complain(f"{subject} cannot be shown: {error}")
        return []
