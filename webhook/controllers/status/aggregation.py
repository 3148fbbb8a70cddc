"""The ``status`` operation: keeps ``.status.byPod`` equal to the replicas' statuses.

It watches the status objects of all replicas and the Pods of their namespace. Templates,
constraints and Config come from the watches of policy. For each object one replica is chosen to
write (:mod:`webhook.replicas.rendezvous`); the next one in turn takes over if it does not. A write
is a compare-and-swap of the status subresource, so that audit's fields are never lost. It includes
the conditions of templates and constraints (:mod:`webhook.controllers.status.conditions`). A change
of condition for better or worse also causes an Event.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api import pod_status
from webhook.api.shapes import Json, status_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import PODS
from webhook.cluster.reflector import ObjectSelection, Reflector
from webhook.cluster.store import Change, Key, Object, shared, slim
from webhook.controllers.keeper import TURN_SECONDS, WRITES_AT_ONCE, Keeper
from webhook.controllers.object_faults import ObjectFaults
from webhook.controllers.status import audit_results, by_pod, coverage_keeper
from webhook.controllers.status.condition_keeper import KINDS as CONDITIONED
from webhook.controllers.status.condition_keeper import ConditionKeeper
from webhook.controllers.status.coverage_keeper import CoverageKeeper
from webhook.controllers.status.orphans import Orphans
from webhook.controllers.status.overwrites import Overwrites
from webhook.controllers.status.rollout_keeper import RecordEvent, RolloutKeeper
from webhook.controllers.status.status_index import StatusIndex
from webhook.controllers.status_kinds import (
    LabelledSubject,
    resource_of,
    status_resource,
    subject_named,
)
from webhook.events.policies import EventWriter
from webhook.policy_kinds.known import STATUS_KINDS, TEMPLATE, constraint_gvk, key_of_extension
from webhook.policy_kinds.table import POLICY_KINDS
from webhook.replicas import pods, rendezvous
from webhook.replicas.pods import Replicas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.api.pod_status import Pod
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.revisions.rollout_records import RolloutRecords
    from webhook.log import Logger
    from webhook.watch.manager import Manager
    from webhook.watch.queue import Event
    from webhook.watch.registrar import Registrar
    from webhook.webhook_rules.coverage import CoverageState

    ForeignJudging: TypeAlias = tuple[
        Callable[[], Sequence[Mapping[str, Any]]], Callable[[Mapping[str, str]], None]
    ]

DEBOUNCE_SECONDS: Final = 0.2
"""The pause from the first status of a change to the write. Replicas follow one another within some
10 ms, and one write should include them all."""


EVERYTHING: Final = LabelledSubject("", "", "")
"""The key for every subject with a replica's status."""

FOREIGN: Final = LabelledSubject("", "", "foreign")
"""The key for the policies of Kyverno in force."""

_ALWAYS: Final = tuple(row.gvk for row in POLICY_KINDS if row.status and row.kind)
"""The kinds whose objects always have statuses; constraint kinds are added with their templates."""

_FIXED: Final = (*_ALWAYS, *coverage_keeper.WATCHED)

_POLICIES: Final = frozenset({pod_status.TEMPLATE.kind, pod_status.CONSTRAINT.kind})
"""The statuses of policies that are audited, and rolled out in stages."""

_OF_ADMISSIONS: Final = frozenset({pod_status.CONSTRAINT.kind, pod_status.MUTATOR.kind})
"""The statuses of policies that decide admissions, or change objects in them."""


class _Pods:
    """Receives the changes of Pods, which may affect every entry; tracks Waddle's own Pods."""

    def __init__(self, changed: Callable[[], None], object_faults: ObjectFaults) -> None:
        self._changed = changed
        self._object_faults = object_faults
        self.existing: dict[Key, str] = {}
        """The UIDs of Pods that are not finished, or that cannot be read."""
        self.ours: dict[Key, Object] = {}
        """The Pods with the labels of Waddle's that can be read."""

    def change(self, changes: Iterable[Change]) -> None:
        self._object_faults.each("pod", "Pod", changes, self._take)
        self._changed()

    def _take(self, change: Change) -> None:
        self.ours.pop(change.key, None)
        self.existing.pop(change.key, None)
        if change.kind == "delete":
            return
        pod = change.object
        self.existing[change.key] = pod["metadata"]["uid"]
        if not pods.live([pod]):
            del self.existing[change.key]
        if pods.is_ours(pod) and pods.replica(pod).uid:
            self.ours[change.key] = pod

    def synced(self) -> None:
        self._changed()


class Aggregation:
    """Keeps ``byPod`` of every object with replicas' statuses; :meth:`run` in a task of its own."""

    _coverage: CoverageKeeper | None = None
    _foreign: ForeignJudging | None = None
    _fixed = _ALWAYS

    def __init__(  # the parts it joins, each named
        self,
        client: ClusterClient,
        manager: Manager,
        pod: Pod,
        log: Logger,
        *,
        record: RecordEvent,
        rollouts: RolloutRecords,
        object_faults: ObjectFaults | None = None,
        has_crd: Callable[[str], bool] | None = None,
    ) -> None:
        """``record`` writes to the decision log; ``rollouts`` decides which roll-out records count.

        ``object_faults`` receives unexpected exceptions of objects. ``has_crd`` is whether the API
        server has established the CRD of a template's constraints.
        """
        self.object_faults = object_faults or ObjectFaults(log)
        self._has_crd = has_crd
        self._client = client
        self._manager = manager
        self._registrar: Registrar = manager.registrar("status")
        self._pod = pod
        self._log = log
        selection = ObjectSelection(pod.namespace)
        self._indexes = [StatusIndex(kind, self, self.object_faults) for kind in STATUS_KINDS]
        self._pods_known = _Pods(self._pods_changed, self.object_faults)
        self._pods = Reflector(client, PODS, self._pods_known, selection=selection)
        self._reflectors = [
            Reflector(
                client,
                status_resource(index.kind),
                index,
                selection=selection,
                transform=lambda obj: shared(slim(obj)),
            )
            for index in self._indexes
        ]
        self._keeper: Keeper[LabelledSubject] = Keeper(
            "by_pod",
            self._settle,
            self.object_faults,
            workers=WRITES_AT_ONCE,
            retry_seconds=TURN_SECONDS,
            turn_seconds=TURN_SECONDS,
        )
        self._orphans = Orphans(client, pod, log, self._indexes, self.replicas, self.object_faults)
        self._replicas: tuple[frozenset[str], ...] | None = None
        self._swapped: dict[LabelledSubject, str] = {}
        self._overwrites = Overwrites(self._renew, self._is_answered)
        events = EventWriter(client, log)
        self.conditions = ConditionKeeper(events, pod, log)
        self.rollouts = RolloutKeeper(events, pod, record, rollouts)
        for gvk in _ALWAYS:
            self._registrar.add_watch(gvk)

    def follow_configurations(self) -> None:
        """Reports policies for which no request is sent, too; called before :meth:`run`."""
        self._fixed = _FIXED
        self._coverage = CoverageKeeper(
            self._client, self._manager, self._pod.namespace, self.touch_all
        )
        for gvk in coverage_keeper.WATCHED:
            self._registrar.add_watch(gvk)

    def judge_foreign(
        self,
        documents: Callable[[], Sequence[Mapping[str, Any]]],
        notify: Callable[[Mapping[str, str]], None],
    ) -> None:
        """Makes ``notify`` receive Kyverno's policies that get no request, and the reasons.

        ``documents`` gives the policies that decide admissions.
        """
        self._foreign = documents, notify

    def touch_foreign(self) -> None:
        """Queues a new judgement of foreign policies."""
        if self._foreign is not None:
            self._keeper.add(FOREIGN, DEBOUNCE_SECONDS)

    # --- changes -------------------------------------------------------------------------------

    def touch(self, subject: LabelledSubject) -> None:
        """Queues a subject: something about it changed."""
        self._keeper.add(subject, DEBOUNCE_SECONDS)

    def status_changed(self, subject: LabelledSubject, status: Object) -> None:
        """Takes the current status of a subject from a replica."""
        self.rollouts.status_changed(subject, status)
        self.touch(subject)

    def touch_all(self) -> None:
        """Queues every subject: something about the replicas changed."""
        self._keeper.add(EVERYTHING, DEBOUNCE_SECONDS)
        self._orphans.look()

    def _pods_changed(self) -> None:
        self._replicas = None
        self.touch_all()

    def follow(self, kinds: Iterable[str]) -> None:
        """Watches the constraints of these kinds."""
        self._registrar.replace_watch({*self._fixed, *(constraint_gvk(kind) for kind in kinds)})
        self.conditions.follow(kinds)

    def _changed(self, event: Event) -> None:
        if self._coverage is not None:
            self._coverage.take(event)
        if event.key is None or event.gvk in coverage_keeper.ALONE:
            return
        subject = subject_named(event.gvk, event.key.name)
        with self.object_faults.object("by_pod", *subject):
            if subject.kind in CONDITIONED:
                document = event.object if event.kind == "set" else None
                self.conditions.seen(subject, document)
                self.rollouts.seen(subject, document)
        if event.kind == "delete":
            self._swapped.pop(subject, None)
            self._overwrites.forget(subject)
        self.touch(subject)

    # --- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in (self._pods, *self._reflectors):
                tasks.create_task(reflector.run())
            tasks.create_task(self._listen())
            for reflector in (self._pods, *self._reflectors):
                await reflector.wait_synced()
            if self._coverage is not None:
                await self._coverage.wait_settled()
            tasks.create_task(self._keeper.run())
            tasks.create_task(self._orphans.run())

    async def _listen(self) -> None:
        while True:
            self._changed(await self._registrar.next())

    @property
    def writes(self) -> int:
        """The number of requests that wrote, or tried to."""
        return self._keeper.writes + self._orphans.keeper.writes

    @property
    def failures(self) -> int:
        """The number of writes that failed."""
        return self._keeper.failures + self._orphans.keeper.failures

    def replicas(self) -> Replicas:
        """Returns the Pods that count, and those of them that write."""
        if self._replicas is None:
            ours = self._pods_known.ours.values()
            existing = frozenset(self._pods_known.existing.values())
            self._replicas = existing, pods.live(ours), pods.working(ours)
        existing, live, working = self._replicas
        writers = frozenset().union(*(index.writers for index in self._indexes))
        return Replicas(existing, live, working, writers & working | {self._pod.uid})

    def writers(self) -> frozenset[str]:
        """Returns the replicas that carry out the operation, by the UIDs of their Pods."""
        return self.replicas().writers

    def working(self) -> frozenset[str]:
        """Returns the Pods that can be relied on, with or without a status that has arrived."""
        return self.replicas().working

    async def _settle(self, subject: LabelledSubject) -> None:
        if subject is EVERYTHING:
            self.touch_foreign()
            for index in self._indexes:
                for known in index.subjects:
                    self._keeper.add(known)
            return
        if subject is FOREIGN:
            await self._judge_foreign()
            return
        await self._write(subject, self.replicas())

    async def _judge_foreign(self) -> None:
        """Reports policies of Kyverno for which no request is sent."""
        if self._coverage is None or self._foreign is None:
            return
        documents, notify = self._foreign
        reasons = {}
        for document in documents():
            coverage = await self._coverage.state_of(document)
            if coverage is not None and coverage.extent == "not at all":
                reasons["/".join(key_of_extension(document))] = coverage.text
        notify(reasons)

    async def _write(self, subject: LabelledSubject, replicas: Replicas) -> None:
        """Writes one object's status if it differs and it is this replica's turn."""
        resource = resource_of(subject)
        gvk, namespace = resource.gvk, self._pod.namespace if resource.namespaced else ""
        document = self._manager.get(gvk, namespace, subject.name)
        if document is None:
            self._keeper.settled(subject)
            return
        version = document["metadata"]["resourceVersion"]
        if self._swapped.get(subject) == version:
            return  # The watch has not yet delivered the last write.
        self._swapped.pop(subject, None)
        index = next(index for index in self._indexes if index.kind.kind == subject.kind)
        statuses = [
            item
            for item in index.subjects.get(subject, {}).values()
            if item["metadata"]["namespace"] == self._pod.namespace
        ]
        now = time.monotonic()
        status = status_of(document)
        desired = by_pod.merged_status(
            document,
            statuses,
            index.kind,
            replicas.live,
            has_crd=gvk != TEMPLATE or self._has_crd is None or self._has_crd(subject.name),
        )
        entries = (status if desired is None else desired).get("byPod")
        deferred_until = 0.0
        if entries == status.get("byPod"):
            self._overwrites.agree(subject, entries)
        else:
            deferred_until = self._overwrites.until(subject, entries, status.get("byPod"), now)
        coverage = None
        if self._coverage is not None and subject.kind in _OF_ADMISSIONS:
            coverage = await self._coverage.state_of(document)
        desired = self._judged(subject, document, desired, statuses, now, coverage)
        if desired is None:
            self._keeper.settled(subject)
            return
        held = status.get("byPod"), status.get("conditions")
        rank = rendezvous.rank("/".join(subject), replicas.writers, self._pod.uid)
        if not self._keeper.waits_for_turn(subject, rank, held=held, not_before=deferred_until):
            await self._replace(subject, document, resource, desired)

    async def _replace(
        self,
        subject: LabelledSubject,
        document: Object,
        resource: Resource,
        status: Mapping[str, Any],
    ) -> None:
        """Writes the status, or retries later."""
        version = document["metadata"]["resourceVersion"]
        self._swapped[subject] = version
        try:
            self._keeper.writes += 1
            written = await self._client.replace(
                resource, {**document, "status": status}, subresource="status"
            )
        except (ApiError, ApiUnreachable) as error:
            self._swapped.pop(subject, None)
            if isinstance(error, ApiError) and (error.is_conflict or error.is_absent):
                self._keeper.retry(subject)
                return  # Another replica was faster; the watch brings its write.
            self._keeper.failed(subject)
            self._log.warning(
                "status.byPod was not written; trying again",
                kind=resource.gvk.kind,
                name=subject.name,
                error=str(error),
            )
            return
        if written["metadata"]["resourceVersion"] == version:
            self._swapped.pop(subject, None)  # Nothing changed, so that no event will come.
        self._keeper.settled(subject)
        self._overwrites.agree(subject, status.get("byPod"))
        if subject.kind in CONDITIONED:
            await self.conditions.written(subject, document, status, written)
            await self.rollouts.written(subject, document, written)

    def _renew(self, kind: str) -> None:
        """Restarts the watches of Pods and of a kind's statuses."""
        for reflector in self._watches(kind):
            reflector.renew()

    def _is_answered(self, kind: str) -> bool:
        """Whether the API server has answered the kind's watches since they began."""
        return all(reflector.is_answered for reflector in self._watches(kind))

    def _watches(self, kind: str) -> list[Reflector]:
        indexed = zip(self._indexes, self._reflectors, strict=True)
        return [self._pods, *(watch for index, watch in indexed if index.kind.kind == kind)]

    def _judged(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        desired: Json | None,
        statuses: Sequence[Mapping[str, Any]],
        now: float,
        coverage: CoverageState | None,
    ) -> Json | None:
        """Returns the status with conditions, audit and roll-out.

        None if the object has it already.
        """
        if subject.kind not in CONDITIONED:
            return desired
        pods_known = list(self._pods_known.ours.values())
        desired = self.conditions.merged(subject, document, desired, statuses, pods_known, coverage)
        due = [self.conditions.due(subject)]
        if subject.kind in _POLICIES:
            desired = audit_results.merged(subject, document, desired, statuses, pods_known)
        desired = self.rollouts.merged(subject, document, desired, statuses, pods_known)
        due.append(self.rollouts.due(subject))
        for again in due:
            if again is not None:
                self._keeper.add(subject, again - now)
        return desired
