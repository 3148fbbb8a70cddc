"""The source of a sweep's objects: the API server's lists, or synced data."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.gvk import GroupVersionKind, split_group_version
from webhook.api.resource import Resource
from webhook.audit.kinds import listable
from webhook.audit.pages import ListStatistics, Pages, Partial
from webhook.audit.retries import FORBIDDEN_SECONDS, with_retries
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.page_size import PageSize

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from webhook.audit.kept import KeptKind
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.snapshot import Snapshot

CHUNK_OBJECTS: Final = 500
"""Objects of synced data in a batch; they are in memory anyway."""


SETTLED_SECONDS: Final = 60.0
"""The time for which an API server's roles count as loaded after a lasting refusal, in seconds."""

_METHOD_NOT_ALLOWED: Final = 405


class UnreadableKind(Exception):
    """The audit has no right to list the kind, or nobody has."""


class AuditSource(Protocol):
    """Returns kinds and their objects; for successive sweeps."""

    async def kinds(self, snapshot: Snapshot) -> tuple[Resource, ...]:
        """Returns the existing kinds, in order.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """

    def pages(
        self,
        snapshot: Snapshot,
        resource: Resource,
        kept: KeptKind | None = None,
    ) -> AsyncGenerator[list[Object], None]:
        """Yields a kind's objects in lists that the caller may empty, in reverse order.

        ``kept`` returns for which objects metadata is enough: a
        :class:`~webhook.audit.pages.PartialObject` may replace each of them.

        Raises :class:`UnreadableKind`, and as :meth:`kinds`. Objects may lack their kind.
        """

    def unseen(self) -> frozenset[GroupVersionKind]:
        """Returns existing kinds that are not reviewed at all."""


class ListSource:
    """Lists from the API server. Used by one task."""

    def __init__(
        self,
        client: ClusterClient,
        page_objects: int,
        *,
        forbidden_seconds: float = FORBIDDEN_SECONDS,
    ) -> None:
        """``page_objects`` is the most in a page, 0 for all in one.

        A refusal is final after ``forbidden_seconds``.
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
        """The page sizes of each kind: the next sweep begins with the last size."""

    async def look(self) -> tuple[Resource, ...]:
        """Returns every kind that can be listed.

        The next call of :meth:`kinds` returns the same.
        """
        self._looked = await with_retries(lambda: listable(self._client))
        return self._looked

    def unseen(self) -> frozenset[GroupVersionKind]:
        """Returns none: unreadable kinds are reported when listing fails."""
        return frozenset()

    async def kinds(self, snapshot: Snapshot | None = None) -> tuple[Resource, ...]:
        """Returns every kind that can be listed."""
        del snapshot
        looked, self._looked = self._looked, None
        return await with_retries(lambda: listable(self._client)) if looked is None else looked

    async def pages(
        self,
        snapshot: Snapshot,
        resource: Resource,
        kept: KeptKind | None = None,
    ) -> AsyncGenerator[list[Object], None]:
        """Yields the kind's pages.

        A lasting refusal is final if listing never worked or failed before.
        """
        del snapshot
        gvk = resource.gvk
        pages = Pages(
            self._client,
            resource,
            size=self._sizes.setdefault(gvk, PageSize.first(self._page_objects)),
            statistics=self.statistics,
            forbidden_seconds=self._forbidden_seconds_of(gvk),
            # For a new kind all objects would be fetched twice.
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
                # It was readable a moment ago: the list may be incomplete.
                self._readable.discard(gvk)
                raise
            raise UnreadableKind(str(error)) from error
        self._readable.add(gvk)
        self._refused.discard(gvk)

    def _partial_size(self, gvk: GroupVersionKind) -> PageSize:
        return self._partial_sizes.setdefault(gvk, PageSize.first(self._page_objects))

    def _forbidden_seconds_of(self, gvk: GroupVersionKind) -> float:
        """Returns how long a refusal may be the API server's start; one result is for all kinds."""
        is_settled = time.monotonic() - self._refused_at < SETTLED_SECONDS
        return 0.0 if is_settled or gvk in self._refused else self._forbidden_seconds


class CacheSource:
    """The synced data of the audited snapshot: the kinds of Config and SyncSets."""

    def __init__(
        self,
        resources: Iterable[Resource],
        synced: frozenset[GroupVersionKind],
        unsynced: frozenset[GroupVersionKind],
    ) -> None:
        """``resources`` are the kinds that can be listed, with their plurals.

        ``synced`` are kinds with all objects present; ``unsynced`` kinds are incomplete, and are
        not reported.
        """
        self._resources = {resource.gvk: resource for resource in resources}
        self._synced = synced
        self._unsynced = unsynced

    def unseen(self) -> frozenset[GroupVersionKind]:
        """Returns the kinds that are not synced in any version."""
        seen = {gvk.group_kind for gvk in self._synced | self._unsynced}
        return frozenset(gvk for gvk in self._resources if gvk.group_kind not in seen)

    async def kinds(self, snapshot: Snapshot) -> tuple[Resource, ...]:
        """Returns the kinds that are synced, or will be."""
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
        """Returns the kind's objects, each whole."""
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
    """Yields the parts of the tree that have objects by group, version and kind."""
    yield False, inventory.get("cluster") or {}
    for level in (inventory.get("namespace") or {}).values():
        yield True, level
