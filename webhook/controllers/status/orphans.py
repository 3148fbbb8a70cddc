"""Deletes statuses of deleted Pods, if the garbage collector does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import PODS
from webhook.controllers.keeper import Keeper
from webhook.controllers.status import by_pod
from webhook.controllers.status_kinds import status_resource
from webhook.replicas import pods, rendezvous

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from webhook.api.pod_status import Pod
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.controllers.status.status_index import StatusIndex
    from webhook.log import Logger
    from webhook.replicas.pods import Replicas

ORPHAN_SECONDS: Final = 5.0
"""How long orphans are left to the garbage collector, which needs a second or two if it works."""


class _Key(NamedTuple):
    kind: str
    name: str


_EVERY: Final = _Key("", "")
"""The key to look through all statuses for orphans."""


class Orphans:
    """Deletes orphaned statuses; :meth:`run` in a task of its own.

    The API server is asked for the Pod first, since the watch of Pods may lag. As for byPod, each
    next replica in turn waits longer.
    """

    def __init__(
        self,
        client: ClusterClient,
        pod: Pod,
        log: Logger,
        indexes: Sequence[StatusIndex],
        replicas: Callable[[], Replicas],
        object_faults: ObjectFaults,
    ) -> None:
        """``replicas`` gives the current replicas; ``object_faults`` takes unforeseen errors."""
        self._client = client
        self._pod = pod
        self._log = log
        self._indexes = {index.kind.kind: index for index in indexes}
        self._replicas = replicas
        self.keeper: Keeper[_Key] = Keeper(
            "orphan", self._settle, object_faults, retry_seconds=ORPHAN_SECONDS
        )
        self._checked: set[str] = set()

    def look(self) -> None:
        """Queues a look for orphans, since replicas may have gone."""
        self.keeper.add(_EVERY, ORPHAN_SECONDS)

    async def run(self) -> None:
        """Deletes until cancelled."""
        await self.keeper.run()

    async def _settle(self, key: _Key) -> None:
        existing = self._replicas().existing
        if key is not _EVERY:
            await self._settle_one(key, existing)
        else:
            for kind, index in self._indexes.items():
                for item in by_pod.orphans(index.items.values(), existing):
                    self.keeper.add(_Key(kind, item["metadata"]["name"]))
            self.keeper.settled(key)

    async def _settle_one(self, key: _Key, existing: frozenset[str]) -> None:
        item = self._indexes[key.kind].items.get(key.name)
        if item is None or not by_pod.orphans([item], existing):
            self.keeper.settled(key)
            return
        rank = rendezvous.rank(key.name, self._replicas().writers, self._pod.uid)
        if self.keeper.waits_for_turn(key, rank):
            return
        if await self._is_gone(item) and await self._delete(key, item):
            self.keeper.settled(key)
        else:
            # The Pod exists, since the watch of Pods lags; or the request failed. Look again later.
            self.keeper.retry(key)

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
            except ApiUnreachable:
                return False
            else:
                if uid in pods.live([pod]):
                    return False
            self._checked.add(uid)
        return True

    async def _delete(self, key: _Key, item: Mapping[str, Any]) -> bool:
        """Deletes a status; returns whether it no longer exists."""
        resource = status_resource(self._indexes[key.kind].kind)
        metadata = item["metadata"]
        try:
            self.keeper.writes += 1
            await self._client.delete(
                resource, key.name, metadata["namespace"], uid=metadata["uid"]
            )
        except (ApiError, ApiUnreachable) as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return True  # It has been replaced by another object.
            self.keeper.failures += 1
            self._log.warning(
                "a status without its replica or policy was not deleted",
                name=key.name,
                error=str(error),
            )
            return False
        return True
