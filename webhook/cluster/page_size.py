"""How many objects the next page of a list may have, so that no page is too large to be held.

Objects may be of 100 bytes or of 1.5 MiB, the most that the API server keeps, and nobody knows
before they come. A page that turns out to be too large is not read to its end, and is asked for
again with fewer objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.errors import AnswerTooLarge
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient

FIRST_OBJECTS: Final = 5
"""Of a list of whose objects nothing is known: so many of the largest are one page."""

PAGE_BYTES: Final = 1 << 20
"""The size of a page that is aimed at, in bytes. Decoded, Pods take some seven times their
bytes."""

PAGE_BYTES_MAX: Final = 8 << 20
"""The size of a page at most, in bytes: :data:`FIRST_OBJECTS` of the largest, decoded some 60
MiB."""


@dataclass(slots=True)
class PageSize:
    """How many objects the next page may have; 0 for all that there are."""

    objects_max: int
    objects: int

    @classmethod
    def first(cls, objects_max: int) -> PageSize:
        """Of a list of which nothing is known."""
        return cls(objects_max, min(objects_max, FIRST_OBJECTS))

    @property
    def query(self) -> dict[str, str]:
        """As a parameter of a list."""
        return {"limit": str(self.objects)} if self.objects else {}

    @property
    def bytes_max(self) -> int | None:
        """Return how many bytes an answer may have; a single object is taken at any size."""
        return PAGE_BYTES_MAX if self.objects > 1 else None

    def took(self, page: Any, page_bytes: int) -> None:
        """The next page is as large as this one says that objects are."""
        items = page.get("items") if type(page) is dict else None
        if self.objects_max and type(items) is list and items:
            mean_bytes = max(1.0, page_bytes / len(items))
            self.objects = max(1, min(self.objects_max, int(PAGE_BYTES / mean_bytes)))

    def shrink(self) -> None:
        """A page of so many was too large."""
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
    """A page that can be held, and its size in bytes; ``size`` says how large the next may be.

    ``accept`` names another form of it than plain JSON, which None is.

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
