"""Reads a cluster's policies in force: each at its stage of a roll-out."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api import config
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, namespace_of, text
from webhook.api.shapes import annotations_of, object_of, objects_of, status_of, texts_of
from webhook.cli.cluster_access import REVIEW_SECONDS, TEMPLATES, list_objects
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError
from webhook.constraint import constraint, rollout
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.kyverno.kinds import AUDITED
from webhook.log import Log
from webhook.policy_kinds.known import EXTENSIONS, kind_of_document
from webhook.policy_kinds.table import CONSTRAINT_GROUPS, KYVERNO_KINDS
from webhook.settings.serve import KEY_SECRET
from webhook.webhook_rules.coverage import REASON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.client import Client
    from webhook.policies.request_coverage import RequestCoverage


async def read_constraints(
    client: ClusterClient, policies: Client, namespace: str
) -> tuple[int, list[str]]:
    """Loads templates and constraints into a client; returns the number of templates, and faults.

    ``namespace`` is Waddle's.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`, as all functions here.
    """
    templates = await list_objects(client, TEMPLATES)
    faults = add_each(templates, policies.add_template)
    documents: list[Mapping[str, Any]] = []
    for resource in await Discovery(client).kinds(constraint.GROUP, "v1beta1"):
        documents += await list_objects(client, resource)
    documents += await list_objects(client, CONSTRAINT_GROUPS.resource)
    staged = [
        rollout.staged(item, item.get("status"))
        for item in await _verified(client, namespace, documents)
    ]
    faults += add_each(staged, policies.add_constraint)  # groups last: they need the others
    return len(templates), faults


async def read_extensions(
    client: ClusterClient, namespace: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns policies beside templates and constraints, and their kinds that may not be listed."""
    documents: list[Mapping[str, Any]] = []
    unreadable = []
    for row in EXTENSIONS:
        try:
            documents += await list_objects(client, row.resource)
        except ApiError as error:
            if not error.is_forbidden:
                raise
            unreadable.append(f"no right to list: {row.gvk}")
    return [_staged(item) for item in await _verified(client, namespace, documents)], unreadable


async def read_kyverno(client: ClusterClient) -> list[dict[str, Any]]:
    """Returns Kyverno's policies in CEL, at any served version."""
    discovery, documents = Discovery(client), []
    for row in KYVERNO_KINDS:
        with contextlib.suppress(UnknownKind):
            resource = await discovery.of_versions(row.gvk, row.versions)
            documents += [dict(item) for item in await list_objects(client, resource)]
    return documents


class KyvernoStanding(NamedTuple):
    """The state of a Kyverno policy or exception in a cluster, with notes.

    ``state`` is Usable, Audited, NotFollowed, NotAsked or Unusable. Replicas write no status for
    these objects: the state follows from the flag of the replicas' Pods and from the webhook
    configurations.
    """

    title: str
    state: str
    actions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NOT_FOLLOWED: Final = "replicas ignore it: --kyverno-policies is off"


def arguments_of(pod: Mapping[str, Any]) -> list[str]:
    """Returns the arguments of a Pod's containers."""
    return [
        argument
        for container in objects_of(object_of(pod.get("spec")).get("containers"))
        for name in ("command", "args")
        for argument in texts_of(container.get(name))
    ]


def kyverno_mode(pods: Iterable[Mapping[str, Any]]) -> str:
    """Reads --kyverno-policies of Waddle's Pods; empty if no Pod has arguments.

    If they differ, as in a roll-out, the mode that evaluates most is returned.
    """
    flag, modes = "--kyverno-policies=", set()
    for pod in pods:
        if arguments := arguments_of(pod):
            values = [
                argument.removeprefix(flag) for argument in arguments if argument.startswith(flag)
            ]
            modes.add(values[-1] if values else "off")
    return next((mode for mode in ("enforce", "audit", "off") if mode in modes), "")


async def kyverno_standings(
    client: ClusterClient, mode: str, coverage: RequestCoverage
) -> list[KyvernoStanding]:
    """Returns the states of Kyverno's policies in CEL, and of their exceptions."""
    documents = await read_kyverno(client)
    return standings_of(documents, mode, coverage) if documents else []


def standings_of(
    documents: Iterable[dict[str, Any]], mode: str, coverage: RequestCoverage
) -> list[KyvernoStanding]:
    """Returns the states of given policies; ``mode`` is as of :func:`kyverno_mode`."""
    from webhook.kyverno import validating_policy as reading  # noqa: PLC0415  # it brings CEL
    from webhook.review.kyverno_policies import KyvernoPolicies  # noqa: PLC0415  # likewise

    standings, items = [], []
    for document in documents:
        kind, name = gvk_of(document).kind, _named(document)
        try:
            item = reading.read_kyverno(document)
        except ConstraintFrameworkError as error:
            standings.append(KyvernoStanding(f"{kind}/{name}", "Unusable", (), (str(error),)))
            continue
        items.append(item)
        actions = item.actions if isinstance(item, reading.ValidatingPolicy) else ()
        state, notes = kyverno_state(document, mode, coverage)
        standings.append(KyvernoStanding(f"{kind}/{item.title}", state, actions, notes))
    notes_of: dict[str, list[str]] = {}
    for kind, name, note in KyvernoPolicies(items).warnings({}):
        notes_of.setdefault(f"{kind}/{name}", []).append(note)
    noted = [
        standing._replace(notes=(*standing.notes, *notes_of.get(standing.title, ())))
        for standing in standings
    ]
    return sorted(noted, key=lambda standing: standing.title)


def kyverno_state(
    document: Mapping[str, Any], mode: str, coverage: RequestCoverage
) -> tuple[str, tuple[str, ...]]:
    """Returns the state of a usable policy or exception, and notes on it."""
    if mode == "off":
        return "NotFollowed", (NOT_FOLLOWED,)
    if mode == "audit":
        return "Audited", (AUDITED,)
    state = coverage(document)
    if state is None:
        return "Usable", ()
    if state.extent == "not at all":
        return REASON, (f"{REASON}: {state.text}",)
    return "Usable", state.notes


def _named(document: Mapping[str, Any]) -> str:
    namespace, name = namespace_of(document), name_of(document)
    return f"{namespace}/{name}" if namespace else name


async def _verified(
    client: ClusterClient, namespace: str, documents: list[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Returns the objects with their valid records of roll-outs.

    Without the right to read the keys, the stages of the statuses are used.
    """
    if not any(rollout.ANNOTATION in annotations_of(item) for item in documents):
        return documents
    # Imported here: these modules import the clients of a cluster.
    from webhook.controllers.revisions.keeper import REVISIONS  # noqa: PLC0415
    from webhook.controllers.revisions.keys import RevisionKeys  # noqa: PLC0415
    from webhook.controllers.revisions.rollout_records import (  # noqa: PLC0415
        FIELD,
        RolloutRecords,
    )

    logger = Log(lambda _: None).logger("rollouts")
    keys = RevisionKeys(client, namespace, KEY_SECRET, logger, writes=False)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REVIEW_SECONDS):
            await keys.load(lambda _: None)
    records = RolloutRecords(keys, logger)
    if keys.can_sign:
        with contextlib.suppress(ApiError):
            for item in await list_objects(client, REVISIONS):
                records.take(text(item, "spec", "subject", "uid"), status_of(item).get(FIELD))
    return [records.verified(item) for item in documents]


def _staged(document: Mapping[str, Any]) -> dict[str, Any]:
    row = kind_of_document(document)
    assert row is not None
    return dict(row.staged(document, document.get("status")))


async def read_configuration(client: ClusterClient, namespace: str) -> list[Mapping[str, Any]]:
    """Returns the effective Config, in Waddle's ``namespace``, and the SyncSets."""
    policies: list[Mapping[str, Any]] = []
    for gvk in (config.CONFIG, config.SYNC_SET):
        policies += [
            document
            for document in await list_kind(client, gvk)
            if gvk == config.SYNC_SET
            or (name_of(document), document["metadata"].get("namespace"))
            == (config.CONFIG_NAME, namespace)
        ]
    return policies


async def read_configs(
    client: ClusterClient, namespace: str
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Returns the Config that counts, or why it may not be read."""
    try:
        configuration = await read_configuration(client, namespace)
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return [], [f"no right to list: {config.CONFIG}"]
    return [item for item in configuration if gvk_of(item).kind == config.CONFIG.kind], []


async def list_kind(client: ClusterClient, gvk: GroupVersionKind) -> list[Object]:
    """Returns every object of a kind; none if it is not served."""
    try:
        resource = await Discovery(client).resource(gvk)
    except UnknownKind:
        return []
    return await list_objects(client, resource)


def add_each(documents: Iterable[Mapping[str, Any]], add: Callable[[Any], Any]) -> list[str]:
    """Adds all valid objects; a refused object is a fault, and affects no other."""
    faults = []
    for document in documents:
        try:
            add(document)
        except ConstraintFrameworkError as error:
            faults.append(f"{gvk_of(document).kind}/{name_of(document)}: {error}")
    return faults
