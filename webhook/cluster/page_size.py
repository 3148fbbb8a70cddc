"""The number of objects on the next page of a list, so that no page is too large for memory.

Objects have 100 bytes to 1.5 MiB, and their size is unknown before they arrive. A page that is too
large is dropped and requested again with fewer objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.errors import AnswerTooLarge, ApiError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object

FIRST_OBJECTS: Final = 5
"""The first page of a list of unknown object size: as many of the largest objects as fit into one
page.
"""

LIST_OBJECTS: Final = 500
"""The objects on a page of a list of small ones, as in client-go."""

PAGE_BYTES: Final = 1 << 20
"""The intended size of a page, in bytes. Decoded, Pods take about seven times as much."""

PAGE_BYTES_MAX: Final = 8 << 20
"""The largest page, in bytes: :data:`FIRST_OBJECTS` of the largest objects, about 60 MiB decoded.
"""


@dataclass(slots=True)
class PageSize:
    """The number of objects on the next page; 0 for all."""

    objects_max: int
    objects: int

    @classmethod
    def first(cls, objects_max: int) -> PageSize:
        """Returns the page size for a list of unknown object size."""
        return cls(objects_max, min(objects_max, FIRST_OBJECTS))

    @property
    def query(self) -> dict[str, str]:
        """Returns the query parameters of a list."""
        return {"limit": str(self.objects)} if self.objects else {}

    @property
    def bytes_max(self) -> int | None:
        """Returns the most bytes of an answer.

        None for a single object, which is taken at any size.
        """
        return PAGE_BYTES_MAX if self.objects > 1 else None

    def took(self, page: Any, page_bytes: int) -> None:
        """Adapts the next page to the object size of this one."""
        items = page.get("items") if type(page) is dict else None
        if self.objects_max and type(items) is list and items:
            mean_bytes = max(1.0, page_bytes / len(items))
            self.objects = max(1, min(self.objects_max, int(PAGE_BYTES / mean_bytes)))

    def shrink(self) -> None:
        """Reduces the number of objects after a page that was too large."""
        self.objects = max(1, self.objects // 8)


async def sized_page(
    client: ClusterClient,
    path: str,
    query: Mapping[str, str],
    size: PageSize,
    *,
    deadline_seconds: float,
    accept: str | None = None,
) -> tuple[Any, int]:
    """Returns a page within the bounds and its size in bytes; adapts ``size`` for the next page.

    ``accept`` asks for another representation than plain JSON.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    while True:
        sized_query = {**query, **size.query}
        try:
            page, page_bytes = await client.page(
                path,
                sized_query,
                deadline_seconds=deadline_seconds,
                bytes_max=size.bytes_max,
                accept=accept,
            )
        except AnswerTooLarge:
            if size.objects <= 1:
                raise
            size.shrink()
            continue
        size.took(page, page_bytes)
        return page, page_bytes


async def list_pages(
    client: ClusterClient,
    resource: Resource,
    namespace: str = "",
    query: Mapping[str, str] | None = None,
) -> AsyncGenerator[list[Object], None]:
    """Yields the pages of a kind's objects; at least one page.

    If the continue token of a list has expired, the list goes on with the token that the API server
    provides instead, at the current objects. Raises the exceptions of requests:
    :class:`~webhook.cluster.errors.ApiError` with ``is_absent`` if the kind is not served.
    """
    parameters = dict(query or {})
    path, size = resource.collection(namespace), PageSize(LIST_OBJECTS, LIST_OBJECTS)
    while True:
        try:
            page, _ = await sized_page(
                client, path, parameters, size, deadline_seconds=client.deadline_seconds
            )
        except ApiError as error:
            if not error.is_expired or not error.continue_token:
                raise
            parameters["continue"] = error.continue_token
            continue
        yield page["items"]
        parameters["continue"] = page["metadata"].get("continue", "")
        if not parameters["continue"]:
            return
