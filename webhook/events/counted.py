"""Events that are counted up where they come again, bounded in what is remembered of them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import EVENTS

if TYPE_CHECKING:
    from webhook.cluster.client import ClusterClient


KNOWN_MAX: Final = 10_000
"""Events remembered so that they are counted up, 0.2 KB each; the oldest are forgotten."""

NAME_MAX: Final = 253

MESSAGE_CHARACTERS_MAX: Final = 1024
"""The API server's limit."""


class CountedEvents:
    """Writes Events; used by one task."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    async def write(self, event: dict[str, Any]) -> None:
        """Make it, or count it up where it was made before.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        metadata = event["metadata"]
        key = metadata["namespace"], metadata["name"]
        count = self._counts.get(key, 0)
        if count:
            patch = {
                "count": count + 1,
                "lastTimestamp": event["lastTimestamp"],
                "metadata": {"annotations": metadata["annotations"]},
            }
            try:
                await self._client.merge(EVENTS, metadata["name"], metadata["namespace"], patch)
            except ApiError as error:
                if not error.is_absent:
                    raise
                count = 0  # it has expired
        if not count:
            try:
                await self._client.create(EVENTS, event, metadata["namespace"])
            except ApiError as error:
                if not error.is_conflict:
                    raise
                # Another process made it, or an earlier one of ours: we count on from there.
                patch = {"lastTimestamp": event["lastTimestamp"]}
                there = await self._client.merge(
                    EVENTS, metadata["name"], metadata["namespace"], patch
                )
                count = max(there.get("count") or 1, 1) - 1
        self._counts[key] = count + 1
        self._counts.move_to_end(key)
        if len(self._counts) > KNOWN_MAX:
            self._counts.popitem(last=False)


def event_name(name: str, digest: str) -> str:
    """An Event's name, by that of the object; names of RBAC's objects may have colons, its not."""
    stem = name.lower().replace(":", "-")[: NAME_MAX - len(digest) - 1].rstrip("-.")
    return f"{stem}.{digest}" if stem else digest
