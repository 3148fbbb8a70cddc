"""Events that are counted up where they come again, bounded in what is remembered of them.

Several processes may count the same Event. So the count is the API server's: it is swapped
against the version that was last seen of the Event, and read anew where another was faster.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import text
from webhook.api.names import NAME_MAX
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient


KNOWN_MAX: Final = 10_000
"""Events remembered so that they are counted up, 0.3 KB each; the oldest are forgotten."""


TRIES: Final = 5
"""Others may have counted between our look and our write."""

MESSAGE_CHARACTERS_MAX: Final = 1024
"""The API server's limit."""


class CountedEvents:
    """Writes Events; used by one task."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        # Of each Event its count and resourceVersion as they were last seen.
        self._seen: OrderedDict[tuple[str, str], tuple[int, str]] = OrderedDict()

    async def write(self, event: dict[str, Any]) -> None:
        """Make it, or count it up where it was made before.

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
                # Another process made it, or an earlier one of ours.
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
        """Swap the count for the next; None once it stands, else what another has made of it."""
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
        """Read the Event at the API server by a write that changes no count: no right to read is needed."""
        namespace, name = key
        patch = {"lastTimestamp": event["lastTimestamp"]}
        return _seen(await self._client.merge(EVENTS, name, namespace, patch))

    def _take(self, key: tuple[str, str], written: dict[str, Any]) -> None:
        self._seen[key] = _seen(written)
        self._seen.move_to_end(key)
        if len(self._seen) > KNOWN_MAX:
            self._seen.popitem(last=False)


def _seen(event: Mapping[str, Any]) -> tuple[int, str]:
    """An Event's count and version; one that a tool made may have no count."""
    count = event.get("count")
    return (count if type(count) is int else 1), text(event, "metadata", "resourceVersion")


def event_name(name: str, digest: str) -> str:
    """An Event's name, by that of the object; names of RBAC's objects may have colons, its not."""
    stem = name.lower().replace(":", "-")[: NAME_MAX - len(digest) - 1].rstrip("-.")
    return f"{stem}.{digest}" if stem else digest
