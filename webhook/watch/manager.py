"""Runs one reflector for each requested kind, and distributes its changes.

A registrar that joins a watched kind gets a replay from the store. The watch of a kind ends with
its last registrar. A reload of policies restarts no watch, and nothing is written to the cluster.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from webhook.backoff import Backoff
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.reflector import ObjectSelection, Reflector, ReflectorStatistics, Settings
from webhook.cluster.store import Change, IdentityStore, Key, Object, Store, key_of, shared
from webhook.watch.registrar import Registrar, Transform

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient

UNKNOWN_SECONDS_MAX = 10.0
"""Longest pause between two looks for a kind that is not served; :meth:`Manager.wake` ends it."""


class _Watch:
    """One kind: its registrars, its reflector once its resource is known, and its task."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        self.gvk = gvk
        self.registrars: list[Registrar] = []
        self.reflector: Reflector | None = None
        self.kept: list[Object] = []
        """The objects known of the kind while it has no reflector."""
        self.projection: Transform | None = None
        """The fields kept of its objects; None for all. With a projection there is only one
        registrar, which holds the objects."""
        self.unseen: list[Key] = []
        """The keys of objects that registrars know, without their content, while it has no
        reflector."""
        self.is_synced = False
        self.task: asyncio.Task[None] | None = None
        self.woken = asyncio.Event()
        self.error = ""
        self.is_absent = False
        """Whether the API server has said that it does not serve the kind."""

    def change(self, changes: Iterable[Change]) -> None:
        """Hands the reflector's changes to each registrar's queue."""
        for change in changes:
            for registrar in self.registrars:
                if change.kind == "set":
                    registrar.queue.set(self.gvk, change.key, change.object)
                else:
                    registrar.queue.delete(self.gvk, change.key, change.object)

    def synced(self) -> None:
        """Tells each registrar, the first time, that all existing objects have been delivered."""
        if not self.is_synced:
            self.is_synced = True
            for registrar in self.registrars:
                registrar.queue.synced(self.gvk)

    @property
    def objects(self) -> Iterable[Object]:
        """Returns the objects of the kind that are known."""
        return self.kept if self.reflector is None else self.reflector.store

    def drop(self) -> None:
        """Drops all known objects: they cannot exist any more."""
        store = Store()
        self.fill(store)
        self.change(store.replace([]))

    def fill(self, store: Store) -> None:
        """Moves the objects kept without a reflector into a store."""
        store.replace(self.kept)
        store.expect(self.unseen)
        self.kept, self.unseen = [], []

    def empty(self, *, keys_only: bool) -> None:
        """Ends the task and keeps the known objects; with ``keys_only`` only their keys."""
        if self.task is not None:
            self.task.cancel()
            self.task = None
        reflector, self.reflector = self.reflector, None
        store = Store()
        if reflector is None:
            self.fill(store)
        else:
            store = reflector.store
        kept = [] if keys_only else list(store)
        held = {key_of(obj) for obj in kept}
        self.kept, self.unseen = kept, [key for key in store.keys if key not in held]
        if keys_only:
            self.is_synced = False
            for registrar in self.registrars:
                registrar.queue.renew(self.gvk)

    def kept_of(self, obj: Object) -> Object:
        """Returns the fields of an object to keep; called again after a narrower projection."""
        return shared(obj) if self.projection is None else self.projection(obj)

    def replay(self, registrar: Registrar) -> None:
        """Delivers the known objects to a registrar that joins."""
        for obj in self.objects:
            registrar.queue.set(self.gvk, key_of(obj), obj)
        if self.is_synced:
            registrar.queue.synced(self.gvk)


class Manager:
    """All watches of a process; :meth:`run` owns their tasks."""

    def __init__(
        self,
        client: ClusterClient,
        discovery: Discovery,
        *,
        settings: Settings | None = None,
        selections: Mapping[GroupVersionKind, ObjectSelection] | None = None,
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._settings = settings or Settings()
        self._selections = selections or {}
        self._watches: dict[GroupVersionKind, _Watch] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._registrars: dict[str, Registrar] = {}

    def registrar(self, name: str) -> Registrar:
        """Returns a new registrar; names are unique, for the metrics."""
        assert name not in self._registrars, f"a registrar named {name} exists"
        registrar = self._registrars[name] = Registrar(name, self)
        return registrar

    async def run(self) -> None:
        """Watch until cancelled. Intents may come before and at any time."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for watch in self._watches.values():
                    self._start(watch)
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def wake(self, gvk: GroupVersionKind) -> None:
        """Looks at once after a change of the kind's definition."""
        self._discovery.forget(gvk)
        watch = self._watches.get(gvk)
        if watch is not None:
            watch.woken.set()
            if watch.reflector is not None:
                watch.reflector.wake()

    def restart(self, gvk: GroupVersionKind) -> None:
        """Lists a kind anew after its definition was deleted, and with it every object.

        A watch that continues belongs to the deleted definition, and may not deliver objects of a
        new one of the same name. If the deletion is noticed late, objects of the new definition may
        be known already. So known objects are dropped only if a list lacks them, or if there is no
        new definition.
        """
        self._discovery.forget(gvk)
        watch = self._watches.get(gvk)
        if watch is None:
            return
        watch.empty(keys_only=False)
        self._start(watch)

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> Object | None:
        """Returns the known object of a watched kind; None without one."""
        watch = self._watches.get(gvk)
        if watch is None:
            return None
        if watch.reflector is None:
            return next((obj for obj in watch.kept if key_of(obj) == (namespace, name)), None)
        return watch.reflector.store.get(namespace, name)

    def statistics(self) -> dict[GroupVersionKind, ReflectorStatistics]:
        """Returns the statistics of each watch; a kind that is not served is reported as absent.

        A kind is not reported as absent if the API server could not be reached: it may be served.
        """
        return {
            gvk: (
                ReflectorStatistics(absent=watch.is_absent, last_error=watch.error)
                if watch.reflector is None
                else watch.reflector.statistics()
            )
            for gvk, watch in self._watches.items()
        }

    # --- intents, from registrars -------------------------------------------------------------

    def joined(self, registrar: Registrar, gvk: GroupVersionKind) -> None:
        """Adds a registrar to a kind."""
        watch = self._watches.get(gvk)
        if watch is None:
            watch = self._watches[gvk] = _Watch(gvk)
            watch.projection = registrar.projections.get(gvk)
            self._start(watch)
        watch.registrars.append(registrar)
        if watch.projection is not None and len(watch.registrars) > 1:
            watch.projection = None
            self._list_anew(watch)
        watch.replay(registrar)

    def projected(self, registrar: Registrar, gvk: GroupVersionKind, *, is_narrower: bool) -> None:
        """Applies a registrar's new projection: objects are delivered again, or listed anew."""
        watch = self._watches[gvk]
        projection = registrar.projections.get(gvk)
        if len(watch.registrars) > 1 or (projection is None and watch.projection is None):
            registrar.queue.renew(gvk)
            watch.replay(registrar)
        elif is_narrower and watch.projection is not None:
            watch.projection = projection
        else:
            watch.projection = projection
            self._list_anew(watch)

    def _list_anew(self, watch: _Watch) -> None:
        """Lists all objects anew: the known ones were made by another projection."""
        watch.empty(keys_only=True)
        self._start(watch)

    def left(self, registrar: Registrar, gvk: GroupVersionKind) -> None:
        """Removes a registrar from a kind."""
        watch = self._watches[gvk]
        watch.registrars.remove(registrar)
        if not watch.registrars:
            del self._watches[gvk]
            if watch.task is not None:
                watch.task.cancel()

    # --- watching -----------------------------------------------------------------------------

    def _start(self, watch: _Watch) -> None:
        if self._tasks is not None and watch.task is None:
            watch.task = self._tasks.create_task(self._follow(watch), name=f"watch {watch.gvk}")

    async def _follow(self, watch: _Watch) -> None:
        backoff = Backoff(initial_seconds=0.5, max_seconds=UNKNOWN_SECONDS_MAX)
        while True:
            watch.woken.clear()
            try:
                resource = await self._discovery.resource(watch.gvk)
                break
            except (UnknownKind, ApiError, ApiUnreachable) as error:
                watch.error, watch.is_absent = str(error), isinstance(error, UnknownKind)
            try:
                async with asyncio.timeout(backoff.next_seconds()):
                    await watch.woken.wait()
            except TimeoutError:
                if watch.is_absent:
                    watch.drop()
        watch.reflector = Reflector(
            self._client,
            resource,
            watch,
            selection=self._selections.get(watch.gvk),
            settings=self._settings,
            transform=lambda obj: watch.kept_of(self._client.kept(obj)),
            store=Store() if watch.projection is None else IdentityStore(),
        )
        watch.fill(watch.reflector.store)
        await watch.reflector.run()
