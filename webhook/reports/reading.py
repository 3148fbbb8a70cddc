"""Reports read from a cluster, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cluster.client import DEADLINE_SECONDS
from webhook.cluster.errors import ApiError
from webhook.cluster.page_size import PageSize, sized_page

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient

PAGE_REPORTS: Final = 500
"""As client-go asks for; 1.3 MB at 2.6 KB a report."""


async def pages(
    client: ClusterClient, resource: Resource, namespace: str = ""
) -> AsyncGenerator[list[Json], None]:
    """The reports of a kind; at least one page.

    A list whose continue token expired goes on with the token that the API server
    gives instead, at the reports as they are by then. Raises what requests raise:
    :class:`~webhook.cluster.errors.ApiError` with ``is_absent`` where the kind is not
    served.
    """
    query: dict[str, str] = {}
    size = PageSize(PAGE_REPORTS, PAGE_REPORTS)
    while True:
        try:
            page, _ = await sized_page(
                client,
                resource.collection(namespace),
                query,
                size,
                deadline_seconds=DEADLINE_SECONDS,
            )
        except ApiError as error:
            if not error.is_expired or not error.continue_token:
                raise
            query["continue"] = error.continue_token
            continue
        yield page["items"]
        query["continue"] = page["metadata"].get("continue", "")
        if not query["continue"]:
            return
