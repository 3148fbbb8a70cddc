"""Finds this audit's place among several, from the existing Pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.audit.members import Members, members
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import PODS
from webhook.replicas.pods import AUDIT_PODS

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient


class Shares:
    """The members as of the last look. Used by one task."""

    def __init__(self, client: ClusterClient, namespace: str, uid: str) -> None:
        """Namespace and UID are those of Waddle's own Pod; without a UID this audit is alone."""
        self._client = client
        self._namespace = namespace
        self._uid = uid
        self.members = Members(frozenset({uid}), uid)

    async def look(self) -> Members:
        """Reads the present audits; raises the errors of requests."""
        self.members = await self._present()
        return self.members

    async def is_current(self) -> bool:
        """Whether shares are still as they were at the last look."""
        try:
            return await self._present() == self.members
        except (ApiError, ApiUnreachable):
            return False  # Without certainty nothing is published.

    def is_ours(self, gvk: GroupVersionKind, namespace: str) -> bool:
        """Whether a kind in a namespace is this audit's to look at."""
        return self.members.share(gvk, namespace)

    async def _present(self) -> Members:
        if not self._uid:
            return self.members
        path = PODS.collection(self._namespace)
        listed = await self._client.request("GET", path, query={"labelSelector": AUDIT_PODS})
        return members(listed["items"], self._uid)
