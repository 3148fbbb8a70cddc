"""Runs ``waddle audit --once``: loads policies and sweeps once, without writes."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import log
from webhook.api import config
from webhook.api.config import SYNC_PROCESS
from webhook.api.gvk import GroupVersionKind, name_of
from webhook.audit.admission_policies import read_admission_policies
from webhook.audit.namespaces import Namespaces
from webhook.audit.scope import Scope
from webhook.audit.sink import Audited, AuditSink, Identity, Sinks, SweepEnd
from webhook.audit.source import ListSource
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.cli.clients import new_client
from webhook.cli.cluster_access import REVIEW_SECONDS, list_objects
from webhook.cli.cluster_policies import (
    add_each,
    list_kind,
    read_configuration,
    read_constraints,
    read_extensions,
    read_kyverno,
)
from webhook.cli.terminal import NoResult
from webhook.cluster.kinds import NAMESPACES
from webhook.constraint import wildcard
from webhook.constraint.limits import Limits
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.policies.advice import advice_on_messages
from webhook.policies.directory import PolicyDirectory
from webhook.policies.extensions import Extensions, foreign_warnings, on_top
from webhook.policy_kinds.known import part_of
from webhook.policy_kinds.table import KYVERNO_POLICIES
from webhook.review.policy_set import exclusions_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.audit.tally import ConstraintKey, Count
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.client import Client
    from webhook.constraint.result import Result
    from webhook.external_data.exchange import AskAsync
    from webhook.policies.manifests import Manifest
    from webhook.review.policy_set import PolicySet


@dataclass(frozen=True, slots=True)
class Request:
    """The options of an audit: ``policies`` are directories, none for the cluster's own."""

    namespace: str
    policies: Sequence[Path] = ()
    page_objects: int = 500
    disabled_builtins: Sequence[str] = ()
    ask: AskAsync | None = None
    """Has providers answer."""
    kyverno: bool = False
    """Whether Kyverno's policies of the cluster are evaluated, too."""
    admission_policies: bool = False
    """Whether objects are reviewed by the cluster's own ValidatingAdmissionPolicies, too."""


@dataclass(frozen=True, slots=True)
class AuditedViolation:
    """A violation, and the violating object."""

    identity: Identity
    result: Result


@dataclass(slots=True)
class AuditOutcome(AuditSink):
    """The findings of an audit; also the sink that collects them."""

    findings: list[AuditedViolation] = field(default_factory=list)
    totals: Mapping[ConstraintKey, Count] = field(default_factory=dict)
    ended: SweepEnd | None = None
    faults: list[str] = field(default_factory=list)
    """The faults of unusable policies."""
    advice: list[str] = field(default_factory=list)
    """Warnings of foreign policies that probably have no effect, with file and line."""
    skipped: Sequence[str] = ()
    """Policy files with documents that are no objects."""
    repeated: Sequence[str] = ()
    """Warnings about objects with several definitions."""
    excused: list[AuditedViolation] = field(default_factory=list)
    """The findings that exceptions excuse."""
    policies: PolicySet | None = None
    """The policies that were audited, once they are read."""

    @property
    def denied(self) -> bool:
        """Returns whether any existing object would be denied now."""
        return any("deny" in finding.result.actions for finding in self.findings)

    @property
    def whole(self) -> bool:
        """Whether every policy was audited on every object that it matches."""
        end = self.ended
        return end is not None and not (
            self.faults or end.failed or end.unreadable or end.undecided or end.left_out
        )

    async def audited(self, audited: Audited) -> None:
        """Keeps the violations, and the excused ones."""
        identity, responses = audited.identity, audited.responses
        self.findings += [AuditedViolation(identity, result) for result in responses.results]
        self.excused += [AuditedViolation(identity, result) for result in responses.excused]

    async def end(self, end: SweepEnd) -> None:
        """Keeps the end, with the findings in the order of constraints and objects."""
        self.ended = end
        for each in (self.findings, self.excused):
            each.sort(key=lambda item: (item.result.constraint.key, item.identity[:3]))

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Keeps the totals."""
        del end
        self.totals = totals


async def audit(
    client: ClusterClient, request: Request, progress: AuditSink | None = None
) -> AuditOutcome:
    """Reads policies, sweeps the cluster and returns the findings.

    Raises :class:`NoResult` without policies, :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    outcome = AuditOutcome()
    logger = log.Log(_nowhere).logger("audit")
    client_of_policies = new_client(
        disabled_builtins=request.disabled_builtins, reviewed_targets=ADMISSION_ALONE
    )
    files = await _read_policies(client, request, client_of_policies, outcome)
    for namespace in await list_objects(client, NAMESPACES):
        client_of_policies.set_namespace(name_of(namespace), namespace)
    await _read_data(client, client_of_policies, files.configuration, outcome)
    extensions = await _read_extensions(client, request, files.manifests, outcome)
    policies = extensions.policy_set(
        client_of_policies.snapshot, exclusions_of(files.configuration)
    )
    if request.admission_policies:
        admission_policies = await read_admission_policies(client)
        outcome.faults += admission_policies.texts
        policies = replace(policies, stages=(*policies.stages, admission_policies.policies))
    outcome.policies = policies
    outcome.advice += foreign_warnings(policies, files.manifests)
    snapshot = policies.snapshot
    # An installed audit may wait for rights while the cluster starts; a command does not.
    source = ListSource(client, request.page_objects, forbidden_seconds=0)
    scope = Scope(policies)
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
        ask=request.ask,
    )
    await sweep.run()
    outcome.advice += map(str, advice_on_messages(snapshot.entries))
    return outcome


def _nowhere(line: bytes) -> None:
    """Drops log lines: the outcome has all faults."""
    del line


class _Read(NamedTuple):
    """The objects beside templates and constraints: Configs, SyncSets, and all objects of files."""

    configuration: list[Mapping[str, Any]]
    manifests: tuple[Manifest, ...] = ()


async def _read_policies(
    client: ClusterClient, request: Request, policies: Client, outcome: AuditOutcome
) -> _Read:
    """Fills the client; returns the objects beside the policies."""
    if request.policies:
        report = PolicyDirectory(policies, request.policies).load()
        outcome.faults += map(str, report.faults)
        outcome.skipped = report.skipped
        outcome.repeated = report.repeated
        given: list[Mapping[str, Any]] = [item.document for item in report.configuration]
        if not any(document.get("kind") == config.CONFIG.kind for document in given):
            given += await read_configuration(client, request.namespace)
        kyverno_policies = [item for item in report.read if part_of(item.gvk) == KYVERNO_POLICIES]
        return _Read(given, (*report.configuration, *kyverno_policies))
    templates, faults = await read_constraints(client, policies, request.namespace)
    if not (templates or request.kyverno or request.admission_policies):
        raise NoResult("the cluster has no ConstraintTemplates: name files with --policies")
    outcome.faults += faults
    return _Read(await read_configuration(client, request.namespace))


async def _read_extensions(
    client: ClusterClient,
    request: Request,
    kyverno_policies: Iterable[Manifest],
    outcome: AuditOutcome,
) -> Extensions:
    """Reads ExpansionTemplates and mutators in force; those of files replace equal ones."""
    extensions = Extensions()
    in_force, unreadable = await read_extensions(client, request.namespace)
    if request.kyverno:
        in_force += await read_kyverno(client)
    faults = extensions.load(on_top(list(kyverno_policies), in_force))
    outcome.faults += unreadable
    outcome.faults += [f"{fault.title}: {fault.message}" for fault in faults]
    return extensions


async def _read_data(
    client: ClusterClient,
    policies: Client,
    configuration: Iterable[Mapping[str, Any]],
    outcome: AuditOutcome,
) -> None:
    """Reads the objects of the cluster that policies may read."""
    kinds: frozenset[GroupVersionKind] = frozenset().union(
        *(config.synced_kinds(document) for document in configuration)
    )
    hidden = wildcard.any_of(
        [
            pattern
            for document in configuration
            if document.get("kind") == config.CONFIG.kind
            for pattern in config.excluded_namespaces(document, SYNC_PROCESS)
        ]
    )
    for gvk in sorted(kinds):
        documents = [
            document
            for document in await list_kind(client, gvk)
            if not hidden(document["metadata"].get("namespace", ""))
        ]
        outcome.faults += add_each(documents, policies.add_data)
