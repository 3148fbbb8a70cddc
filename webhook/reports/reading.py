"""Reads reports from a cluster, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cluster.client import DEADLINE_SECONDS, ClusterClient
from webhook.cluster.errors import ApiError
from webhook.cluster.page_size import PageSize, sized_page

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from webhook.api.resource import Resource
    from webhook.api.shapes import Json

PAGE_REPORTS: Final = 500
"""The size of a page, as in client-go; 1.3 MB at 2.6 KB a report."""


async def pages(
    client: ClusterClient, resource: Resource, namespace: str = ""
) -> AsyncGenerator[list[Json], None]:
    """Yields the pages of a report kind; at least one page.

    If the continue token of a list has expired, the list goes on with the token that the API server
    provides instead, at the current reports. Raises the exceptions of requests:
    :class:`~webhook.cluster.errors.ApiError` with ``is_absent`` if the kind is not served.
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
