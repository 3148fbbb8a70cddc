"""Keeps the statuses of exceptions, reports their end, and deletes those that ended long ago.

The status follows from the object, the clock and the excused violations, so any replica can write
it for all. The time of the last use is written at most once a minute.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.api.shapes import status_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.controllers.keeper import TURN_SECONDS, WRITES_AT_ONCE, Keeper
from webhook.controllers.status.aggregation import DEBOUNCE_SECONDS
from webhook.events.policies import EventWriter, event
from webhook.exceptions.permission import allowed_by
from webhook.exceptions.state import ended_at, event_of, next_status, seconds_to_change, state_of
from webhook.metrics.policies import EXCEPTIONS as EXCEPTIONS_BY_STATE
from webhook.policy_kinds.table import EXCEPTION_KINDS
from webhook.replicas import rendezvous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.pod_status import Pod
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Excuse
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.state import ExceptionFacts
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import ExceptionKey, ExceptionUses
    from webhook.watch.manager import Manager
    from webhook.watch.registrar import Registrar

LOOK_SECONDS: Final = 3600.0
"""The longest time between two looks at an exception, since the clock alone may end it."""

FORBIDDEN_SECONDS: Final = 3600.0
"""The pause after a forbidden deletion: only the operator can grant the right."""

_RESOURCES: Final = {row.kind: row.resource for row in EXCEPTION_KINDS}


def _key_of(excuse: Excuse) -> ExceptionKey:
    return excuse.kind, excuse.namespace, excuse.name


class ExceptionKeeper:
    """Keeps all exceptions; :meth:`run` in a task of its own."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        client: ClusterClient,
        manager: Manager,
        pod: Pod,
        log: Logger,
        registry: Registry,
        object_faults: ObjectFaults,
        *,
        facts: Callable[[ExceptionKey, float], ExceptionFacts],
        uses: ExceptionUses,
        faults: Callable[[], Mapping[ExceptionKey, str]],
        writers: Callable[[], frozenset[str]],
        keep_seconds: float,
    ) -> None:
        """``facts`` returns the facts about an exception.

        It is given the time of the last use here. ``faults`` returns the last fault in the
        conditions of each exception in reviews of this process.

        ``writers`` gives the replicas that write. Expired exceptions are kept for ``keep_seconds``,
        0 for ever.
        """
        self._client = client
        self._manager = manager
        self._pod = pod
        self._log = log
        self._registry = registry
        self._facts = facts
        self._uses = uses
        self._faults = faults
        self._faulty: frozenset[ExceptionKey] = frozenset()
        self._writers = writers
        self._keep_seconds = keep_seconds
        self._registrar: Registrar = manager.registrar("exceptions")
        self._events = EventWriter(client, log)
        self._used: dict[ExceptionKey, float] = {}
        self._states: dict[ExceptionKey, str] = {}
        self._swapped: dict[ExceptionKey, str] = {}
        self._forbidden_until = 0.0
        self._allowing: dict[tuple[str, str], tuple[bool, ...]] = {}
        self._known: dict[ExceptionKey, PolicyException] = {}
        self.keeper: Keeper[ExceptionKey] = Keeper(
            "exception",
            self._settle,
            object_faults,
            workers=WRITES_AT_ONCE,
            retry_seconds=TURN_SECONDS,
            turn_seconds=TURN_SECONDS,
        )
        for row in EXCEPTION_KINDS:
            self._registrar.add_watch(row.gvk)

    async def run(self) -> None:
        """Keeps the exceptions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.keeper.run())
            tasks.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            event = await self._registrar.next()
            if event.key is None:
                continue
            key = event.gvk.kind, event.key.namespace, event.key.name
            if event.kind == "delete":
                self._used.pop(key, None)
                self._states.pop(key, None)
                self._swapped.pop(key, None)
                self._count_states()
            else:
                self._states.setdefault(key, "")
            self.keeper.add(key, DEBOUNCE_SECONDS)

    def take_uses(self) -> None:
        """Takes the exceptions that were used, or had faults in their conditions, since the last call."""
        used = self._uses.take()
        self._used.update(used)
        faulty, before = frozenset(self._faults()), self._faulty
        self._faulty = faulty
        for key in used.keys() | (faulty - before):
            self.keeper.add(key, DEBOUNCE_SECONDS)

    def follow(
        self,
        constraints: Mapping[tuple[str, str], Constraint],
        exceptions: Iterable[PolicyException],
    ) -> None:
        """Takes the current constraints and exceptions; queues exceptions to look at.

        If the constraints, or the exceptions that they allow, changed, all exceptions are queued;
        otherwise only changed ones.
        """
        before, self._known = self._known, {_key_of(item.excuse): item for item in exceptions}
        for key, item in self._known.items():
            if before.get(key) is not item:
                self.keeper.add(key, DEBOUNCE_SECONDS)
        allowing = {key: allowed_by(constraint) for key, constraint in constraints.items()}
        if allowing != self._allowing:
            self._allowing = allowing
            for key in self._states:
                self.keeper.add(key, DEBOUNCE_SECONDS)

    def _count_states(self) -> None:
        counts = Counter(state for state in self._states.values() if state)
        self._registry.replace(
            EXCEPTIONS_BY_STATE, {(state.lower(),): float(n) for state, n in counts.items()}
        )

    # --- one of them --------------------------------------------------------------------------------

    async def _settle(self, key: ExceptionKey) -> None:
        kind, namespace, name = key
        resource = _RESOURCES[kind]
        document = self._manager.get(resource.gvk, namespace, name)
        if document is None:
            self.keeper.settled(key)
            return
        if self._swapped.get(key) == document["metadata"]["resourceVersion"]:
            return  # The watch has not yet delivered the last write.
        self._swapped.pop(key, None)
        now = time.time()
        facts = self._facts(key, self._used.get(key, 0.0))
        if facts.is_unread:
            self.keeper.retry(key)
            return
        again = min(seconds_to_change(facts.item, self._keep_seconds, now) + 0.1, LOOK_SECONDS)
        desired = next_status(document, facts, now)
        state = state_of(status_of(document) if desired is None else desired)
        if self._states.get(key) != state:
            self._states[key] = state
            self._count_states()
        # Read from the object itself: other facts may be of an earlier version.
        is_old = facts.item is not None and ended_at(document) + self._keep_seconds <= now
        if desired is None and not (is_old and self._may_delete()):
            self.keeper.settled(key, again)
            return
        rank = rendezvous.rank("/".join(key), self._writers(), self._pod.uid)
        if self.keeper.waits_for_turn(key, rank, held=status_of(document)):
            return
        if desired is not None:
            await self._write(key, resource, document, {**document, "status": desired})
        else:
            await self._delete(key, resource, document)

    async def _write(
        self, key: ExceptionKey, resource: Resource, document: Object, desired: Object
    ) -> None:
        version = document["metadata"]["resourceVersion"]
        self._swapped[key] = version
        try:
            self.keeper.writes += 1
            written = await self._client.replace(resource, desired, subresource="status")
        except (ApiError, ApiUnreachable) as error:
            self._failed(key, "status of an exception not written", error)
            return
        if written["metadata"]["resourceVersion"] == version:
            self._swapped.pop(key, None)  # Nothing changed, and nothing is on its way.
        self.keeper.settled(key, DEBOUNCE_SECONDS)
        change = event_of(status_of(document), desired["status"])
        if change is not None:
            await self._events.write(
                event(
                    document,
                    change.reason,
                    change.message,
                    instance=self._pod.name,
                    is_warning=change.is_warning,
                )
            )

    def _may_delete(self) -> bool:
        return bool(self._keep_seconds) and time.monotonic() >= self._forbidden_until

    async def _delete(self, key: ExceptionKey, resource: Resource, document: Object) -> None:
        """Deletes an exception that ended long ago, if that is permitted."""
        metadata = document["metadata"]
        try:
            self.keeper.writes += 1
            await self._client.delete(
                resource,
                metadata["name"],
                metadata.get("namespace", ""),
                uid=metadata["uid"],
                version=metadata["resourceVersion"],
            )
        except (ApiError, ApiUnreachable) as error:
            if isinstance(error, ApiError) and error.is_forbidden:
                self._forbidden_until = time.monotonic() + FORBIDDEN_SECONDS
                self.keeper.settled(key, FORBIDDEN_SECONDS)
                return
            self._failed(key, "expired exception not deleted", error)
            return
        self._log.info("expired exception deleted", exception="/".join(filter(None, key)))
        self.keeper.settled(key)

    def _failed(self, key: ExceptionKey, action: str, error: ApiError | ApiUnreachable) -> None:
        self._swapped.pop(key, None)
        if isinstance(error, ApiError) and (error.is_conflict or error.is_absent):
            self.keeper.retry(key)  # Another replica was faster; the watch will deliver its write.
            return
        self.keeper.failed(key)
        self._log.warning(action, exception="/".join(filter(None, key)), error=str(error))
