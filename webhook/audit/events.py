"""Events of violations (``--emit-audit-events``), with Gatekeeper's reason, words and annotations.

Events inform people who look at an object and are no record: the API server deletes them after an
hour, and their number is bounded here. A repeated violation increments the count of its Event.
Events beyond the queue or the limit of a sweep are dropped and counted (the decision log has all
violations).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webhook.audit.sink import Audited, AuditSink, Identity, SweepStart
from webhook.audit.tally import truncated
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.result import Result, logged_violation
from webhook.events.counted import CountedEvents, event_document, event_name

if TYPE_CHECKING:
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

REASON: Final = "AuditViolation"
COMPONENT: Final = "gatekeeper-audit"
"""The source of Gatekeeper's Events; readers select by it."""

SWEEP_EVENTS_MAX: Final = 1000
"""The most Events of one sweep. Each is a write to etcd: clusters with more have reports."""

QUEUE_MAX: Final = SWEEP_EVENTS_MAX
"""Events that wait for the API server, 1.5 KB each. The sweep waits for none of them."""


class AuditEvents(AuditSink):
    """A sink that makes Events; :meth:`run` writes them in its own task."""

    def __init__(
        self, client: ClusterClient, namespace: str, log: Logger, *, in_violating_namespace: bool
    ) -> None:
        """``namespace`` is the audit's own, for Events of cluster-scoped objects at least."""
        self._events = CountedEvents(client)
        self._namespace = namespace
        self._log = log
        self._in_violating_namespace = in_violating_namespace
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_MAX)
        self._of_sweep = 0
        self.outcomes: Counter[str] = Counter()
        """Events by outcome: written, dropped or failed."""

    async def start(self, start: SweepStart) -> None:
        """A sweep has its own bound."""
        del start
        self._of_sweep = 0

    async def audited(self, audited: Audited) -> None:
        """Queues an Event of each violation while there is room."""
        for result in audited.responses.results:
            if self._of_sweep >= SWEEP_EVENTS_MAX or self._queue.full():
                self.outcomes["dropped"] += 1
                continue
            self._of_sweep += 1
            self._queue.put_nowait(self._event(audited, result))

    async def run(self) -> None:
        """Writes until cancelled; a bug here must not end the audit."""
        backoff = Backoff(initial_seconds=1.0)
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
            except Exception as error:  # noqa: BLE001  # a fault of one violation is counted and logged
                self.outcomes["failed"] += 1
                self._log.fault("bug: an Event of a violation could not be written", error)
                await asyncio.sleep(backoff.next_seconds())

    async def _write(self, event: dict[str, Any]) -> None:
        try:
            await self._events.write(event)
        except (ApiError, ApiUnreachable) as error:
            self.outcomes["failed"] += 1
            self._log.warning(
                "an Event was not written", name=event["metadata"]["name"], error=str(error)
            )
        else:
            self.outcomes["written"] += 1

    def _event(self, audited: Audited, result: Result) -> dict[str, Any]:
        identity, message = audited.identity, truncated(result.msg)
        constraint = result.constraint
        inside = self._in_violating_namespace and bool(identity.namespace)
        namespace = identity.namespace if inside else self._namespace
        text = f"Constraint: {constraint.name}, Message: {message}"
        if not self._in_violating_namespace:
            text = f"Resource Namespace: {identity.namespace}, {text}"
        metadata = {
            "name": _name(identity, result),
            "namespace": namespace,
            "annotations": _annotations(audited, result),
        }
        reference = self._reference(identity, result, namespace)
        return event_document(metadata, reference, REASON, text, COMPONENT)

    def _reference(self, identity: Identity, result: Result, namespace: str) -> dict[str, str]:
        """Returns the object's reference; in Waddle's namespace, with a UID that names it."""
        reference = {"kind": identity.kind, "name": identity.name, "namespace": namespace}
        if self._in_violating_namespace:
            if identity.uid and identity.resource_version:
                reference |= {"uid": identity.uid, "resourceVersion": identity.resource_version}
            return reference
        key = result.constraint
        place = f"{identity.kind}/{identity.namespace}/{identity.name}"
        reference["uid"] = f"{place}/{key.kind}//{key.name}"
        return reference


def _name(identity: Identity, result: Result) -> str:
    """Returns the Event's name, equal for equal violations on all replicas."""
    parts = (*identity.gvk, identity.namespace, identity.name, identity.uid)
    text = "\0".join((*parts, *result.constraint.key, result.msg))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return event_name(identity.name, digest)


def _annotations(audited: Audited, result: Result) -> dict[str, str]:
    identity = audited.identity
    return {
        "process": "audit",
        "auditTimestamp": audited.audit_id,
        "event_type": "violation_audited",
        **logged_violation(result, identity.gvk, identity.namespace, identity.name),
        "constraint_namespace": "",
        "constraint_enforcement_actions": ",".join(result.scoped_actions),
    }
