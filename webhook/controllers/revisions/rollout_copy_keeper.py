"""The third copy of roll-out records: in the Secret of keys, out of reach of rights on statuses.

A user with rights on constraint statuses and PolicyRevisions can write an earlier signed record
back into both while no replica runs that remembers a later one. A replica that starts reads this
Secret before it applies any policy, and so knows the latest record (docs/adr/0049).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.controllers.keeper import TURN_SECONDS, Keeper
from webhook.controllers.revisions.keeper import REFUSED_SECONDS, SETTLED_SECONDS
from webhook.controllers.revisions.rollout_copies import merged
from webhook.replicas import rendezvous

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.pod_status import Pod
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.controllers.revisions.keys import RevisionKeys
    from webhook.controllers.revisions.rollout_records import RolloutRecords
    from webhook.log import Logger

_KEY: Final = "rollouts"
"""The only key of the queue."""


class RolloutCopyKeeper:
    """Keeps the copies up to date; :meth:`run` in a task of its own."""

    def __init__(
        self,
        keys: RevisionKeys,
        records: RolloutRecords,
        pod: Pod,
        writers: Callable[[], frozenset[str]],
        log: Logger,
        object_faults: ObjectFaults,
    ) -> None:
        """``writers`` gives the replicas that write."""
        self._keys = keys
        self._records = records
        self._pod = pod
        self._writers = writers
        self._log = log
        self.keeper: Keeper[str] = Keeper("rollout", self._settle, object_faults)
        records.listeners.append(lambda _: self.enqueue())
        keys.copies_listeners.append(self.enqueue)

    async def run(self) -> None:
        """Writes in this replica's turns, until cancelled."""
        await self.keeper.run()

    def enqueue(self) -> None:
        """Schedules a comparison of the copies with the records."""
        self.keeper.add(_KEY, SETTLED_SECONDS)

    async def _settle(self, key: str) -> None:
        if not self._keys.can_sign or self._changed(self._keys.copies) is None:
            self.keeper.settled(key)
            return
        rank = rendezvous.rank(key, self._writers(), self._pod.uid)
        if self.keeper.waits_for_turn(key, rank, held=self._keys.copies):
            return
        self.keeper.writes += 1
        try:
            await self._keys.keep_copies(self._changed)
        except ApiError as error:
            self._log_failure(error)
            if error.is_forbidden or error.is_absent:
                self.keeper.failures += 1
                seconds = REFUSED_SECONDS * random.uniform(1.0, 1.5)  # noqa: S311  # jitter
                self.keeper.add(key, seconds)
            else:
                self.keeper.failed(key)
        except ApiUnreachable as error:
            self._log_failure(error)
            self.keeper.failed(key)
        else:
            self.keeper.settled(key, TURN_SECONDS)  # writes changes that came meanwhile

    def _changed(self, copies: str) -> str | None:
        return merged(copies, self._records.current(), self._records.gone)

    def _log_failure(self, error: ApiError | ApiUnreachable) -> None:
        self._log.warning("the copy of roll-outs was not written", error=str(error))
