"""Events of admissions (``--emit-admission-events``) with Gatekeeper's reasons and annotations.

The admission thread makes them and keeps no part of the object; the cluster's thread writes them.
They are for people who look at an object, not a record. The API server drops them after an hour,
and events beyond the queue are dropped and counted (the decision log has everything). Dry runs have
no Events: the webhook has no side effects there.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of, namespace_of, text
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.result import Result, logged_violation
from webhook.events.counted import MESSAGE_CHARACTERS_MAX, CountedEvents, event_document, event_name
from webhook.metrics.admission import ADMISSION_EVENTS

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.recorder import Reviewed

COMPONENT: Final = "gatekeeper-webhook"
"""The source component of Gatekeeper's Events; readers select by it."""

QUEUE_MAX: Final = 1000
"""The most Events that wait for the API server, 2 KB each. No admission waits for an Event."""

TAKE_OVER_SECONDS: Final = 0.2
"""The interval at which the cluster's thread writes queued Events, in seconds."""


_WORDS: Final = {
    "dryrun": ("DryrunViolation", "Dryrun violation"),
    "warn": (
        "WarningAdmission",
        'Admission webhook "validation.gatekeeper.sh" raised a warning for this request',
    ),
    "deny": ("FailedAdmission", 'Admission webhook "validation.gatekeeper.sh" denied request'),
}


class AdmissionEvents:
    """Reports findings of admissions as Events. The admission thread calls :meth:`note`."""

    def __init__(
        self, namespace: str, registry: Registry, log: Logger, *, in_involved_namespace: bool
    ) -> None:
        """``namespace`` is Waddle's own, for Events of cluster-scoped objects at least."""
        self._namespace = namespace
        self._registry = registry
        self._log = log
        self._inside = in_involved_namespace
        self._noted: deque[dict[str, Any]] = deque()

    def note(self, reviewed: Reviewed, _response: AdmissionResponse) -> None:
        """Queues Events of a review's findings; drops and counts them if the queue is full."""
        request, responses = reviewed.request, reviewed.responses
        if responses is None or request.dry_run:
            return
        for result in responses.results:
            for action in result.actions:
                if action not in _WORDS:
                    continue
                if len(self._noted) >= QUEUE_MAX:
                    self._registry.count(ADMISSION_EVENTS, "dropped")
                else:
                    self._noted.append(self.event(request, result, action))

    async def run(self, client: ClusterClient) -> None:
        """Writes Events until cancelled; a bug here must not stop other tasks of the thread."""
        events, backoff = CountedEvents(client), Backoff(initial_seconds=1.0)
        while True:
            await asyncio.sleep(TAKE_OVER_SECONDS)
            while self._noted:
                try:
                    await self._write_one(events)
                except Exception as error:  # noqa: BLE001  # counted and logged for each Event
                    self._registry.count(ADMISSION_EVENTS, "failed")
                    self._log.fault("bug: an Event of an admission could not be made", error)
                    await asyncio.sleep(backoff.next_seconds())

    async def _write_one(self, events: CountedEvents) -> None:
        document = self._noted.popleft()
        try:
            await events.write(document)
        except (ApiError, ApiUnreachable) as error:
            self._registry.count(ADMISSION_EVENTS, "failed")
            name = document["metadata"]["name"]
            self._log.warning("an Event was not written", name=name, error=str(error))
        else:
            self._registry.count(ADMISSION_EVENTS, "written")

    def event(self, request: AdmissionRequest, result: Result, action: str) -> dict[str, Any]:
        """Returns the Event of one action of a violation."""
        obj = request.object if request.object is not None else request.old_object or {}
        constraint = result.constraint
        # On CREATE the client may leave the name to the server.
        name, namespace = request.name or name_of(obj), namespace_of(obj)
        reason, words = _WORDS[action]
        message = f"Constraint: {constraint.name}, Message: {result.msg}"
        if not self._inside:
            message = f"Resource Namespace: {request.namespace}, {message}"
        place = namespace if self._inside and namespace else self._namespace
        reference = {"kind": request.kind.kind, "name": name, "namespace": place}
        identity = f"{request.kind.kind}/{namespace}/{name}/{constraint.kind}//{constraint.name}"
        uid, version = text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
        if not self._inside:
            reference["uid"] = identity
        elif uid and version:
            reference |= {"uid": uid, "resourceVersion": version}
        digest = hashlib.sha256(
            f"{identity}\0{action}\0{result.msg}".encode("utf-8", "replace")
        ).hexdigest()[:16]
        metadata = {
            "name": event_name(name, digest),
            "namespace": place,
            "annotations": self._annotations(request, result, name),
        }
        message = f"{words}, {message}"[:MESSAGE_CHARACTERS_MAX]
        return event_document(metadata, reference, reason, message, COMPONENT)

    def _annotations(self, request: AdmissionRequest, result: Result, name: str) -> dict[str, str]:
        return {
            "process": "admission",
            "event_type": "violation",
            **logged_violation(result, request.kind, request.namespace, name),
            "constraint_enforcement_actions": ",".join(result.scoped_actions),
            "request_username": request.username,
        }
