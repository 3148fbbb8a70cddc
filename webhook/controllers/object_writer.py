"""Keeps the objects of one kind as they are wanted: writes what differs, and nothing else.

It watches the objects, compares them with those wanted, and brings them in step:
one request for each difference, none in a steady state. A change costs a comparison
of what changed, not of all. What somebody else changed or deleted is put right. Several replicas may want the same object: the
first write wins, and the rest find that nothing differs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from webhook.cluster.backoff import Backoff
from webhook.cluster.errors import ApiError, UnreachableError
from webhook.cluster.reflector import Reflector
from webhook.controllers.spoiled import Spoiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.pod_status import Json
    from webhook.cluster.client import Client
    from webhook.cluster.reflector import Selection, Settings
    from webhook.cluster.resource import Resource
    from webhook.cluster.store import Change, Store
    from webhook.controllers.spoiled import Follower
    from webhook.log import Logger

WRITES_AT_ONCE: Final = 8
"""Requests under way: a start with 2,500 objects takes seconds, and no seat of the API server's
priority level is held for long."""

DEBOUNCE_SECONDS: Final = 0.01
"""A batch of changes is compared once."""


_CRD: Final = "CustomResourceDefinition"


class Overlay(Protocol):
    """How a wanted object and the current one become the one to write."""

    def __call__(self, wanted: Json, current: Json) -> Json | None:
        """The object to write instead of the current one; None where nothing differs."""


@dataclass(frozen=True, slots=True)
class Write:
    """One difference, and the request that removes it."""

    action: Literal["create", "replace", "delete"]
    name: str
    document: Json | None = None


def differences(
    wanted: Mapping[str, Json], found: Mapping[str, Json], overlay: Overlay, *, prune: bool
) -> list[Write]:
    """The writes that make ``found`` be ``wanted``, in order of name."""
    writes = []
    for name, document in sorted(wanted.items()):
        current = found.get(name)
        if current is None:
            writes.append(Write("create", name, document))
        elif (changed := overlay(document, current)) is not None:
            writes.append(Write("replace", name, changed))
    if prune:
        writes += [Write("delete", name) for name in sorted(found.keys() - wanted.keys())]
    return writes


class Unsettled:
    """The names of objects that are to be compared."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._all = False

    def add(self, names: Iterable[str]) -> None:
        """Compare these, too."""
        self._names.update(names)

    def add_all(self) -> None:
        """Compare every object there is or should be."""
        self._all = True

    def take(self, wanted: Iterable[str], found: Iterable[str]) -> frozenset[str]:
        """What is to be compared now, and is not any more."""
        names = frozenset((*wanted, *found)) if self._all else frozenset(self._names)
        self._names.clear()
        self._all = False
        return names


def changed_names(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[str]:
    """The names under which another document stands than before; documents are never changed."""
    changed = {name for name, document in after.items() if before.get(name) is not document}
    return changed | (before.keys() - after.keys())


class ObjectWriter:
    """Keeps some objects of one kind as wanted; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        overlay: Overlay,
        log: Logger,
        *,
        settings: Settings | None = None,
        listener: Callable[[Iterable[Change]], None] | None = None,
        spoiled: Spoiled | None = None,
    ) -> None:
        """``selection`` says which objects of the kind are ours to keep.

        ``listener`` is told what changed at the API server. ``spoiled`` takes what an
        object raises that nobody foresaw.
        """
        self._spoiled = spoiled or Spoiled(log)
        self._follower: Follower = "crd" if resource.gvk.kind == _CRD else "status"
        self._client = client
        self._resource = resource
        self._namespace = selection.namespace
        self._overlay = overlay
        self._log = log
        self._listener = listener
        self._wanted: Mapping[str, Json] = {}
        self._prune = False
        self._unsettled = Unsettled()
        self._work = asyncio.Event()
        self._reflector = Reflector(
            client,
            resource,
            self,
            selection=selection,
            settings=settings,
        )
        self.writes = 0
        self.failures = 0

    @property
    def store(self) -> Store:
        """The objects as the API server has them."""
        return self._reflector.store

    def want(self, documents: Mapping[str, Json], *, prune: bool) -> None:
        """The objects there should be, by name; with ``prune`` there should be no others."""
        self._unsettled.add(changed_names(self._wanted, documents))
        if prune != self._prune:
            self._unsettled.add_all()
        self._wanted, self._prune = dict(documents), prune
        self._work.set()

    def compare_all(self) -> None:
        """Compare again what was right: the API server may keep more of it by now."""
        self._unsettled.add_all()
        self._work.set()

    # What the reflector tells.

    def change(self, changes: Iterable[Change]) -> None:
        """Objects changed at the API server: compare again."""
        if self._listener is not None:
            for change in changes:
                with self._spoiled.object(self._follower, change.key.name):
                    self._listener((change,))
        self._unsettled.add(change.key.name for change in changes)
        self._work.set()

    def synced(self) -> None:
        """A whole list is in the store."""
        self._unsettled.add_all()
        self._work.set()

    @property
    def is_synced(self) -> bool:
        """Whether the store has had a whole list."""
        return self._reflector.statistics().synced

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run())
            tasks.create_task(self._write_forever())

    async def _write_forever(self) -> None:
        await self._reflector.wait_synced()
        backoff = Backoff(initial_seconds=0.2, max_seconds=10.0)
        while True:
            await self._work.wait()
            await asyncio.sleep(DEBOUNCE_SECONDS)
            self._work.clear()
            if not await self._write_all():
                await asyncio.sleep(backoff.next_seconds())
                self._work.set()

    async def _write_all(self) -> bool:
        """Write every difference there is now; whether all could be written."""
        known = {document["metadata"]["name"]: document for document in self.store}
        names = self._unsettled.take(self._wanted, known)
        writes = iter(self._differences(sorted(names), known))
        good = True

        async def work() -> None:
            nonlocal good
            for write in writes:
                written = False
                with self._spoiled.object(self._follower, "write", write.name):
                    written = await self._write(write)
                if not written:
                    good = False
                    self._unsettled.add((write.name,))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITES_AT_ONCE):
                tasks.create_task(work())
        return good

    def _differences(self, names: Iterable[str], known: Mapping[str, Json]) -> list[Write]:
        """The writes that bring these objects in step, each looked at by itself."""
        writes = []
        for name in names:
            with self._spoiled.object(self._follower, self._resource.gvk.kind, name):
                wanted = {name: self._wanted[name]} if name in self._wanted else {}
                found = {name: known[name]} if name in known else {}
                writes += differences(wanted, found, self._overlay, prune=self._prune)
        return writes

    async def _write(self, write: Write) -> bool:
        self.writes += 1
        mark = self.store.mark(self._namespace, write.name)
        try:
            document = await self._request(write)
        except (ApiError, UnreachableError) as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return False  # Another was faster: compare again with what it wrote.
            self.failures += 1
            self._log.warning(
                "object not written",
                kind=self._resource.gvk.kind,
                action=write.action,
                name=write.name,
                error=str(error),
            )
            return False
        if document is None:
            return True
        # Seen before the watch tells it, so that the same difference is not written twice.
        self.store.take_answer(mark, document)
        return True

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
