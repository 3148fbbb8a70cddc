"""Watches audited kinds: finds objects that changed since their last review.

Objects are not kept, only their identity and version, about :data:`OBJECT_BYTES`, to recognise
changes and missed deletions. Changes wait in a bounded queue with the newest state of each object;
if it is full, the kind is marked for a sweep.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from webhook.api.encoding import encode
from webhook.audit.sink import Identity
from webhook.cluster.reflector import Reflector, Settings
from webhook.cluster.store import Change, Object, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient

OBJECT_BYTES: Final = 450
"""Bytes of namespace, name, UID and version (about 280), their holder (72), a dict entry (100)."""

WAITING_MAX: Final = 2000
"""The most waiting objects: some seconds of reviews."""

WAITING_BYTES_MAX: Final = 8 << 20
"""The most bytes of waiting objects as JSON: decoded some 60 MiB. Kinds beyond are swept."""

WATCHES: Final = Settings(list_bytes_max=64 << 30)
"""Only identities of a list are kept: time limits a list, not the size of its objects."""

UNWATCHED: Final = frozenset(
    {("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")}
)
"""Kinds that change constantly and that policies hardly ever match: swept, not watched."""


class _Room:
    """The bytes of whole objects in memory, over all kinds."""

    def __init__(self) -> None:
        self.bytes = 0

    def take(self, obj: Object) -> _Whole | None:
        """Returns the object, if there is room for it."""
        size = len(encode(obj))
        return _Whole(obj, size, self) if self.bytes + size <= WAITING_BYTES_MAX else None


class _Whole:
    """A whole object; its room is released with its last reference."""

    __slots__ = ("_room", "_size", "object")

    def __init__(self, obj: Object, size: int, room: _Room) -> None:
        self.object = obj
        self._size = size
        self._room = room
        room.bytes += size

    def __del__(self) -> None:
        self._room.bytes -= self._size


class _Kept:
    """An object's identity, with the fields that the store needs; whole until it is queued."""

    __slots__ = ("name", "namespace", "resourceVersion", "uid", "whole")

    def __init__(self, obj: Object, whole: _Whole | None) -> None:
        metadata = obj["metadata"]
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")
        self.uid: str = metadata.get("uid", "")
        self.resourceVersion: str = metadata.get("resourceVersion", "")
        self.whole = whole

    def __getitem__(self, name: str) -> Any:
        return self if name == "metadata" else getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def take(self) -> _Whole | None:
        """Returns the whole object, once."""
        whole, self.whole = self.whole, None
        return whole


class Changed(NamedTuple):
    """A changed object: its present state, None for a deleted one."""

    resource: Resource
    identity: Identity
    object: Object | None
    whole: _Whole | None = None
    """The object's reserved memory, until it is reviewed; None without any."""


class _Watch:
    """The watch of one kind; receives its reflector's changes."""

    def __init__(self, client: ClusterClient, resource: Resource, owner: ObjectWatches) -> None:
        self.resource = resource
        self._owner = owner
        self._is_synced = False
        self.reflector = Reflector(
            client,
            resource,
            self,
            settings=WATCHES,
            transform=cast("Callable[[Object], Object]", self._keep),
        )
        self.task: asyncio.Task[None] | None = None

    def _keep(self, obj: Object) -> _Kept:
        """Keeps new states whole: the first list belongs to a sweep, later lists mostly repeat."""
        key = key_of(obj)
        known = self.reflector.store.get(key.namespace, key.name) if self._is_synced else None
        version = obj["metadata"].get("resourceVersion")
        is_new = known is None or known["metadata"].get("resourceVersion") != version
        return _Kept(obj, self._owner.room.take(obj) if self._is_synced and is_new else None)

    def change(self, changes: Iterable[Change]) -> None:
        """Queues changes after the first list."""
        for change in changes:
            kept = cast("_Kept", change.object)
            whole = kept.take()
            if self._is_synced:
                self._owner.put(self.resource, change, kept, whole)

    def synced(self) -> None:
        """Marks the first list as complete: later changes are new."""
        self._is_synced = True


class ObjectWatches:
    """Watches kinds, and queues changes; :meth:`run` owns the tasks."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._watches: dict[GroupVersionKind, _Watch] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._waiting: dict[tuple[GroupVersionKind, str], Changed] = {}
        self.room = _Room()
        self._overflowed: set[GroupVersionKind] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for watch in self._watches.values():
                    watch.task = tasks.create_task(watch.reflector.run())
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None

    @property
    def objects(self) -> int:
        """Returns the number of known objects."""
        return sum(len(watch.reflector.store) for watch in self._watches.values())

    def follow(self, resources: Iterable[Resource]) -> None:
        """Watches exactly these kinds, except those that are only swept."""
        followed = {
            resource.gvk: resource
            for resource in resources
            if resource.gvk.group_kind not in UNWATCHED
        }
        for gvk in self._watches.keys() - followed.keys():
            watch = self._watches.pop(gvk)
            if watch.task is not None:
                watch.task.cancel()
            for waiting in [item for item in self._waiting if item[0] == gvk]:
                del self._waiting[waiting]
        for gvk in sorted(followed.keys() - self._watches.keys()):
            watch = self._watches[gvk] = _Watch(self._client, followed[gvk], self)
            if self._tasks is not None:
                watch.task = self._tasks.create_task(watch.reflector.run())

    def put(self, resource: Resource, change: Change, kept: _Kept, whole: _Whole | None) -> None:
        """Queues a change: the newest state of the object."""
        identity = Identity(resource.gvk, kept.namespace, kept.name, kept.uid, kept.resourceVersion)
        place = (resource.gvk, kept.uid)
        gone = change.kind == "delete"
        is_full = place not in self._waiting and len(self._waiting) >= WAITING_MAX
        if is_full or (whole is None and not gone):
            self._overflowed.add(resource.gvk)
        elif whole is None or gone:
            self._waiting[place] = Changed(resource, identity, None)
        else:
            self._waiting[place] = Changed(resource, identity, whole.object, whole)
        self._changed.set()

    async def wait_synced(self, seconds: float) -> None:
        """Returns when every kind's first list is complete, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                for watch in list(self._watches.values()):
                    await watch.reflector.wait_synced()
        except TimeoutError:
            return

    async def wait(self, seconds: float) -> None:
        """Returns at a change, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def take(self) -> list[Changed]:
        """Takes the changes since the last call, in the order of their first change."""
        taken, self._waiting = list(self._waiting.values()), {}
        self._changed.clear()
        return taken

    def take_overflowed(self) -> frozenset[GroupVersionKind]:
        """Returns the kinds of which more changed than could wait."""
        taken, self._overflowed = frozenset(self._overflowed), set()
        return taken
