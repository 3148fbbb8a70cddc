"""List and watch of one kind, as client-go's reflector: ordered changes, none lost or repeated.

The state is a resource version. Events advance it; a new watch continues there. If the server no
longer knows the version (410, as status, as event or within a list), the kind is listed again and
compared with the known objects, so that missed deletions are found. A connection without a byte for
:attr:`Settings.inactivity_seconds` counts as dead, because bookmarks come about every minute; then
the kind is listed again.

After a restore of etcd the API server has an older version than the known one. A watch from the
known version would be silent until the history has passed it, and would skip earlier events. So
before a watch continues, a list of one object is asked for the current version; if that is older,
the kind is listed again and compared. Versions from answers to our own writes count as known, too,
since a restore may have removed these writes.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.encoding import encode
from webhook.api.gvk import text
from webhook.api.shapes import object_of
from webhook.backoff import Backoff
from webhook.cluster.aiohttp_import import aiohttp
from webhook.cluster.client import RETRY_AFTER_SECONDS_MAX, ClusterClient
from webhook.cluster.errors import ApiError, ApiUnreachable, status_error
from webhook.cluster.page_size import PageSize, sized_page
from webhook.cluster.pages import check_object, read_event, read_page
from webhook.cluster.store import Change, Object, Store, slim
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from webhook.api.resource import Resource

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_MISSING: Final = frozenset((403, 404))
# The codes of an API server that does not serve WatchList for this kind.
_NO_WATCH_LIST: Final = frozenset((400, 422))
# A watch that ended sooner than this, and with nothing in it, was refused politely.
_SHORT_SECONDS: Final = 1.0


LINE_BYTES_MAX: Final = 32 << 20
"""The longest event: one object, which etcd limits to 1.5 MiB by default; JSON may triple that."""


PARTS_MAX: Final = 4096
"""The most parts of a line that are kept apart: each costs more than its few bytes."""

LINE_SECONDS_MAX: Final = 60.0
"""The longest time between the first byte of a line and its end, so that a slow stream of single
bytes ends.
"""


@dataclass(slots=True)
class ReflectorStatistics:
    """The state and the counters of a reflector."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    gone: int = 0
    errors: int = 0
    silences: int = 0
    restores: int = 0
    """How often the API server was found at an older version, after a restore."""
    malformed: int = 0
    objects: int = 0
    synced: bool = False
    absent: bool = False
    outdated: bool = False
    """Whether the API server is at an older version, and the kind has not been listed again yet."""
    last_error: str = ""
    """The error since the last list or event; empty if none failed since."""
    last_event_at: float = field(default=0.0)
    resource_version: str = ""
    """The resource version of the watch."""


def is_older(version: str, known: str) -> bool:
    """Whether a version is certainly older than the known one."""
    if not (_is_number(version) and _is_number(known)):
        return False
    first, other = version.lstrip("0"), known.lstrip("0")
    return (len(first), first) < (len(other), other)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()


class LineTooLong(Exception):
    """A line exceeds its bounds, so the stream is no stream of events."""


async def read_lines(
    content: aiohttp.StreamReader, line_seconds_max: float = LINE_SECONDS_MAX
) -> AsyncGenerator[bytes, None]:
    """Yields each line without its end; an incomplete last line is dropped.

    Raises :class:`LineTooLong` for a line beyond its bounds of size or time.
    """
    pending: list[bytes] = []
    length = 0
    begun = time.monotonic()
    async for chunk in content.iter_any():
        if not length:
            begun = time.monotonic()
        elif time.monotonic() - begun > line_seconds_max:
            raise LineTooLong(f"a line that takes over {line_seconds_max:g} s")
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        length += len(first)
        if len(pending) > PARTS_MAX:
            pending = [b"".join(pending)]
        if length > LINE_BYTES_MAX:
            raise LineTooLong(f"a line of over {LINE_BYTES_MAX} bytes")
        if not rest:
            continue
        *whole, last = rest
        if line := b"".join(pending):
            yield line
        for line in whole:
            if line:
                yield line
        pending, length = [last], len(last)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a reflector, in seconds unless they say otherwise.

    The timeout of a watch is random within its bounds, so that a thousand watches that begin
    together do not end together (client-go: 5 to 10 minutes). ``list_bytes_max`` bounds the kept
    part of a whole list, as JSON; decoded it takes about four times as much. Fields of synced
    objects that no policy reads are not kept, and do not count. A watch that exceeds its timeout by
    ``overtime_seconds`` is ended. After the API server was away for ``outage_seconds`` the kind is
    listed again, because etcd may have been restored meanwhile and its version may already have
    passed the known one.
    """

    page_objects: int = 500
    watch_seconds_min: float = 300.0
    watch_seconds_max: float = 600.0
    inactivity_seconds: float = 90.0
    list_seconds_max: float = 60.0
    list_bytes_max: int = 256 << 20
    overtime_seconds: float = 60.0
    line_seconds_max: float = LINE_SECONDS_MAX
    outage_seconds: float = 60.0
    missing_seconds: float = 10.0
    backoff_initial_seconds: float = 0.8
    backoff_max_seconds: float = 30.0
    watch_list: bool = True


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """A selection of a kind's objects: by namespace, fields and labels; by default all."""

    namespace: str = ""
    fields: str = ""
    labels: str = ""

    @property
    def query(self) -> dict[str, str]:
        """Returns the query parameters of a list or watch."""
        selectors = {"fieldSelector": self.fields, "labelSelector": self.labels}
        return {name: text for name, text in selectors.items() if text}


class ChangeReceiver(Protocol):
    """Receives changes; called on the event loop, and must not wait or fail."""

    def change(self, changes: Iterable[Change]) -> None:
        """Takes ordered changes."""

    def synced(self) -> None:
        """Every object of a complete list has been passed to :meth:`change`.

        Called after each list.
        """


FAILURE_LOG_SECONDS: Final = 60.0
"""How often a lasting failure is logged."""


_SILENCE_DOUBLINGS_MAX: Final = 3
"""For a server that sends no bookmarks: then only the end of a watch detects a dead connection."""

_DEAD_CONNECTIONS_MAX: Final = 3
"""Where the server has sent bookmarks, so many silences in a row are taken for dead connections."""


class _Gone(Exception):
    """The version of the watch has expired: list again."""


class _Doubtful(Exception):
    """The version of the watch may belong to a history from before a restore."""


class Reflector:
    """Keeps :attr:`store` as the API server has the kind; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        resource: Resource,
        receiver: ChangeReceiver,
        *,
        selection: ObjectSelection | None = None,
        settings: Settings | None = None,
        transform: Callable[[Object], Object] = slim,
        store: Store | None = None,
    ) -> None:
        """``transform`` maps each object to the one that the receiver gets.

        It may change its argument.
        """
        selection = selection or ObjectSelection()
        self._client = client
        self._resource = resource
        self._receiver = receiver
        self._path = resource.collection(selection.namespace)
        self._query = selection.query
        self._settings = settings or Settings()
        self._transform = transform
        self._backoff = Backoff(
            self._settings.backoff_initial_seconds, self._settings.backoff_max_seconds
        )
        self._watch_list = self._settings.watch_list
        self._resource_version = ""
        self._newest = ""
        """The last known version, also after the state was lost."""
        self._requested_version = ""
        """The version that was known when a list was requested."""
        self._overtaken = ""
        """The answer to a write that a restore has undone."""
        self._is_compared = False
        """Whether the API server is known to have the history of the known version."""
        self._unreachable_since: float | None = None
        self._silences_in_row = 0
        self._wake = asyncio.Event()
        self._request: asyncio.Timeout | None = None
        self._was_synced = asyncio.Event()
        self._statistics = ReflectorStatistics()
        self._logged: dict[str, float] = {}
        self.store = Store() if store is None else store

    def statistics(self) -> ReflectorStatistics:
        """Returns the counters, with the current number of objects."""
        self._statistics.objects = len(self.store)
        self._statistics.resource_version = self._resource_version
        return self._statistics

    async def wait_synced(self) -> None:
        """Returns once a complete list has been handed over."""
        await self._was_synced.wait()

    def wake(self) -> None:
        """Ends a pause between attempts: the cause of the failure may be gone."""
        self._wake.set()

    def renew(self) -> None:
        """Ends the connection and continues on a new one, because this one may be dead."""
        request, self._request = self._request, None
        self._is_compared = False
        if request is not None:
            request.reschedule(asyncio.get_running_loop().time())

    @property
    def is_answered(self) -> bool:
        """Whether the API server has answered since the last list or watch began."""
        return self._is_compared

    # --- the loop -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        while True:
            try:
                await self._follow_until_renewed()
            except _Gone:
                # An expired version is no failure, but a server whose versions expire at once gets
                # a pause.
                self._statistics.gone += 1
                self._resource_version = ""
                await self._pause(random.uniform(0, 0.2))  # noqa: S311  # jitter is no secret
            except _Doubtful:
                await self._pause(self._backoff.next_seconds())
            except (ApiError, ApiUnreachable, LineTooLong) as error:
                await self._pause(self._after(error))

    async def _follow_until_renewed(self) -> None:
        request = asyncio.timeout(None)
        try:
            async with request:
                self._request = request
                if self._resource_version and not self._is_compared:
                    await self._compare()
                if not self._resource_version:
                    await self._list()
                if self._resource_version:
                    await self._watch()
        except TimeoutError:
            if not request.expired():
                raise
        finally:
            self._request = None

    def _after(self, error: Exception) -> float:
        """Records a failure; returns how many seconds to wait."""
        self._statistics.errors += 1
        self._statistics.last_error = str(error)
        if not isinstance(error, ApiError) or not error.is_absent:
            self._notify("a list or watch failed; trying again", str(error))
        is_answer = isinstance(error, ApiError) and not error.is_server_fault
        if not is_answer and self._unreachable_since is None:
            self._unreachable_since = time.monotonic()
        if not isinstance(error, ApiError):
            return self._backoff.next_seconds()
        if error.status in _MISSING:
            if error.is_absent:
                self._take_absence()
            limit = self._settings.missing_seconds
            return random.uniform(limit / 2, limit)  # noqa: S311  # as above
        delay = min(error.retry_after_seconds or 0.0, RETRY_AFTER_SECONDS_MAX)
        return max(self._backoff.next_seconds(), delay)

    def _notify(self, event: str, error: str) -> None:
        """Logs a failure; a repeated one only now and then."""
        now = time.monotonic()
        if (
            self._client.log is None
            or now - self._logged.get(event, -FAILURE_LOG_SECONDS) < FAILURE_LOG_SECONDS
        ):
            return
        self._logged[event] = now
        self._client.log.warning(event, kind=str(self._resource.gvk), error=error)

    def _take_absence(self) -> None:
        """Removes every object, because the kind is no longer served."""
        self._statistics.absent, self._statistics.outdated = True, False
        self._resource_version = ""
        if changes := self.store.replace([]):
            self._receiver.change(changes)

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    # --- whether the history is the same ------------------------------------------------------

    async def _compare(self) -> None:
        """Checks that the API server's version is not older than the known one."""
        known = self._known_version()
        page, _ = await self._client.page(
            self._path,
            {**self._query, "limit": "1"},
            deadline_seconds=self._settings.list_seconds_max,
        )
        _, version, _ = read_page(page, self._path)
        if self._take_restore(version, known) or self._was_away():
            self._resource_version = ""
        else:
            self._unreachable_since = None
        self._is_compared = True

    def _known_version(self) -> str:
        """Returns the latest known version; call it before a request that compares."""
        answered = self._client.answered.get(self._resource.collection(), "")
        is_newer = answered != self._overtaken and is_older(self._newest, answered)
        return answered if is_newer else self._newest

    def _take_restore(self, version: str, known: str) -> bool:
        """Returns whether the API server's version is older than the known one, and logs it."""
        if not is_older(version, known):
            return False
        if not self._statistics.outdated:
            self._statistics.outdated = True
            self._statistics.restores += 1
            self._notify(
                "the API server is at an older version than before, as after a restore of etcd; "
                "everything is listed again",
                f"resourceVersion {version} after {known}",
            )
        return True

    def _was_away(self) -> bool:
        """Whether the API server was unreachable for longer than ``outage_seconds``."""
        since = self._unreachable_since
        return since is not None and time.monotonic() - since > self._settings.outage_seconds

    # --- lists --------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Lists everything: as a stream if the server supports that, else page by page."""
        self._requested_version = self._known_version()
        if self._watch_list:
            try:
                await self._stream_from_nothing()
            except ApiError as error:
                if error.status not in _NO_WATCH_LIST:
                    raise
                self._watch_list = False
            else:
                return
        objects, version = await self._pages()
        self._take_list(objects, version)

    async def _pages(self) -> tuple[list[Object], str]:
        """Returns the complete list; starts again without pages if a continue token expires."""
        whole = PageSize(0, 0)
        sized = PageSize(self._settings.page_objects, self._settings.page_objects)
        objects: list[Object] = []
        tokens: set[str] = set()
        size = 0
        query = dict(self._query)
        while True:
            try:
                page, page_bytes = await sized_page(
                    self._client,
                    self._path,
                    query,
                    sized,
                    deadline_seconds=self._settings.list_seconds_max,
                )
            except ApiError as error:
                if not error.is_expired or sized is whole:
                    raise
                self._statistics.gone += 1
                objects, size, query, sized = [], 0, dict(self._query), whole
                continue
            items, version, token = read_page(page, self._path)
            if not (version or token):
                raise ApiUnreachable(f"{self._path}: the answer is not a list that can be watched")
            objects += self._items(items)
            size = self._weigh(size + page_bytes, objects)
            if not token:
                return objects, version
            if token in tokens:
                raise ApiUnreachable(f"{self._path}: the list repeats its pages without end")
            tokens.add(token)
            query = {**self._query, "continue": token}

    def _weigh(self, size: int, objects: list[Object]) -> int:
        """Returns the size of the list so far; raises if more is kept than ``list_bytes_max``.

        Kept objects are no larger than sent ones, so they are measured only beyond the bound.
        """
        if size > self._settings.list_bytes_max:
            size = sum(map(_kept_bytes, objects))
        if size > self._settings.list_bytes_max:
            raise ApiUnreachable(
                f"{self._path}: a list of over {self._settings.list_bytes_max} bytes to keep"
            )
        return size

    def _items(self, items: Iterable[Any]) -> list[Object]:
        """Returns a page's objects with kind and apiVersion, which list items lack."""
        gvk = self._resource.gvk
        objects = []
        for item in items:
            if type(item) is dict:
                item.setdefault("apiVersion", gvk.group_version)
                item.setdefault("kind", gvk.kind)
            if (obj := self._sound(item)) is not None:
                objects.append(obj)
        return objects

    def _sound(self, item: Any) -> Object | None:
        """Returns a valid object, transformed; None for a malformed one, which is counted."""
        try:
            check_object(item)
            return self._transform(item)
        except Exception as error:  # noqa: BLE001  # the object's boundary: counted, logged, left out
            self._statistics.malformed += 1
            name = text(item, "metadata", "name")
            self._notify(
                "an item was skipped: it is not an object of Kubernetes",
                f"{name!r:.200}: {error!r:.300}",
            )
            return None

    def _take_list(self, objects: Iterable[Object], version: str) -> None:
        # Of another history a version may be that of another content.
        is_restored = self._take_restore(version, self._requested_version)
        is_other = is_restored or self._statistics.outdated or self._was_away()
        if is_older(version, self._requested_version):
            self._overtaken = self._requested_version
        self._statistics.lists += 1
        self._statistics.outdated = False
        self._statistics.absent = False
        self._statistics.synced = True
        self._statistics.last_error = ""
        self._statistics.last_event_at = time.monotonic()
        if changes := self.store.replace(objects, by_content=is_other):
            self._receiver.change(changes)
        self._resource_version = self._newest = version
        self._is_compared, self._unreachable_since = True, None
        self._receiver.synced()
        self._was_synced.set()

    async def _stream_from_nothing(self) -> None:
        """Lists by WatchList (KEP 3157).

        Objects as events up to a marked bookmark, then continues as a watch.
        """
        query = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "resourceVersion": "",
        }
        listed: list[Object] | None = []
        size = 0
        async with aclosing(self._events(query)) as stream:
            async for kind, item, event_bytes in stream:
                if listed is None:
                    self._take_event(kind, item)
                    continue
                if kind != "BOOKMARK":
                    if (obj := self._sound(item)) is not None:
                        listed.append(obj)
                        size = self._weigh(size + event_bytes, listed)
                    continue
                if text(item, "metadata", "annotations", _INITIAL_EVENTS_END) == "true":
                    self._take_list(listed, self._version(item))
                    listed = None
        if listed is not None:
            raise ApiUnreachable(f"{self._path}: the watch ended within its initial events")

    # --- watches ------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Follows events until the stream ends."""
        begun, events = time.monotonic(), 0
        query = {"resourceVersion": self._resource_version}
        async with aclosing(self._events(query)) as stream:
            async for kind, item, _ in stream:
                events += 1
                self._take_event(kind, item)
        if not events and time.monotonic() - begun < _SHORT_SECONDS:
            raise ApiUnreachable(f"{self._path}: the watch ended at once")

    def _inactivity_seconds(self) -> float:
        """Returns how long a watch may say nothing; longer if the server seems to send no bookmarks."""
        silences = self._silences_in_row
        if self._statistics.bookmarks:
            silences = max(0, silences - _DEAD_CONNECTIONS_MAX)
        return self._settings.inactivity_seconds * 2.0 ** min(silences, _SILENCE_DOUBLINGS_MAX)

    async def _events(self, query: dict[str, str]) -> AsyncGenerator[tuple[str, Any, int], None]:
        """Yields the events of a watch: type, object and size in bytes."""
        settings = self._settings
        inactivity = self._inactivity_seconds()
        seconds = random.uniform(  # noqa: S311  # as above
            settings.watch_seconds_min, settings.watch_seconds_max
        )
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(seconds))),
            **query,
        }
        self._statistics.watches += 1
        ends = time.monotonic() + seconds + settings.overtime_seconds
        try:
            async with (
                self._client.stream(self._path, query, inactivity_seconds=inactivity) as content,
                aclosing(read_lines(content, settings.line_seconds_max)) as lines,
            ):
                async for line in lines:
                    kind, item = read_event(line, self._path)
                    if kind == "ERROR":
                        raise status_error(object_of(item), 500)
                    yield kind, item, len(line)
                    if time.monotonic() > ends:
                        raise ApiUnreachable(f"{self._path}: the watch went on beyond its time")
        except ApiError as error:
            if error.is_expired:
                raise _Gone from error
            raise
        except TimeoutError as error:
            self._statistics.silences += 1
            self._silences_in_row += 1
            self._resource_version = ""
            message = f"{self._path}: no byte within {inactivity:g} s"
            raise ApiUnreachable(message) from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"{self._path}: the watch was torn: {str(error) or type(error).__name__}"
            raise ApiUnreachable(message) from error
        finally:
            self._is_compared = False

    def _take_event(self, kind: str, item: Any) -> None:
        self._statistics.last_error = ""
        self._statistics.last_event_at = time.monotonic()
        self._silences_in_row, self._unreachable_since = 0, None
        if kind == "BOOKMARK":
            self._statistics.bookmarks += 1
            version = self._version(item)
            if is_older(version, self._resource_version):
                raise _Doubtful
            self._resource_version = self._newest = version
            return
        self._statistics.events += 1
        obj = self._sound(item)
        if obj is not None:
            changes = self.store.delete(obj) if kind == "DELETED" else self.store.set(obj)
            if changes:
                self._receiver.change(changes)
        # After an omitted object the watch continues at its version, if it has one.
        self._resource_version = text(item, "metadata", "resourceVersion") or self._resource_version
        self._newest = self._resource_version

    def _version(self, item: Any) -> str:
        """Returns an object's resource version; raises if it has none."""
        version = text(item, "metadata", "resourceVersion")
        if not version:
            raise ApiUnreachable(f"{self._path}: no resourceVersion where there must be one")
        return version


class FollowedObject:
    """Follows one object by its name; calls ``notify`` when it may have changed."""

    def __init__(
        self,
        client: ClusterClient,
        resource: Resource,
        name: str,
        notify: Callable[[], object],
        *,
        namespace: str = "",
        settings: Settings | None = None,
    ) -> None:
        self.resource, self.name, self.namespace, self._notify = resource, name, namespace, notify
        self._client = client
        selection = ObjectSelection(namespace, fields=f"metadata.name={name}")
        self.reflector = Reflector(client, resource, self, selection=selection, settings=settings)

    def change(self, changes: Iterable[Change]) -> None:
        """Calls ``notify``; the store has the object."""
        del changes
        self._notify()

    def synced(self) -> None:
        """Calls ``notify``: the object, or its absence, is now known."""
        self._notify()

    @property
    def document(self) -> Object | None:
        """Returns the object; None if it does not exist."""
        return self.reflector.store.get(self.namespace, self.name)

    @property
    def is_known(self) -> bool:
        """Whether the object, or its absence, is known."""
        return self.reflector.statistics().synced

    async def update(self, change: Callable[[Object], Object | None]) -> Object | None:
        """Writes as :meth:`~webhook.cluster.client.ClusterClient.update` does.

        The written object is stored before the watch delivers it.
        """
        mark = self.reflector.store.mark(self.namespace, self.name)
        written = await self._client.update(self.resource, self.name, self.namespace, change)
        if written is not None:
            self.reflector.store.take_answer(mark, written)
        return written


IDENTITY_BYTES: Final = 100
"""The JSON size counted for an object of which only key and version are kept: a quarter of its 450
bytes in memory.
"""


def _kept_bytes(obj: Object) -> int:
    """Returns the size of the kept part of an object, in bytes of JSON."""
    return len(encode(obj)) if type(obj) is dict else IDENTITY_BYTES
