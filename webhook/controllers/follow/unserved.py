"""Logs and counts Gatekeeper objects in the cluster that have no effect here.

A cluster taken over from Gatekeeper may have Connections, and Providers while external data is
turned off. A warning at start tells the operator before their absence does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from webhook.api.shapes import integer_of, object_of
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.pages import read_page
from webhook.metrics.policies import UNSERVED_OBJECTS
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

COUNT_EVERY_SECONDS: Final = 600.0
"""How often these objects are counted again, for objects created later."""

REQUEST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Unserved:
    """A kind without effect here: the path of its list, and the effect of ignoring it."""

    kind: str
    path: str
    effect: str


PROVIDERS: Final = Unserved(
    "Provider",
    "externaldata.gatekeeper.sh/v1beta1/providers",
    "external data is turned off: a template that needs it is refused",
)

UNSERVED: Final = (
    Unserved(
        "Connection",
        "connection.gatekeeper.sh/v1alpha1/connections",
        "violations leave by the decision log, not by Connections",
    ),
)


async def count_objects(client: ClusterClient, unserved: Unserved) -> int:
    """Returns the number of objects of a kind; 0 if it is not served, or may not be listed.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    path = f"/apis/{unserved.path}"
    try:
        page, _ = await client.page(path, {"limit": "1"}, deadline_seconds=REQUEST_SECONDS)
    except ApiError as error:
        if error.status in (403, 404):
            return 0
        raise
    items, _, _ = read_page(page, path)
    return len(items) + integer_of(object_of(page.get("metadata")).get("remainingItemCount"))


async def count_all(
    client: ClusterClient,
    registry: Registry,
    log: Logger,
    before: Mapping[str, int],
    *,
    external_data: bool,
) -> dict[str, int]:
    """Counts objects without effect, and logs changes from ``before``; raises as :func:`count_objects`.

    ``external_data`` is whether providers are called.
    """
    unserved = UNSERVED if external_data else (PROVIDERS, *UNSERVED)
    counts = {item.kind: await count_objects(client, item) for item in unserved}
    registry.replace(UNSERVED_OBJECTS, {(kind,): n for kind, n in counts.items() if n})
    for item in unserved:
        number = counts[item.kind]
        if number and before.get(item.kind) != number:
            log.warning(
                "objects in the cluster have no effect here",
                kind=item.kind,
                count=number,
                effect=item.effect,
            )
    return counts


async def log_unserved(
    client: ClusterClient, registry: Registry, log: Logger, *, external_data: bool
) -> None:
    """Logs objects without effect, at start and when they change, until cancelled."""
    counts: dict[str, int] = {}
    backoff = Backoff(initial_seconds=1.0)
    while True:
        try:
            counts = await count_all(client, registry, log, counts, external_data=external_data)
        except (ApiError, ApiUnreachable):
            await asyncio.sleep(backoff.next_seconds())
        else:
            await asyncio.sleep(COUNT_EVERY_SECONDS)
