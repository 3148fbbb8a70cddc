"""The ``status`` operation: ``.status.byPod`` kept as the replicas' statuses say.

Watches the status objects of all replicas and the Pods of their namespace, and
reads templates, constraints and Config as the watches of policy have them. For
each object one replica is chosen to write (:mod:`webhook.replicas.rendezvous`);
the next in turn takes over where it does not. A write is a compare-and-swap of
the status subresource, so that audit's fields are never lost. The conditions of
templates and constraints go with it (:mod:`webhook.controllers.conditions`), and
an Event where they change for better or worse.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api import pod_status
from webhook.api.config import CONFIG
from webhook.api.shapes import status_of
from webhook.cluster.errors import ApiError, UnreachableError
from webhook.cluster.kinds import PODS
from webhook.cluster.reflector import Reflector, Selection
from webhook.cluster.resource import Resource
from webhook.controllers import audit_keeper, by_pod
from webhook.controllers.condition_keeper import ConditionKeeper
from webhook.controllers.events import EventWriter
from webhook.controllers.reconciler import TEMPLATE, constraint_gvk
from webhook.controllers.rollout_keeper import RolloutKeeper
from webhook.controllers.spoiled import Spoiled
from webhook.controllers.status_kinds import STATUS_KINDS, Subject, status_resource, subject_of
from webhook.replicas import pods, rendezvous

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod, StatusKind
    from webhook.cluster.client import Client
    from webhook.cluster.reflector import Settings
    from webhook.cluster.store import Change, Key, Object
    from webhook.controllers.rollout_keeper import RecordEvent
    from webhook.log import Logger
    from webhook.watch.manager import Manager
    from webhook.watch.queue import Event
    from webhook.watch.registrar import Registrar

DEBOUNCE_SECONDS: Final = 0.2
"""From the first status of a change to the write: replicas follow one another within some
10 ms, and one write shall hold them all."""

TURN_SECONDS: Final = 5.0
"""How much longer each next replica waits for those before it to write."""

WRITES_AT_ONCE: Final = 8

ORPHAN_SECONDS: Final = 5.0
"""What the garbage collector has to itself: where it runs, it needs a second or two."""

CONFIG_STATUS: Final = pod_status.CONFIG.kind


class StatusIndex:
    """The status objects of all replicas of one kind, by subject; a reflector's receiver."""

    def __init__(self, kind: StatusKind, owner: Aggregation) -> None:
        self.kind = kind
        self.subjects: dict[Subject, dict[str, Object]] = {}
        self.items: dict[str, Object] = {}
        self._owner = owner

    def change(self, changes: Iterable[Change]) -> None:
        """Take in status objects that came, changed or went."""
        for change in changes:
            with self._owner.spoiled.object("status", self.kind.kind, change.key.name):
                self._change(change)

    def synced(self) -> None:
        """A whole list is in."""
        self._owner.touch_all()

    def _change(self, change: Change) -> None:
        name = change.key.name
        before = self.items.pop(name, None)
        if before is not None:
            self._take_out(name, before)
        if change.kind == "set":
            subject = subject_of(self.kind, change.object)
            self.items[name] = change.object
            self.subjects.setdefault(subject, {})[name] = change.object
            self._owner.touch(subject)

    def _take_out(self, name: str, item: Object) -> None:
        subject = subject_of(self.kind, item)
        of_subject = self.subjects.get(subject, {})
        of_subject.pop(name, None)
        if not of_subject:
            self.subjects.pop(subject, None)
        self._owner.touch(subject)


class _Pods:
    """Receives the Pods' changes: every entry may depend on them."""

    def __init__(self, owner: Aggregation) -> None:
        self._owner = owner

    def change(self, changes: Iterable[Change]) -> None:
        del changes
        self._owner.touch_all()

    def synced(self) -> None:
        self._owner.touch_all()


class Aggregation:
    """Keeps ``byPod`` of every template, constraint and Config; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: Client,
        manager: Manager,
        pod: Pod,
        log: Logger,
        *,
        record: RecordEvent,
        settings: Settings | None = None,
        spoiled: Spoiled | None = None,
    ) -> None:
        """``record`` takes what the decision log should know.

        ``spoiled`` takes what an object raises that nobody foresaw.
        """
        self.spoiled = spoiled or Spoiled(log)
        self._client = client
        self._manager = manager
        self._registrar: Registrar = manager.registrar("status")
        self._pod = pod
        self._log = log
        selection = Selection(pod.namespace)
        self._indexes = [StatusIndex(kind, self) for kind in STATUS_KINDS]
        self._pods = Reflector(client, PODS, _Pods(self), selection=selection, settings=settings)
        self._reflectors = [
            Reflector(
                client, status_resource(index.kind), index, selection=selection, settings=settings
            )
            for index in self._indexes
        ]
        self._due: dict[Subject, float] = {}
        # Since when an object's status differs from what it should be, and what it has of ours.
        self._since: dict[Subject, tuple[float, Any]] = {}
        self._swapped: dict[Subject, str] = {}
        self._checked: set[str] = set()
        self._orphaned_since: dict[str, float] = {}
        self._orphans_due = math.inf
        self._all_due = math.inf
        self._work = asyncio.Event()
        events = EventWriter(client, log)
        self.conditions = ConditionKeeper(events, pod, log)
        self.rollouts = RolloutKeeper(events, pod, record)
        self.writes = 0
        self.failures = 0
        self._registrar.add_watch(TEMPLATE)
        self._registrar.add_watch(CONFIG)

    # --- what might differ ---------------------------------------------------------------------

    def touch(self, subject: Subject) -> None:
        """Something about a subject changed: look at it, in a moment."""
        self._due.setdefault(subject, time.monotonic() + DEBOUNCE_SECONDS)
        self._work.set()

    def touch_all(self) -> None:
        """Something about the replicas changed: look at everything."""
        now = time.monotonic()
        self._all_due = min(self._all_due, now + DEBOUNCE_SECONDS)
        self._orphans_due = min(self._orphans_due, now + ORPHAN_SECONDS)
        self._work.set()

    def follow(self, kinds: Iterable[str]) -> None:
        """Look after the constraints of these kinds."""
        self._registrar.replace_watch({TEMPLATE, CONFIG, *(constraint_gvk(kind) for kind in kinds)})
        self.conditions.follow(kinds)

    def _changed(self, event: Event) -> None:
        if event.key is None:
            return
        subject = self._subject(event.gvk, event.key)
        with self.spoiled.object("by_pod", *subject):
            self.conditions.seen(subject, event.object if event.kind == "set" else None)
        if event.kind == "delete":
            self._swapped.pop(subject, None)
        self.touch(subject)

    def _subject(self, gvk: GroupVersionKind, key: Key) -> Subject:
        if gvk == TEMPLATE:
            return Subject(pod_status.TEMPLATE.kind, "", key.name)
        if gvk == CONFIG:
            return Subject(pod_status.CONFIG.kind, "", key.name)
        return Subject(pod_status.CONSTRAINT.kind, gvk.kind, key.name)

    # --- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in (self._pods, *self._reflectors):
                tasks.create_task(reflector.run())
            tasks.create_task(self._listen())
            for reflector in (self._pods, *self._reflectors):
                await reflector.wait_synced()
            tasks.create_task(self._write_forever())

    async def _listen(self) -> None:
        while True:
            self._changed(await self._registrar.next())

    async def _write_forever(self) -> None:
        while True:
            await self._wait()
            now = time.monotonic()
            if now >= self._all_due:
                self._all_due = math.inf
                for index in self._indexes:
                    self._due |= dict.fromkeys(index.subjects, now)
            ready = [subject for subject, due in self._due.items() if due <= now]
            for subject in ready:
                del self._due[subject]
            await self._write_all(ready)
            if now >= self._orphans_due:
                self._orphans_due = math.inf
                await self._delete_orphans()

    async def _wait(self) -> None:
        """Wait until something is due, or becomes so earlier."""
        while True:
            self._work.clear()
            due = min(*self._due.values(), self._all_due, self._orphans_due, math.inf)
            seconds = due - time.monotonic()
            if seconds <= 0:
                return
            try:
                async with asyncio.timeout(None if due == math.inf else seconds):
                    await self._work.wait()
            except TimeoutError:
                return

    async def _write_all(self, subjects: list[Subject]) -> None:
        if not subjects:
            return
        live, writers = self._replicas()
        turns = iter(subjects)

        async def work() -> None:
            for subject in turns:
                with self.spoiled.object("by_pod", *subject):
                    await self._write(subject, live, writers)
                await asyncio.sleep(0)  # Thousands that need no write must not hold the watches.

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(WRITES_AT_ONCE, len(subjects))):
                tasks.create_task(work())

    def _replicas(self) -> tuple[frozenset[str], frozenset[str]]:
        """The Pods that count, and those of them that write."""
        everyone = list(self._pods.store)
        # Whoever says something of a constraint says something of its template too.
        items = (
            item
            for index in self._indexes
            if index.kind is not pod_status.CONSTRAINT
            for item in index.items.values()
        )
        return pods.live(everyone), pods.writers(items, pods.working(everyone), self._pod.uid)

    def writers(self) -> frozenset[str]:
        """The replicas that carry out the operation, by the UIDs of their Pods."""
        return self._replicas()[1]

    async def _write(self, subject: Subject, live: frozenset[str], writers: frozenset[str]) -> None:
        """Write one object's status if it differs and it is our turn."""
        gvk, namespace = self._place(subject)
        document = self._manager.get(gvk, namespace, subject.name)
        if document is None:
            self._since.pop(subject, None)
            return
        version = document["metadata"]["resourceVersion"]
        if self._swapped.get(subject) == version:
            return  # What was written then is still on its way here.
        self._swapped.pop(subject, None)
        index = next(index for index in self._indexes if index.kind.kind == subject.kind)
        statuses = [
            item
            for item in index.subjects.get(subject, {}).values()
            if item["metadata"]["namespace"] == self._pod.namespace
        ]
        now = time.monotonic()
        wanted = by_pod.merged_status(document, statuses, index.kind, live)
        if subject.kind != CONFIG_STATUS:
            wanted = self.conditions.merged(subject, document, wanted, statuses, self._pods.store)
            wanted = audit_keeper.merged(subject, document, wanted, statuses, self._pods.store)
            wanted = self.rollouts.merged(subject, document, wanted, statuses, self._pods.store)
            for again in (self.conditions.due(subject), self.rollouts.due(subject)):
                if again is not None:
                    self._due[subject] = min(self._due.get(subject, math.inf), again)
        if wanted is None:
            self._since.pop(subject, None)
            return
        status = status_of(document)
        held = status.get("byPod"), status.get("conditions")
        since, before = self._since.get(subject, (now, held))
        if before != held:
            since = now  # Somebody writes, and is given the time for this difference, too.
        self._since[subject] = since, held
        turn = since + TURN_SECONDS * rendezvous.rank("/".join(subject), writers, self._pod.uid)
        if turn > now:
            self._due[subject] = turn
            return
        self._swapped[subject] = version
        try:
            self.writes += 1
            plural = f"{gvk.kind.lower()}s" if gvk in (TEMPLATE, CONFIG) else gvk.kind.lower()
            resource = Resource(gvk, plural, namespaced=bool(namespace))
            written = await self._client.replace(
                resource, {**document, "status": wanted}, subresource="status"
            )
        except (ApiError, UnreachableError) as error:
            self._swapped.pop(subject, None)
            if isinstance(error, ApiError) and (error.is_conflict or error.is_absent):
                self._due.setdefault(subject, time.monotonic() + DEBOUNCE_SECONDS)
                return  # Another was faster; the watch tells what it wrote.
            self.failures += 1
            self._due[subject] = time.monotonic() + TURN_SECONDS
            self._log.warning(
                "byPod not written", kind=gvk.kind, name=subject.name, error=str(error)
            )
        else:
            self._since.pop(subject, None)
            if subject.kind != CONFIG_STATUS:
                await self.conditions.written(subject, document, wanted, written)
                await self.rollouts.written(subject, document, written)

    def _place(self, subject: Subject) -> tuple[GroupVersionKind, str]:
        if subject.kind == pod_status.TEMPLATE.kind:
            return TEMPLATE, ""
        if subject.kind == pod_status.CONFIG.kind:
            return CONFIG, self._pod.namespace
        return constraint_gvk(subject.constraint_kind), ""

    # --- statuses of pods that are gone --------------------------------------------------------

    async def _delete_orphans(self) -> None:
        """Delete the statuses of Pods that are gone, once the API server confirms that they are.

        A Pod that the watch has not told of yet is not gone. As for byPod, each next replica waits
        a turn longer for those before it.
        """
        live, writers = self._replicas()
        found = [
            (index.kind, item)
            for index in self._indexes
            for item in by_pod.orphans(index.items.values(), live)
        ]
        now = time.monotonic()
        since = {item["metadata"]["uid"]: now for _, item in found}
        self._orphaned_since = since | {
            uid: seen for uid, seen in self._orphaned_since.items() if uid in since
        }
        for kind, item in found:
            metadata = item["metadata"]
            turn = self._orphaned_since[metadata["uid"]] + TURN_SECONDS * rendezvous.rank(
                metadata["name"], writers, self._pod.uid
            )
            if turn > now:
                self._orphans_due = min(self._orphans_due, turn)
            elif await self._is_gone(item):
                await self._delete(kind, item)
            else:
                # Not so: the watch of Pods lags, or cannot be asked. Look again later.
                self._orphans_due = min(self._orphans_due, now + ORPHAN_SECONDS)

    async def _is_gone(self, item: Mapping[str, Any]) -> bool:
        for owner in pods.owners_of(item):
            uid = owner["uid"]
            if uid in self._checked:
                continue
            try:
                pod = await self._client.get(PODS, owner["name"], self._pod.namespace)
            except ApiError as error:
                if not error.is_absent:
                    return False
            except UnreachableError:
                return False
            else:
                if uid in pods.live([pod]):
                    return False
            self._checked.add(uid)
        return True

    async def _delete(self, kind: StatusKind, item: Mapping[str, Any]) -> None:
        metadata = item["metadata"]
        try:
            self.writes += 1
            await self._client.delete(
                status_resource(kind), metadata["name"], metadata["namespace"], uid=metadata["uid"]
            )
        except (ApiError, UnreachableError) as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return  # It is another object by now.
            self.failures += 1
            self._orphans_due = min(self._orphans_due, time.monotonic() + ORPHAN_SECONDS)
            self._log.warning("orphan not deleted", name=metadata["name"], error=str(error))
