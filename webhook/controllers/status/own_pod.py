"""The replica's own Pod, whose UID its statuses are owned by."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cluster.client import ClusterClient


async def uid_of_pod(
    client: ClusterClient, name: str, namespace: str, failed: Callable[[str], None]
) -> str:
    """The UID of a Pod, asked for until it is known; ``failed`` is told why it is not yet."""
    backoff = Backoff()
    while True:
        try:
            pod = await client.get(PODS, name, namespace)
        except (ApiError, ApiUnreachable) as error:
            failed(str(error))
            await asyncio.sleep(backoff.next_seconds())
        else:
            uid: str = pod["metadata"]["uid"]
            return uid
