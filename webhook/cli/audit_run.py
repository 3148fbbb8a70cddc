"""What ``waddle audit --once`` does: policies into a client, one sweep, and nothing written."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any

from webhook import log
from webhook.api import config
from webhook.api.config import AUDIT_PROCESS
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.audit.expansions import read_expansion
from webhook.audit.namespaces import Namespaces
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks
from webhook.audit.source import ListSource
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.cli.clients import new_client
from webhook.cli.cluster_access import REVIEW_SECONDS, TEMPLATES, list_objects
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.kinds import NAMESPACES
from webhook.constraint import constraint, wildcard
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import Limits
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.policies.directory import PolicyDirectory
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.audit.sink import Audited, AuditSink, Identity, SweepEnd, SweepStart
    from webhook.audit.tally import ConstraintKey, Count
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.client import Client
    from webhook.constraint.result import Result


class CannotAudit(Exception):
    """Why there is nothing to audit by, a line for each reason."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for: ``policies`` are directories, none for the cluster's own."""

    namespace: str
    policies: Sequence[Path] = ()
    page_objects: int = 500
    disabled_builtins: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A violation, and the object that violates."""

    identity: Identity
    result: Result


@dataclass(slots=True)
class AuditOutcome:
    """What an audit found. Also the sink that collects it."""

    findings: list[Found] = field(default_factory=list)
    totals: Mapping[ConstraintKey, Count] = field(default_factory=dict)
    ended: SweepEnd | None = None
    faults: list[str] = field(default_factory=list)
    """What is wrong with policies: they were not audited by."""
    skipped: Sequence[str] = ()
    """Files of policies with something in them that is no object."""

    @property
    def denied(self) -> bool:
        """Whether anything that is in the cluster would be denied now."""
        return any("deny" in finding.result.actions for finding in self.findings)

    @property
    def whole(self) -> bool:
        """Whether every policy was audited by, on every object that it is about."""
        end = self.ended
        return end is not None and not (
            self.faults or end.failed or end.unreadable or end.undecided or end.left_out
        )

    async def start(self, start: SweepStart) -> None:
        """Nothing is found yet."""

    async def audited(self, audited: Audited) -> None:
        """Keep the violations."""
        self.findings += [Found(audited.identity, result) for result in audited.responses.results]

    async def gone(self, identity: Identity) -> None:
        """Nothing: a sweep does not tell of it."""

    async def end(self, end: SweepEnd) -> None:
        """Keep how it ended, with the findings in the order of constraints and objects."""
        self.ended = end
        self.findings.sort(key=lambda item: (item.result.constraint.key, item.identity[:3]))

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Keep the totals."""
        del end
        self.totals = totals


async def audit(
    client: ClusterClient, request: Request, progress: AuditSink | None = None
) -> AuditOutcome:
    """Read policies, sweep the cluster and say what was found.

    Raises :class:`CannotAudit`, :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    outcome = AuditOutcome()
    logger = log.Log(_nowhere).logger("audit")
    policies = new_client(disabled_builtins=request.disabled_builtins, asked=ADMISSION_ALONE)
    configuration = await _read_policies(client, request, policies, outcome)
    for namespace in await list_objects(client, NAMESPACES):
        policies.set_namespace(name_of(namespace), namespace)
    await _read_data(client, policies, configuration, outcome)
    patterns = [
        pattern
        for document in configuration
        if document.get("kind") == config.CONFIG.kind
        for pattern in config.excluded_namespaces(document, AUDIT_PROCESS)
    ]
    snapshot = policies.snapshot
    # Who audits from a laptop knows rights from a cluster that is starting.
    source = ListSource(client, request.page_objects, forbidden_seconds=0)
    expansion = await read_expansion(client, await source.look(), logger)
    scope = Scope(snapshot, wildcard.any_of(patterns), expansion)
    sinks: list[AuditSink] = [outcome, Totals(0, [outcome])]
    if progress is not None:
        sinks.append(progress)
    sweep = Sweep(
        dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        scope,
        source,
        Namespaces(client, snapshot.namespaces),
        Sinks(sinks),
        logger,
        limits=lambda: Limits(deadline=time.monotonic() + REVIEW_SECONDS),
    )
    await sweep.run()
    return outcome


def _nowhere(line: bytes) -> None:
    """The log of an audit whose outcome says all that is wrong."""
    del line


async def _read_policies(
    client: ClusterClient, request: Request, policies: Client, outcome: AuditOutcome
) -> list[Mapping[str, Any]]:
    """Fill the client; the Config and SyncSets that belong to the policies."""
    if request.policies:
        report = PolicyDirectory(policies, request.policies).load()
        outcome.faults += map(str, report.faults)
        outcome.skipped = report.skipped
        given: list[Mapping[str, Any]] = [item.document for item in report.configuration]
        if any(document.get("kind") == config.CONFIG.kind for document in given):
            return given
        return [*given, *await _configuration(client, request.namespace)]
    documents = await list_objects(client, TEMPLATES)
    if not documents:
        raise CannotAudit("the cluster has no ConstraintTemplates: name some with --policies")
    _add(documents, policies.add_template, outcome)
    for resource in await Discovery(client).kinds(constraint.GROUP, "v1beta1"):
        _add(await list_objects(client, resource), policies.add_constraint, outcome)
    return await _configuration(client, request.namespace)


async def _configuration(client: ClusterClient, namespace: str) -> list[Mapping[str, Any]]:
    """The cluster's Config and SyncSets."""
    policies: list[Mapping[str, Any]] = []
    for gvk in (config.CONFIG, config.SYNC_SET):
        documents = await _list(client, gvk)
        policies += [
            document
            for document in documents
            if gvk == config.SYNC_SET
            or (name_of(document), document["metadata"].get("namespace"))
            == (config.CONFIG_NAME, namespace)
        ]
    return policies


async def _list(client: ClusterClient, gvk: GroupVersionKind) -> list[Object]:
    """Every object of a kind; none where it is not served."""
    try:
        resource = await Discovery(client).resource(gvk)
    except UnknownKind:
        return []
    return await list_objects(client, resource)


async def _read_data(
    client: ClusterClient,
    policies: Client,
    configuration: Iterable[Mapping[str, Any]],
    outcome: AuditOutcome,
) -> None:
    """What policies may read of the cluster."""
    kinds: frozenset[GroupVersionKind] = frozenset().union(
        *(config.synced_kinds(document) for document in configuration)
    )
    hidden = wildcard.any_of(
        [
            pattern
            for document in configuration
            if document.get("kind") == config.CONFIG.kind
            for pattern in config.excluded_namespaces(document, "sync")
        ]
    )
    for gvk in sorted(kinds):
        documents = [
            document
            for document in await _list(client, gvk)
            if not hidden(document["metadata"].get("namespace", ""))
        ]
        _add(documents, policies.add_data, outcome)


def _add(documents: Iterable[Object], add: Any, outcome: AuditOutcome) -> None:
    """Add each; what is refused is a fault, and costs only itself."""
    for document in documents:
        try:
            add(document)
        except ConstraintFrameworkError as error:
            kind = gvk_of(document).kind
            outcome.faults.append(f"{kind}/{name_of(document)}: {error}")
