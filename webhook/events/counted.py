"""Writes Events and counts up repeated ones, with bounded memory.

Several processes may count the same Event, so the API server holds the count. A write requires the
last seen version of the Event, and reads it again after a conflict.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.api.gvk import text
from webhook.api.names import NAME_MAX
from webhook.api.shapes import Json
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient


KNOWN_MAX: Final = 10_000
"""The most Events remembered for counting up, 0.3 KB each; the oldest are forgotten."""


TRIES: Final = 5
"""The attempts of a write, as another process may count between our read and our write."""

MESSAGE_CHARACTERS_MAX: Final = 1024
"""The API server's limit of a message, in characters."""


def event_document(
    metadata: Json,
    involved: Json,
    reason: str,
    message: str,
    component: str,
    *,
    is_warning: bool = True,
) -> Json:
    """Returns a new Event of the present time, about the object to which ``involved`` refers."""
    now = timestamp.now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": involved,
        "type": "Warning" if is_warning else "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


class CountedEvents:
    """Writes Events; used by one task."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        # The last seen count and resourceVersion of each Event.
        self._seen: OrderedDict[tuple[str, str], tuple[int, str]] = OrderedDict()

    async def write(self, event: dict[str, Any]) -> None:
        """Creates an Event, or counts up an existing one.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        metadata = event["metadata"]
        key = metadata["namespace"], metadata["name"]
        seen = self._seen.get(key)
        if seen is None:
            try:
                self._take(key, await self._client.create(EVENTS, event, metadata["namespace"]))
            except ApiError as error:
                if not error.is_conflict:
                    raise
                # Another process created it, or an earlier process of this replica.
                seen = await self._read(key, event)
        for _ in range(TRIES):
            if seen is None:
                return
            seen = await self._counted_up(key, event, *seen)
        raise ApiError(
            409, f"others count the Event {metadata['name']} all the time", reason="Conflict"
        )

    async def _counted_up(
        self, key: tuple[str, str], event: dict[str, Any], count: int, version: str
    ) -> tuple[int, str] | None:
        """Increments the count.

        Returns None on success, after a conflict the current count and version.
        """
        namespace, name = key
        metadata = {"resourceVersion": version}
        if annotations := event["metadata"].get("annotations"):
            metadata["annotations"] = annotations
        patch = {
            "count": count + 1,
            "message": event["message"],
            "lastTimestamp": event["lastTimestamp"],
            "metadata": metadata,
        }
        try:
            self._take(key, await self._client.merge(EVENTS, name, namespace, patch))
        except ApiError as error:
            if error.is_absent:  # it has expired
                self._take(key, await self._client.create(EVENTS, event, namespace))
            elif error.is_conflict:
                return await self._read(key, event)
            else:
                raise
        return None

    async def _read(self, key: tuple[str, str], event: dict[str, Any]) -> tuple[int, str]:
        """Reads the Event through a patch that leaves the count, so no right to read is needed."""
        namespace, name = key
        patch = {"lastTimestamp": event["lastTimestamp"]}
        return _seen(await self._client.merge(EVENTS, name, namespace, patch))

    def _take(self, key: tuple[str, str], written: dict[str, Any]) -> None:
        self._seen[key] = _seen(written)
        self._seen.move_to_end(key)
        if len(self._seen) > KNOWN_MAX:
            self._seen.popitem(last=False)


def _seen(event: Mapping[str, Any]) -> tuple[int, str]:
    """Returns an Event's count and version; an Event of another tool may lack a count."""
    count = event.get("count")
    return (count if type(count) is int else 1), text(event, "metadata", "resourceVersion")


def event_name(name: str, digest: str) -> str:
    """Returns an Event's name, made from the object's.

    Replaces colons, which RBAC names may have.
    """
    stem = name.lower().replace(":", "-")[: NAME_MAX - len(digest) - 1].rstrip("-.")
    return f"{stem}.{digest}" if stem else digest
