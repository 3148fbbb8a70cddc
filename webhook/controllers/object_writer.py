"""Keeps the objects of one kind as desired; writes only differences.

It watches the objects and compares them with the desired ones. Each difference costs one request; a
steady state costs none. A change causes a comparison of the changed objects only. Changes and
deletions by other writers are undone. Several replicas may want the same object: the first write
wins, and the rest find no difference.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.reflector import ObjectSelection, Reflector, Settings
from webhook.cluster.store import Change, EncodedStore, Store
from webhook.controllers.keeper import WRITES_AT_ONCE, Keeper
from webhook.controllers.object_faults import Follower, ObjectFaults
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

RETRY_SECONDS_MAX: Final = 10.0

DEBOUNCE_SECONDS: Final = 0.01
"""How long changes are gathered into one comparison."""


_CRD: Final = "CustomResourceDefinition"


class Overlay(Protocol):
    """Merges a desired object with the current one into the object to write."""

    def __call__(self, desired: Json, current: Json) -> Json | None:
        """Returns the object to write over the current one; None if they do not differ."""


@dataclass(frozen=True, slots=True)
class Write:
    """One difference, and the request that removes it."""

    action: Literal["create", "replace", "delete"]
    name: str
    document: Json | None = None


def every(_: Json) -> bool:
    """Select every object that is not desired for deletion: all that are followed are ours."""
    return True


def difference(
    name: str,
    desired: Json | None,
    current: Json | None,
    overlay: Overlay,
    *,
    prune: bool,
    stale: Callable[[Json], bool] = every,
) -> Write | None:
    """Returns the write that makes the current object the desired one; None if they do not differ."""
    if desired is None:
        return Write("delete", name) if prune and current is not None and stale(current) else None
    if current is None:
        return Write("create", name, desired)
    changed = overlay(desired, current)
    return None if changed is None else Write("replace", name, changed)


def changed_names(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[str]:
    """Returns the names whose document has changed; documents are never changed in place."""
    changed = {name for name, document in after.items() if before.get(name) is not document}
    return changed | (before.keys() - after.keys())


class ObjectWriter:
    """Keeps the objects of one kind as desired; :meth:`run` in a task of its own."""

    def __init__(  # noqa: PLR0913  # each dependency is a parameter
        self,
        client: ClusterClient,
        resource: Resource,
        selection: ObjectSelection,
        overlay: Overlay,
        log: Logger,
        *,
        settings: Settings | None = None,
        listener: Callable[[Iterable[Change]], None] | None = None,
        object_faults: ObjectFaults | None = None,
        stale: Callable[[Json], bool] = every,
        failed: Callable[[str, str], None] | None = None,
        retry_seconds_max: float = RETRY_SECONDS_MAX,
        grace_seconds: float = 0.0,
        encodes: bool = False,
    ) -> None:
        """``selection`` selects the objects of the kind that are ours.

        ``listener`` gets changes at the API server, and an empty list after each complete list.
        ``object_faults`` takes unforeseen errors. ``stale`` decides which undesired objects may be
        deleted, once they have been undesired for ``grace_seconds``. ``failed`` gets the name of an
        object and the error of its write, or an empty text after a success. With ``encodes`` the
        store holds objects as JSON: for many that are rarely read.
        """
        self._object_faults = object_faults or ObjectFaults(log)
        self._follower: Follower = "crd" if resource.gvk.kind == _CRD else "status"
        self._client = client
        self._resource = resource
        self._namespace = selection.namespace
        self._overlay = overlay
        self._log = log
        self._listener = listener
        self._stale = stale
        self._failed = failed
        self._grace_seconds = grace_seconds
        self._obsolete_since: dict[str, float] = {}
        self._desired: Mapping[str, Json] = {}
        self._prune = False
        self._keeper: Keeper[str] = Keeper(
            self._follower,
            self._settle,
            self._object_faults,
            workers=WRITES_AT_ONCE,
            retry_seconds=0.2,
            retry_seconds_max=retry_seconds_max,
        )
        self._reflector = Reflector(
            client,
            resource,
            self,
            selection=selection,
            settings=settings,
            store=EncodedStore() if encodes else None,
        )

    @property
    def writes(self) -> int:
        """Requests that wrote, or tried to."""
        return self._keeper.writes

    @property
    def failures(self) -> int:
        """The number of writes that failed."""
        return self._keeper.failures

    @property
    def store(self) -> Store:
        """The objects as the API server has them."""
        return self._reflector.store

    def want(self, documents: Mapping[str, Json], *, prune: bool) -> None:
        """Sets the desired objects, by name; with ``prune`` all others are deleted."""
        before, was_pruned = self._desired, self._prune
        self._desired, self._prune = dict(documents), prune
        if prune != was_pruned:
            self.compare_all()
        else:
            self._compare(sorted(changed_names(before, documents)))

    def compare_all(self) -> None:
        """Compares all objects again: the API server may keep more of their fields by now."""
        known = {key.name for key in self.store.keys}
        self._compare(sorted(known | self._desired.keys()))

    def _compare(self, names: Iterable[str]) -> None:
        for name in names:
            self._keeper.add(name, DEBOUNCE_SECONDS)

    # Calls from the reflector.

    def change(self, changes: Iterable[Change]) -> None:
        """Objects changed at the API server: compare again."""
        if (listener := self._listener) is not None:
            self._object_faults.each(
                self._follower, "", changes, lambda change: listener((change,))
            )
        self._compare(change.key.name for change in changes)

    def synced(self) -> None:
        """A whole list is in the store, maybe of nothing."""
        if self._listener is not None:
            self._listener(())
        self.compare_all()

    @property
    def is_synced(self) -> bool:
        """Whether the store has had a whole list."""
        return self._reflector.statistics().synced

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run())
            await self._reflector.wait_synced()
            tasks.create_task(self._keeper.run())

    async def _settle(self, name: str) -> None:
        """Writes one object if it differs."""
        written, write = True, self._difference(name)
        if (seconds := self._grace_left(name, write)) > 0:
            self._keeper.add(name, seconds)
        elif write is not None:
            written = await self._write(write)
        if written:
            self._keeper.settled(name)
        else:
            self._keeper.retry(name)

    def _difference(self, name: str) -> Write | None:
        desired, current = self._desired.get(name), self.store.get(self._namespace, name)
        return difference(
            name, desired, current, self._overlay, prune=self._prune, stale=self._stale
        )

    def _grace_left(self, name: str, write: Write | None) -> float:
        """Returns for how many seconds an undesired object is left alone before its deletion."""
        if write is None or write.action != "delete":
            self._obsolete_since.pop(name, None)
            return 0.0
        now = time.monotonic()
        return self._obsolete_since.setdefault(name, now) + self._grace_seconds - now

    async def _write(self, write: Write) -> bool:
        self._keeper.writes += 1
        mark = self.store.mark(self._namespace, write.name)
        try:
            document = await self._request(write)
        except (ApiError, ApiUnreachable) as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return False  # Another writer was faster: compare again with its object.
            self._keeper.failures += 1
            self._notify_failed(write.name, str(error))
            self._log.warning(
                "an object was not written; trying again",
                kind=self._resource.gvk.kind,
                action=write.action,
                name=write.name,
                error=str(error),
            )
            return False
        self._notify_failed(write.name, "")
        if document is None:
            return True
        # Stored before the watch delivers it, so that the same difference is not written twice.
        self.store.take_answer(mark, document)
        return True

    def _notify_failed(self, name: str, error: str) -> None:
        if self._failed is not None:
            self._failed(name, error)

    async def _request(self, write: Write) -> dict[str, Any] | None:
        namespace = self._namespace
        match write.action:
            case "create":
                assert write.document is not None
                return await self._client.create(self._resource, write.document, namespace)
            case "replace":
                assert write.document is not None
                return await self._client.replace(self._resource, write.document)
            case "delete":
                known = self.store.get(namespace, write.name)
                await self._client.delete(self._resource, write.name, namespace)
                if known is not None:
                    self.store.delete(known)
                return None
