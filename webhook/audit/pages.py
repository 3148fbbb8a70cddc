"""Lists all objects of a kind, page by page, with memory independent of their number.

A page is bounded in objects and in bytes (:mod:`webhook.cluster.page_size`). An expired continue
token is replaced by the token in the API server's error: the list continues behind the last object,
at the state of that moment. Without such a token the list starts again and skips the objects
already returned, since the API server lists in order of namespace and name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.audit.retries import FORBIDDEN_SECONDS, with_retries
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.page_size import PageSize, sized_page
from webhook.cluster.pages import check_object, read_page
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object

PAGES_MAX: Final = 20_000
"""The most pages of a list. Pages of small objects have hundreds each, and of large ones a MiB."""

LIST_SECONDS: Final = 60.0
"""Deadline of one page: the API server's own for a request."""

GET_COST: Final = 15
"""The cost of fetching one object, relative to an object in a page."""

_BEGINNINGS_MAX: Final = 5

_PARTIAL_LIST: Final = "PartialObjectMetadataList"
_PARTIAL: Final = f"application/json;as={_PARTIAL_LIST};g=meta.k8s.io;v=v1,application/json"


@dataclass(slots=True)
class Partial:
    """How a list works that fetches metadata first."""

    known: Callable[[Object], bytes | None]
    """Returns the digest of an object whose metadata is enough; None for others."""
    size: PageSize


@dataclass(slots=True)
class ListStatistics:
    """The counts of lists: ``continued`` and ``restarted`` after a token expired."""

    pages: int = 0
    malformed: int = 0
    continued: int = 0
    restarted: int = 0


class PartialObject(dict[str, Any]):
    """An object with fetched metadata only, identified by its digest."""

    __slots__ = ("digest",)

    def __init__(self, obj: Object, digest: bytes) -> None:
        super().__init__(obj)
        self.digest = digest


class Pages:
    """The pages of one kind; iterate once."""

    def __init__(
        self,
        client: ClusterClient,
        resource: Resource,
        *,
        size: PageSize,
        statistics: ListStatistics,
        forbidden_seconds: float = FORBIDDEN_SECONDS,
        partial: Partial | None = None,
        listed: Callable[[str], None] | None = None,
    ) -> None:
        """``size`` is the size of the first page, and adapts for the next.

        ``partial`` returns for which objects metadata is enough: they are returned as
        :class:`PartialObject`. ``listed`` receives each page's resource version, before its
        objects.
        """
        self._listed = listed
        self._partial = partial
        self._client = client
        self._resource = resource
        self._size = size
        self._statistics = statistics
        self._forbidden_seconds = forbidden_seconds
        self._token = ""
        self._last_key = ""
        self._skip_to = ""
        self._beginnings = 1
        self._tokens: set[str] = set()

    async def __aiter__(self) -> AsyncGenerator[list[Object], None]:
        """Yields each page's objects in reverse order, so that a caller can pop and free each.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable` for lasting errors.
        """
        while True:
            page = await self._page()
            path = self._resource.collection()
            items, version, token = read_page(page, path)
            if self._listed is not None:
                self._listed(version)
            objects = [item for item in items if self._is_sound(item)]
            if self._skip_to:
                objects = [obj for obj in objects if _key(obj) > self._skip_to]
            last_key = _key(objects[-1]) if objects else self._last_key
            if self._partial is not None and page.get("kind") == _PARTIAL_LIST:
                known = [self._partial.known(obj) for obj in objects]
                if known.count(None) * GET_COST > len(objects):
                    # Nor is it worth while for the pages behind it.
                    self._partial = None
                    continue
                objects = await self._filled(objects, known)
            self._token, self._last_key = token, last_key
            self._turn_page(path)
            del page, items
            if objects:
                objects.reverse()
                yield objects
            if not self._token:
                return

    async def _filled(self, objects: list[Object], known: Sequence[bytes | None]) -> list[Object]:
        """Returns a page with metadata or whole objects, as needed, without deleted ones."""
        filled: list[Object] = []
        for obj, digest in zip(objects, known, strict=True):
            if digest is not None:
                filled.append(PartialObject(obj, digest))
            elif (whole := await self._fetched(obj)) is not None and self._is_sound(whole):
                filled.append(whole)
        return filled

    async def _fetched(self, obj: Object) -> Object | None:
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            return await with_retries(
                lambda: self._client.get(self._resource, name, namespace),
                forbidden_seconds=self._forbidden_seconds,
            )
        except ApiError as error:
            if error.is_absent:
                return None
            raise

    def _is_sound(self, item: Any) -> bool:
        """Returns whether an object can be audited; counts it if not."""
        try:
            check_object(item)
        except ValueError:
            self._statistics.malformed += 1
            return False
        return True

    def _turn_page(self, path: str) -> None:
        """Continues with the next page; raises for an endless list."""
        if self._token in self._tokens:
            raise ApiUnreachable(f"{path}: the list repeats its pages without end")
        if len(self._tokens) >= PAGES_MAX:
            raise ApiUnreachable(f"{path}: a list of over {PAGES_MAX} pages")
        if self._token:
            self._tokens.add(self._token)

    async def _page(self) -> dict[str, Any]:
        while True:
            try:
                page: dict[str, Any] = await with_retries(
                    self._ask, forbidden_seconds=self._forbidden_seconds
                )
            except ApiError as error:
                if not error.is_expired or self._beginnings > _BEGINNINGS_MAX:
                    raise
                self._go_on(error.continue_token)
            else:
                self._statistics.pages += 1
                return page

    def _go_on(self, token: str) -> None:
        """Continues after an expired token: with the replacement, or from the beginning."""
        self._token = token
        if token:
            self._statistics.continued += 1
        else:
            self._beginnings += 1
            self._statistics.restarted += 1
            self._skip_to = self._last_key
            self._tokens.clear()

    async def _ask(self) -> dict[str, Any]:
        page: dict[str, Any]
        page, _ = await sized_page(
            self._client,
            self._resource.collection(),
            {"continue": self._token} if self._token else {},
            self._size if self._partial is None else self._partial.size,
            deadline_seconds=LIST_SECONDS,
            accept=None if self._partial is None else _PARTIAL,
        )
        return page


def _key(obj: Object) -> str:
    """Returns the object's key in the order of a list."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
