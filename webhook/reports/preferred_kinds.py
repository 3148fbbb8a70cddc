"""Which version of a kind reports speak of: the one that audits list, whoever marked the resource."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.audit.kinds import listable
from webhook.cluster.discovery import FRESH_SECONDS, UnknownKind

if TYPE_CHECKING:
    from webhook.api.gvk import GroupKind, GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient


MISSING_SECONDS: Final = 5.0
"""A kind that is not known may be new: the whole list is asked for again, at most so often."""


class PreferredKinds:
    """Looks kinds up by group and kind. Used on one event loop."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._known: dict[GroupKind, Resource] = {}
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """The kind at the version that its group prefers.

        Raises :class:`~webhook.cluster.discovery.UnknownKind`,
        :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        async with self._asking:
            if self._is_stale(gvk.group_kind):
                self._known = {item.gvk.group_kind: item for item in await listable(self._client)}
                self._asked_at = time.monotonic()
        preferred = self._known.get(gvk.group_kind)
        if preferred is None:
            raise UnknownKind(f"the API server lists no {gvk}")
        return preferred

    def _is_stale(self, kind: GroupKind) -> bool:
        if self._asked_at is None:
            return True
        limit = FRESH_SECONDS if kind in self._known else MISSING_SECONDS
        return time.monotonic() - self._asked_at >= limit
