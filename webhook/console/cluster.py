"""Follows a cluster by watches of this process, and makes its picture.

There is no leader: each console has its own watches. Data that it may not read is missing, and
marked as missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.api.config import CONFIG, CONFIG_NAME, SYNC_SET
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.api.revision import GROUP, KIND, VERSION
from webhook.api.shapes import objects_of
from webhook.audit.admission_policies import READ_SECONDS, read_admission_policies
from webhook.cluster.client import ClusterClient
from webhook.cluster.discovery import Discovery
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import (
    MUTATING_CONFIGURATIONS,
    NAMESPACE,
    NAMESPACES,
    PODS,
    WEBHOOK_CONFIGURATIONS,
)
from webhook.cluster.reflector import ObjectSelection, Reflector, ReflectorStatistics
from webhook.console import serving_certificate
from webhook.console.assembly import (
    ClusterObjects,
    carrier,
    kept_report,
    newest,
    noted,
    picture_of,
)
from webhook.console.foreign import ForeignRows
from webhook.console.object_reader import ObjectReader
from webhook.console.replica_notes import ReplicaNotes
from webhook.console.sorts import category_of
from webhook.constraint import constraint, enforcement, template
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.template import kind_of
from webhook.controllers.status_kinds import status_resource
from webhook.policies.extensions import Extensions, on_top
from webhook.policy_kinds import table
from webhook.policy_kinds.known import (
    EXTENSIONS,
    STATUS_KINDS,
    is_admission_policy,
    is_foreign_policy,
    kind_of_document,
)
from webhook.policy_kinds.table import CONSTRAINT_GROUPS
from webhook.replicas.pods import WEBHOOK_PODS
from webhook.reports.report_api import APIS
from webhook.review.policy_set import PolicySet, exclusions_of
from webhook.watch.manager import Manager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.cluster.credentials import Credentials
    from webhook.cluster.store import Change, Key, Object
    from webhook.console.picture import Shown, ShownCertificate, ShownPolicy
    from webhook.constraint.client import Client
    from webhook.log import Logger
    from webhook.review.admission_policies import AdmissionPolicies
    from webhook.watch.queue import Event
    from webhook.watch.registrar import Registrar

TEMPLATES: Final = table.TEMPLATES.gvk
REVISIONS: Final = GroupVersionKind(GROUP, VERSION, KIND)
STATUSES: Final = tuple(status_resource(kind).gvk for kind in STATUS_KINDS)
OWN: Final = frozenset((*STATUSES, PODS.gvk, CONFIG))
"""Kinds that are watched in Waddle's namespace only."""

CONFIGURATIONS: Final = WEBHOOK_CONFIGURATIONS.gvk
MUTATING: Final = MUTATING_CONFIGURATIONS.gvk
AROUND: Final = (CONFIGURATIONS, MUTATING, CONFIG, NAMESPACE)
"""Kinds that decide which requests reach policies."""

FIXED: Final = (
    *(TEMPLATES, CONSTRAINT_GROUPS.gvk, *(row.gvk for row in EXTENSIONS), REVISIONS, *STATUSES),
    *(PODS.gvk, SYNC_SET, *AROUND),
)
ADMISSION_POLICIES: Final = tuple(
    row for row in table.ADMISSION_POLICY_KINDS if row is not table.ANSWERS
)
"""The API server's own policy kinds: their served version differs among API servers."""

PLURALS: Final = {
    **{
        row.gvk._replace(version=version): row.plural
        for row in (*ADMISSION_POLICIES, *table.KYVERNO_KINDS)
        for version in row.versions
    },
    **{row.gvk: row.plural for row in table.POLICY_KINDS if row.kind},
    REVISIONS: "policyrevisions",
    **{(resource := status_resource(kind)).gvk: resource.plural for kind in STATUS_KINDS},
    PODS.gvk: PODS.plural,
    NAMESPACE: NAMESPACES.plural,
    CONFIGURATIONS: WEBHOOK_CONFIGURATIONS.plural,
    MUTATING: MUTATING_CONFIGURATIONS.plural,
    **{resource.gvk: resource.plural for api in APIS.values() for resource in api.resources},
}
"""Plurals that differ from the kind in lower case."""

SETTLE_SECONDS: Final = 0.5
"""The pause after a change, in seconds: changes within it are one picture."""

OWN_SECONDS: Final = 1.0
"""At least between two readings of the API server's own policies."""

SHARE: Final = 10
"""The pause after a picture, as a multiple of its time: pages must answer while an audit writes."""

LOOK_SECONDS: Final = 5.0
"""The interval of checks whether the API server answers, in seconds."""

ANSWER_SECONDS: Final = 5.0
CERTIFICATE_SECONDS: Final = 60.0
"""Between two looks at the serving certificate."""


class _Reports:
    """The stored reports of one kind."""

    def __init__(self, client: ClusterClient, resource: Any, changed: asyncio.Event) -> None:
        self.gvk = resource.gvk
        self._changed = changed
        self.right = carrier(resource.gvk.group, resource.plural, "")
        self.reflector = Reflector(
            client, resource, self, transform=lambda document: kept_report(document, resource)
        )

    def change(self, changes: Iterable[Change]) -> None:
        """Notes a change: a new picture is needed."""
        del changes
        self._changed.set()

    def synced(self) -> None:
        """Notes that all reports are known."""
        self._changed.set()


class ClusterSource:
    """Follows a cluster on the loop that calls it."""

    def __init__(
        self,
        credentials: Credentials,
        namespace: str,
        make_client: Callable[[], Client],
        shown: Shown,
        log: Logger,
        *,
        context: str = "",
        kyverno: str = "off",
    ) -> None:
        """``namespace`` is the one that Waddle runs in; ``make_client`` gives an empty client.

        ``context`` is what kubectl would call the cluster, ``kyverno`` what replicas do by Kyverno's
        policies.
        """
        self._foreign = ForeignRows(kyverno)
        self._fixed = FIXED
        self._context = context
        self._credentials = credentials
        self._namespace = namespace
        self._client = make_client()
        self._shown = shown
        self._log = log
        self._objects: dict[GroupVersionKind, dict[Key, Object]] = {}
        self._changed = asyncio.Event()
        self._configured = asyncio.Event()
        """Set when a webhook configuration changes."""
        self._own_changed = asyncio.Event()
        """Set when one of the API server's own policies changes."""
        self._unreachable = ""
        self._shown_waiting: list[str] = []
        self._reports: list[_Reports] = []
        self._manager: Manager | None = None
        self._certificates: list[ShownCertificate] = []
        self._notes = ReplicaNotes(namespace, self._known_pods, self._show_notes)
        self.objects: ObjectReader | None = None
        """Reads single objects, once the cluster is followed."""
        self.server: ClusterClient | None = None
        """The API server, once it is followed."""
        self._compiled: set[tuple[str, str]] = set()
        self._extensions = Extensions()
        self._own: AdmissionPolicies | None = None
        """The API server's own policies with their parameters, as they were read last."""

    async def run(self) -> None:
        """Follow until cancelled."""
        async with ClusterClient(self._credentials, log=self._log) as client:
            selections = {gvk: ObjectSelection(self._namespace) for gvk in (*STATUSES, CONFIG)} | {
                PODS.gvk: ObjectSelection(self._namespace, labels=WEBHOOK_PODS),
            }
            self.server = client
            discovery = Discovery(client)
            self.objects = ObjectReader(client, discovery)
            self._manager = Manager(client, discovery, selections=selections)
            self._reports = [
                _Reports(client, resource, self._changed)
                for api in APIS.values()
                for resource in api.resources
            ]
            registrar = self._manager.registrar("console")
            self._fixed = (*FIXED, *await self._foreign_kinds(discovery))
            registrar.replace_watch(self._fixed)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._manager.run(), name="watches")
                for report in self._reports:
                    tasks.create_task(report.reflector.run(), name=f"watch {report.gvk}")
                tasks.create_task(self._take(registrar), name="changes")
                tasks.create_task(self._ask(client), name="is it there")
                tasks.create_task(self._look_at_certificates(), name="certificates")
                tasks.create_task(self._read_own(client), name="admission policies")
                tasks.create_task(self._notes.run(client), name="replicas' reports")
                await self._draw()

    # --- what is known ------------------------------------------------------------------------

    async def _foreign_kinds(self, discovery: Discovery) -> list[GroupVersionKind]:
        """Returns the shown foreign policy kinds, each in a served version."""
        rows = (
            *ADMISSION_POLICIES,
            *(table.KYVERNO_KINDS if self._foreign.kyverno != "off" else ()),
        )
        served: dict[tuple[str, str], GroupVersionKind] = {}
        with contextlib.suppress(ApiError, ApiUnreachable, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                for row in rows:
                    for resource in reversed(await discovery.of_kind(row.group, row.kind)):
                        served[row.group, row.kind] = resource.gvk
        return [served.get((row.group, row.kind), row.gvk) for row in rows]

    async def _take(self, registrar: Registrar) -> None:
        while True:
            event = await registrar.next()
            self._note(event)
            if event.gvk == TEMPLATES:
                registrar.replace_watch((*self._fixed, *self._constraint_kinds()))
            if event.gvk == CONFIGURATIONS:
                self._configured.set()
            if is_admission_policy(event.gvk):
                self._own_changed.set()
            self._changed.set()

    def _note(self, event: Event) -> None:
        known = self._objects.setdefault(event.gvk, {})
        if event.key is None:
            return
        if event.kind == "set" and event.object is not None:
            known[event.key] = event.object
        else:
            known.pop(event.key, None)

    def _constraint_kinds(self) -> list[GroupVersionKind]:
        kinds = {kind_of(item) for item in self._objects.get(TEMPLATES, {}).values()}
        return [
            GroupVersionKind(constraint.GROUP, constraint.STORED_VERSION, kind)
            for kind in kinds
            if kind
        ]

    async def _ask(self, client: ClusterClient) -> None:
        """Detects a lost API server before any watch does."""
        since = ""
        while True:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await client.request("GET", "/version")
                unreachable, since = "", ""
            except (ApiError, ApiUnreachable, TimeoutError) as error:
                since = since or timestamp.now()
                why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
                unreachable = f"the API server cannot be asked since {since}: {why}"
            waiting = self._waiting(self._statistics())
            if (unreachable, waiting) != (self._unreachable, self._shown_waiting):
                self._unreachable = unreachable
                self._changed.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_at_certificates(self) -> None:
        """Reads the webhook's serving certificate as a client does."""
        while True:
            known = list(self._objects.get(CONFIGURATIONS, {}).values())
            own_certificates = [
                item
                for item in known
                if any(
                    webhook.get("name") == enforcement.WEBHOOK
                    for webhook in objects_of(item.get("webhooks"))
                )
            ]
            certificates = [
                certificate
                for item in own_certificates
                if (certificate := await serving_certificate.seen(item))
            ]
            if certificates != self._certificates:
                self._certificates = certificates
                self._changed.set()
            self._configured.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CERTIFICATE_SECONDS):
                    await self._configured.wait()

    async def _read_own(self, client: ClusterClient) -> None:
        """Reads the API server's own policies and their parameters, which are not watched."""
        while True:
            self._own_changed.clear()
            # What was read stays where the API server does not answer, or may not be asked.
            with contextlib.suppress(ApiError, ApiUnreachable):
                self._own = (await read_admission_policies(client, mutating=True)).policies
            await asyncio.sleep(OWN_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(READ_SECONDS * random.uniform(0.8, 1.2)):  # noqa: S311  # no secret
                    await self._own_changed.wait()

    async def refresh_notes(self) -> None:
        """Reads what replicas report about themselves, for a page that shows it."""
        await self._notes.refresh()

    def _known_pods(self) -> list[Object]:
        return list(self._objects.get(PODS.gvk, {}).values())

    def _show_notes(self) -> None:
        """Shows the replicas' notes at once: a whole picture takes longer."""
        picture = self._shown.picture
        self._shown.swap(replace(picture, pods=noted(picture.pods, self._notes.by_pod)))

    async def _draw(self) -> None:
        took = 0.0
        while True:
            await self._changed.wait()
            await asyncio.sleep(max(SETTLE_SECONDS, SHARE * took))
            self._changed.clear()
            began = time.monotonic()
            try:
                picture = picture_of(self._found(), self._foreign)
            except Exception as error:  # noqa: BLE001  # the picture's boundary: the one before stays
                self._log.fault("bug while making a picture", error)
            else:
                self._shown.swap(picture)
            took = time.monotonic() - began

    def _found(self) -> ClusterObjects:
        statistics = self._statistics()
        served = [
            report
            for report in self._reports
            if report.reflector.statistics().synced and not report.reflector.statistics().absent
        ]
        trouble = [self._unreachable] if self._unreachable else []
        waiting = self._shown_waiting = self._waiting(statistics)
        if waiting:
            trouble.append(f"not read yet, or not readable: {', '.join(waiting)}")
        groups = {gvk: list(by_key.values()) for gvk, by_key in self._objects.items()}
        return ClusterObjects(
            policies=[
                item
                for gvk, listed in groups.items()
                if gvk not in STATUSES and not is_foreign_policy(gvk)
                for item in listed
                if category_of(item) is not None
            ],
            foreign=[
                item for gvk, listed in groups.items() if is_foreign_policy(gvk) for item in listed
            ],
            around=[item for gvk in AROUND for item in groups.get(gvk, ())],
            sync_sources=[item for gvk in (CONFIG, SYNC_SET) for item in groups.get(gvk, ())],
            around_read=[
                gvk.kind
                for gvk in AROUND
                if (statistics_of_kind := statistics.get(gvk)) is not None
                and statistics_of_kind.synced
                and not statistics_of_kind.absent
            ],
            statuses=[item for gvk in STATUSES for item in groups.get(gvk, ())],
            pods=groups.get(PODS.gvk, ()),
            notes=self._notes.by_pod,
            revisions=groups.get(REVISIONS, ()),
            reports=[item for report in served for item in report.reflector.store]
            if served
            else None,
            kinds=[
                _row(gvk, counts, self._namespace if gvk in OWN else "")
                for gvk, counts in sorted(statistics.items())
            ],
            certificates=self._certificates,
            carriers=[report.right for report in served],
            namespace=self._namespace,
            context=self._context,
            trouble=trouble,
            version=newest(counts.resource_version for counts in statistics.values()),
            place=self._credentials.server,
            taken=timestamp.now(),
        )

    def _statistics(self) -> dict[GroupVersionKind, ReflectorStatistics]:
        assert self._manager is not None
        statistics = self._manager.statistics()
        return statistics | {report.gvk: report.reflector.statistics() for report in self._reports}

    def _waiting(self, statistics: Mapping[GroupVersionKind, ReflectorStatistics]) -> list[str]:
        """Returns the kinds whose first list is missing."""
        return sorted(str(gvk) for gvk in self._fixed if not _is_known(statistics.get(gvk)))

    # --- policies in force, for the playground ------------------------------------------------

    def policies(self) -> PolicySet | None:
        """The policies compiled, those that have changed since the last time; by one thread at a time.

        None of a replica's own state is asked: what is compiled is what the cluster holds, each at
        its stage of a roll-out.
        """
        picture = self._shown.picture
        documents = {
            item.key: item
            for item in picture.policies
            if item.category in {"template", "constraint"}
        }
        for kind, name in self._compiled - documents.keys():
            if kind == template.KIND:
                self._client.remove_template(name)
            else:
                self._client.remove_constraint(kind, name)
        add = {"template": self._client.add_template, "constraint": self._client.add_constraint}
        for item in sorted(
            documents.values(), key=lambda shown: constraint.rank(gvk_of(shown.document))
        ):
            try:
                add[item.category](_staged(item))
            except ConstraintFrameworkError:
                continue  # Its state says what is wrong.
        self._compiled = set(documents)
        for namespace in list(self._objects.get(NAMESPACE, {}).values()):
            self._client.set_namespace(name_of(namespace), namespace)
        self._extensions.load(
            on_top(
                (),
                (
                    _staged(item)
                    for item in picture.policies
                    if item.key not in documents and not is_admission_policy(gvk_of(item.document))
                ),
            )
        )
        configs = list(self._objects.get(CONFIG, {}).values())
        exclusions = exclusions_of(item for item in configs if name_of(item) == CONFIG_NAME)
        policy_set = self._extensions.policy_set(self._client.snapshot, exclusions)
        if self._own is None:
            return policy_set
        return replace(policy_set, stages=(*policy_set.stages, self._own))


def _staged(item: ShownPolicy) -> dict[str, Any]:
    """A policy at its stage of a roll-out."""
    row = kind_of_document(item.document)
    assert row is not None
    return dict(row.staged(item.document, item.document.get("status")))


def _is_known(statistics: ReflectorStatistics | None) -> bool:
    """Whether it is known of a kind what there is, or that it is not served."""
    if statistics is None:
        return False
    if statistics.outdated:
        return False
    return statistics.synced or (statistics.absent and bool(statistics.last_error))


def _row(gvk: GroupVersionKind, statistics: ReflectorStatistics, namespace: str) -> dict[str, Any]:
    """How a kind is followed, as JSON."""
    if statistics.absent:
        state = "not served: its CRD is not installed"
    elif not statistics.synced:
        state = (
            f"not known yet: {statistics.last_error}" if statistics.last_error else "not known yet"
        )
    elif statistics.outdated:
        state = "outdated: the API server is at an older version; it is being listed anew"
    else:
        state = f"followed, at {statistics.resource_version or '?'}"
    seconds = time.monotonic() - statistics.last_event_at if statistics.synced else None
    return {
        "kind": str(gvk),
        "group": gvk.group,
        "resource": PLURALS.get(gvk, gvk.kind.lower()),
        "namespace": namespace,
        "objects": statistics.objects,
        "state": state,
        "resourceVersion": statistics.resource_version,
        "secondsSinceLastWord": None if seconds is None else round(seconds),
    }
