"""Kubernetes Events about changes of policies, for `kubectl describe` and `kubectl get events`.

The replica whose status write made the change writes the Event, so there is one for any number of
replicas. Its name is derived from the object, its generation and the reason, so a repeated change
counts up the existing Event. The API server drops Events after an hour. Failed writes are counted
and not repeated, since the status has the same facts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.events.counted import MESSAGE_CHARACTERS_MAX, CountedEvents, event_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger


CLUSTER_WIDE_NAMESPACE: Final = "default"
"""The namespace that the API server requires for Events about cluster-scoped objects."""

COMPONENT: Final = "waddle"


_STEM_MAX: Final = 200


def event(
    document: Mapping[str, Any], reason: str, message: str, *, instance: str, is_warning: bool
) -> Json:
    """Returns an Event about an object's current generation; ``instance`` is the writing Pod."""
    metadata = document["metadata"]
    identity = f"{metadata['uid']}\0{metadata.get('generation', 0)}\0{reason}".encode()
    digest = hashlib.sha256(identity).hexdigest()[:16]
    if len(message) > MESSAGE_CHARACTERS_MAX:
        message = f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
    involved = {
        **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    named = {
        "name": f"{metadata['name'][:_STEM_MAX].rstrip('-.')}.{digest}",
        "namespace": metadata.get("namespace") or CLUSTER_WIDE_NAMESPACE,
    }
    written = event_document(named, involved, reason, message, COMPONENT, is_warning=is_warning)
    return written | {"reportingInstance": instance}


class EventWriter:
    """Writes Events about policies."""

    def __init__(self, client: ClusterClient, log: Logger) -> None:
        self._events = CountedEvents(client)
        self._log = log
        self.writes = 0
        self.failures = 0

    async def write(self, document: Json) -> None:
        """Writes an Event, or counts up the existing one of its name."""
        self.writes += 1
        try:
            await self._events.write(document)
        except (ApiError, ApiUnreachable) as error:
            self.failures += 1
            name = document["metadata"]["name"]
            self._log.warning("an Event was not written", name=name, error=str(error))
