"""Where a sweep gets objects: from the API server's lists, or from synced data."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.gvk import GroupVersionKind, split_group_version
from webhook.api.resource import Resource
from webhook.audit.kinds import listable
from webhook.audit.pages import ListStatistics, Pages, Partial
from webhook.audit.patience import FORBIDDEN_SECONDS, patiently
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.page_size import PageSize

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from webhook.audit.kept import KeptKind
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.snapshot import Snapshot

CHUNK_OBJECTS: Final = 500
"""Objects of synced data that are handed over at a time; they are in memory anyway."""


SETTLED_SECONDS: Final = 60.0
"""How long an API server is believed to know its roles, once a refusal has lasted."""

_METHOD_NOT_ALLOWED: Final = 405


class UnreadableKind(Exception):
    """The audit has no right to list a kind, or nobody has."""


class AuditSource(Protocol):
    """Gives kinds and their objects; for one sweep after the other."""

    async def kinds(self, snapshot: Snapshot) -> tuple[Resource, ...]:
        """The kinds that there are, in order.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """

    def pages(
        self,
        snapshot: Snapshot,
        resource: Resource,
        kept: KeptKind | None = None,
    ) -> AsyncGenerator[list[Object], None]:
        """A kind's objects in lists that the caller may empty, last first.

        ``kept`` says for which objects metadata is enough: a
        :class:`~webhook.audit.pages.PartialObject` may stand for each of them.

        Raises :class:`UnreadableKind`, and as :meth:`kinds`. Objects need not
        state their kind.
        """

    def unseen(self) -> frozenset[GroupVersionKind]:
        """The kinds that there are and that are not looked at at all."""


class ListSource:
    """Lists from the API server. Used by one task."""

    def __init__(
        self,
        client: ClusterClient,
        page_objects: int,
        *,
        forbidden_seconds: float = FORBIDDEN_SECONDS,
    ) -> None:
        """``page_objects`` is the most in a page, 0 for everything in one.

        A refusal is taken for final after ``forbidden_seconds``.
        """
        self._client = client
        self._forbidden_seconds = forbidden_seconds
        self._page_objects = page_objects
        self.statistics = ListStatistics()
        self._looked: tuple[Resource, ...] | None = None
        self._refused: set[GroupVersionKind] = set()
        self._refused_at = -math.inf
        self._readable: set[GroupVersionKind] = set()
        self._sizes: dict[GroupVersionKind, PageSize] = {}
        self._partial_sizes: dict[GroupVersionKind, PageSize] = {}
        """The page sizes of each kind: the next sweep begins where this one ended."""

    async def look(self) -> tuple[Resource, ...]:
        """Every kind that can be listed, which the next call of :meth:`kinds` gives too."""
        self._looked = await patiently(lambda: listable(self._client))
        return self._looked

    def unseen(self) -> frozenset[GroupVersionKind]:
        """None: what cannot be read is told of as it is tried."""
        return frozenset()

    async def kinds(self, snapshot: Snapshot | None = None) -> tuple[Resource, ...]:
        """Every kind that can be listed."""
        del snapshot
        looked, self._looked = self._looked, None
        return await patiently(lambda: listable(self._client)) if looked is None else looked

    async def pages(
        self,
        snapshot: Snapshot,
        resource: Resource,
        kept: KeptKind | None = None,
    ) -> AsyncGenerator[list[Object], None]:
        """The kind's pages; refused for good is what was refused before, or never given."""
        del snapshot
        gvk = resource.gvk
        pages = Pages(
            self._client,
            resource,
            size=self._sizes.setdefault(gvk, PageSize.first(self._page_objects)),
            statistics=self.statistics,
            forbidden_seconds=self._patience_with(gvk),
            # Of a kind that is new to it all would have to be fetched twice.
            partial=Partial(kept.known, self._partial_size(gvk))
            if kept is not None and len(kept)
            else None,
            listed=None if kept is None else kept.listed,
        )
        try:
            async for page in pages:
                yield page
        except ApiError as error:
            if not error.is_forbidden and error.status != _METHOD_NOT_ALLOWED:
                raise
            self._refused.add(gvk)
            self._refused_at = time.monotonic()
            if gvk in self._readable:
                # It could be read a moment ago: whether that was all is not known.
                self._readable.discard(gvk)
                raise
            raise UnreadableKind(str(error)) from error
        self._readable.add(gvk)
        self._refused.discard(gvk)

    def _partial_size(self, gvk: GroupVersionKind) -> PageSize:
        return self._partial_sizes.setdefault(gvk, PageSize.first(self._page_objects))

    def _patience_with(self, gvk: GroupVersionKind) -> float:
        """How long a refusal may be the API server's start: found out once, it is for all kinds."""
        is_settled = time.monotonic() - self._refused_at < SETTLED_SECONDS
        return 0.0 if is_settled or gvk in self._refused else self._forbidden_seconds


class CacheSource:
    """The synced data of the snapshot under audit: what Config and SyncSets ask for."""

    def __init__(
        self,
        resources: Iterable[Resource],
        synced: frozenset[GroupVersionKind],
        unsynced: frozenset[GroupVersionKind],
    ) -> None:
        """``resources`` are those that can be listed, with their plurals.

        ``synced`` are the kinds of which every object is there, ``unsynced`` those of
        which some are not there yet: nothing is told of them.
        """
        self._resources = {resource.gvk: resource for resource in resources}
        self._synced = synced
        self._unsynced = unsynced

    def unseen(self) -> frozenset[GroupVersionKind]:
        """The kinds that nothing asks to be synced, in no version."""
        seen = {gvk.group_kind for gvk in self._synced | self._unsynced}
        return frozenset(gvk for gvk in self._resources if gvk.group_kind not in seen)

    async def kinds(self, snapshot: Snapshot) -> tuple[Resource, ...]:
        """The kinds that are synced, or will be."""
        scopes = dict.fromkeys(self._synced | self._unsynced, False)
        for namespaced, level in _levels(snapshot.inventory):
            for group_version, kinds in level.items():
                for kind in kinds:
                    gvk = GroupVersionKind(*split_group_version(group_version), kind)
                    scopes[gvk] = namespaced
        return tuple(
            self._resources.get(gvk) or Resource(gvk, "", namespaced=namespaced)
            for gvk, namespaced in sorted(scopes.items())
        )

    async def pages(
        self,
        snapshot: Snapshot,
        resource: Resource,
        kept: KeptKind | None = None,
    ) -> AsyncGenerator[list[Object], None]:
        """The kind's objects, each whole."""
        del kept
        if resource.gvk in self._unsynced:
            raise ApiUnreachable(f"{resource.gvk}: not every object has been synced yet")
        page: list[Object] = []
        for _, level in _levels(snapshot.inventory):
            kinds = level.get(resource.gvk.group_version) or {}
            for obj in (kinds.get(resource.gvk.kind) or {}).values():
                page.append(obj)
                if len(page) >= CHUNK_OBJECTS:
                    yield page[::-1]
                    page = []
        if page:
            yield page[::-1]


def _levels(inventory: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """The parts of the tree that hold objects by group, version and kind."""
    yield False, inventory.get("cluster") or {}
    for level in (inventory.get("namespace") or {}).values():
        yield True, level
