"""Requests to the API server: raw JSON in and out, each with a deadline.

Watches share the session of plain requests but not their limits: each has a
connection of its own (aiohttp's default of 100 connections would starve the
101st watch), ends only by inactivity, and is not counted as a request in flight.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from webhook import __version__
from webhook.api.encoding import DecodeError, decode, encode
from webhook.api.gvk import text
from webhook.backoff import Backoff
from webhook.cluster.aiohttp_import import aiohttp
from webhook.cluster.clock import ClockComparison
from webhook.cluster.credentials import Credentials, CredentialsError
from webhook.cluster.errors import AnswerTooLarge, ApiError, ApiUnreachable, api_error
from webhook.cluster.event_loop import EventLoop, is_uvloop
from webhook.cluster.pages import without_managed_fields
from webhook.cluster.store import Object, slim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from webhook.api.resource import Resource
    from webhook.log import Logger

FIELD_MANAGER: Final = "waddle"
"""The owner of the fields that server-side apply writes."""

DEADLINE_SECONDS: Final = 30.0
"""The deadline of a plain request with its retries, in seconds; the API server gives up after 60.
"""

IN_FLIGHT_MAX: Final = 32
"""Plain requests at once: the priority level of a service account has some 50 seats for all."""

RETRY_AFTER_SECONDS_MAX: Final = 15.0
"""The longest wait that ``Retry-After`` may ask for; longer values come from load balancers."""

ANSWER_BYTES_MAX: Final = 128 << 20
"""The longest answer: the largest realistic page has 500 objects of 256 KiB."""

_CONNECT_SECONDS: Final = 10.0
_CONFLICT_TRIES: Final = 6
_REFUSAL_BYTES_MAX: Final = 1 << 20
_RETRIED: Final = frozenset((429, 503, 504))
_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
_MERGE: Final = "application/merge-patch+json"


class ClusterClient:
    """A session with one API server; an async context manager."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        replica: str = "",
        log: Logger | None = None,
        keep_history: bool = False,
        clock: ClockComparison | None = None,
    ) -> None:
        """``replica`` is the Pod's name, which the API server's audit log shows.

        ``log`` gets failures of lists and watches. With ``keep_history`` objects keep their
        ``managedFields``. ``clock`` is compared with the API server's.
        """
        self.deadline_seconds = DEADLINE_SECONDS
        """Of each plain request that gives none, with its retries."""
        self.clock = ClockComparison() if clock is None else clock
        self._keep_history = keep_history
        self.credentials = credentials
        self.log = log
        self._user_agent = f"waddle/{__version__}" + (f" ({replica})" if replica else "")
        self._session: aiohttp.ClientSession | None = None
        self._in_flight = asyncio.Semaphore(IN_FLIGHT_MAX)
        self.requests = 0
        self.unauthorized = 0
        self.answered: dict[str, str] = {}
        """The resource version of the last write, by path of the kind: known before a watch
        delivers it.
        """

    def kept(self, obj: Object) -> Object:
        """Returns an object as it is kept in memory; may change ``obj``."""
        return obj if self._keep_history else slim(obj)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if is_uvloop(loop) and not isinstance(loop, EventLoop):
            raise TypeError("uvloop's own loop closes descriptors twice: use cluster.event_loop")
        # Without TLS to the API server there may be TLS to a proxy.
        tls = self.credentials.tls or ssl.create_default_context()
        connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, ssl=tls, ttl_dns_cache=60)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": _JSON},
            auto_decompress=True,
            raise_for_status=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._session = None

    # --- plain requests -----------------------------------------------------------------------

    async def request(  # each is a part of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        accept: str = _JSON,
        deadline_seconds: float | None = None,
    ) -> Any:
        """Returns the decoded answer; ``accept`` asks for another representation than plain JSON.

        A busy server is asked again after its ``Retry-After``, within the deadline. Raises
        :class:`ApiError` for a refusal and :class:`ApiUnreachable` without an answer.
        """
        data = None if body is None else encode(body)
        content = await self._answer(
            method,
            path,
            query,
            data,
            content_type,
            accept,
            deadline_seconds=deadline_seconds or self.deadline_seconds,
        )
        return _decoded(method, path, content)

    async def text(
        self, path: str, query: Mapping[str, str], *, deadline_seconds: float
    ) -> tuple[int, str]:
        """Returns the status and text of any answer, as of a Pod behind the API server's proxy.

        It is asked once. Raises :class:`ApiUnreachable` without an answer.
        """
        try:
            async with (
                asyncio.timeout(deadline_seconds),
                await self._send("GET", path, query, None, None, None) as response,
            ):
                body = await _read_refusal(response)
        except TimeoutError:
            raise ApiUnreachable(f"no answer within {deadline_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnreachable(_described(error)) from error
        return response.status, body.decode("utf-8", "replace")

    async def page(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        deadline_seconds: float,
        bytes_max: int | None = None,
        accept: str | None = None,
    ) -> tuple[Any, int]:
        """Returns a page of a list and its size in bytes.

        ``accept`` and errors as for :meth:`request`.

        Lists of metadata come without ``managedFields``. A page of more than ``bytes_max`` is not
        read to its end: raises :class:`~webhook.cluster.errors.AnswerTooLarge`.
        """
        content = await self._answer(
            "GET",
            path,
            query,
            None,
            _JSON,
            accept or _JSON,
            deadline_seconds=deadline_seconds,
            bytes_max=bytes_max or ANSWER_BYTES_MAX,
        )
        return _decoded("GET", path, without_managed_fields(content)), len(content)

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        content_type: str,
        accept: str,
        *,
        deadline_seconds: float,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> bytes:
        backoff, refusal = Backoff(initial_seconds=0.2, max_seconds=5.0), ""
        try:
            async with asyncio.timeout(deadline_seconds), self._in_flight:
                while True:
                    try:
                        return await self._once(
                            method, path, query, data, content_type, accept, bytes_max=bytes_max
                        )
                    except ApiError as error:
                        if error.status not in _RETRIED:
                            raise
                        delay, refusal = error.retry_after_seconds, f"; last {error}"
                        if delay is None:
                            delay = backoff.next_seconds()
                        if delay > deadline_seconds:
                            raise
                        await asyncio.sleep(min(delay, RETRY_AFTER_SECONDS_MAX))
        except TimeoutError:
            raise ApiUnreachable(
                f"{method} {path}: no answer within {deadline_seconds:g} s{refusal}"
            ) from None

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        content_type: str,
        accept: str,
        *,
        bytes_max: int,
    ) -> bytes:
        headers = {"Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        async with await self._open(method, path, query, headers=headers, data=data) as response:
            try:
                return await _read(response, bytes_max)
            except _TooLarge:
                message = f"{method} {path}: an answer of over {bytes_max} bytes"
                raise AnswerTooLarge(message) from None
            except (aiohttp.ClientError, OSError) as error:
                raise ApiUnreachable(f"{method} {path}: {_described(error)}") from error

    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        inactivity_seconds: float | None = None,
    ) -> aiohttp.ClientResponse:
        """Returns a successful response, which the caller closes.

        After a 401 it reads the token again.
        """
        response = await self._send(method, path, query, headers, data, inactivity_seconds)
        if response.status == 401:
            async with response:
                self.unauthorized += 1
            try:
                self.credentials.reread()
            except CredentialsError as error:
                raise ApiUnreachable(f"{method} {path}: 401, and {error}") from error
            response = await self._send(method, path, query, headers, data, inactivity_seconds)
        if response.status < 400:
            return response
        async with response:
            body = await _read_refusal(response)
            raise api_error(response.status, body, response.headers.get("Retry-After"))

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        data: bytes | None,
        inactivity_seconds: float | None,
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "the client is not open"
        self.requests += 1
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=inactivity_seconds
        )
        proxy, began = self.credentials.proxy, time.time()
        try:
            response = await self._session.request(
                method,
                self.credentials.server + path,
                params=query,
                data=data,
                headers={**self.credentials.headers(), **(headers or {})},
                timeout=timeout,
                allow_redirects=False,
                proxy=None if proxy is None else proxy.url,
                proxy_headers=None if proxy is None else proxy.headers,
                server_hostname=self.credentials.server_name,
            )
        except (aiohttp.ClientError, OSError, CredentialsError) as error:
            raise ApiUnreachable(f"{method} {path}: {_described(error)}") from error
        if self.clock.take(response.headers.get("Date"), began) and self.log is not None:
            self.log.warning(
                self.clock.fault or "the clock of this replica's node is right again",
                skew_seconds=round(self.clock.skew_seconds, 1),
            )
        return response

    # --- reading ------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Returns one object. Raises :class:`ApiError` with ``is_absent`` if it does not exist."""
        document: Object = await self.request("GET", resource.path(name, namespace))
        return document

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, inactivity_seconds: float
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Yields the bytes of a watch; raises :class:`ApiUnreachable` after a silence."""
        async with await self._open(
            "GET", path, query, inactivity_seconds=inactivity_seconds
        ) as response:
            try:
                yield response.content
            finally:
                # A graceful close of a left watch is pointless, and the TLS shutdown would outlive
                # the caller's event loop.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    # --- writing ------------------------------------------------------------------------------

    async def create(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        """Creates an object. Raises :class:`ApiError` with ``is_conflict`` if it exists."""
        path, query = resource.collection(namespace), {"fieldManager": FIELD_MANAGER}
        return self._answered(resource, await self.request("POST", path, query=query, body=body))

    async def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        """Writes an object if its ``resourceVersion`` is still the current one."""
        metadata = body["metadata"]
        assert metadata.get("resourceVersion"), "a swap compares with a resourceVersion"
        path = resource.path(
            metadata["name"], metadata.get("namespace", ""), subresource=subresource
        )
        written = await self.request("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=body)
        return self._answered(resource, written)

    async def update(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        change: Callable[[Object], Object | None],
        *,
        subresource: str = "",
    ) -> Object | None:
        """Reads an object, applies ``change`` and writes it; tries again after a conflict.

        ``change`` returns the new object, or ``None`` if nothing differs: then nothing is written,
        and ``None`` is returned.
        """
        backoff = Backoff(initial_seconds=0.05, max_seconds=1.0)
        for attempt in range(1, _CONFLICT_TRIES + 1):
            desired = change(await self.get(resource, name, namespace))
            if desired is None:
                return None
            try:
                return await self.replace(resource, desired, subresource=subresource)
            except ApiError as error:
                if not error.is_conflict or attempt == _CONFLICT_TRIES:
                    raise
            await asyncio.sleep(backoff.next_seconds())
        raise AssertionError("the last attempt returns or raises")

    async def apply(self, resource: Resource, body: Object) -> Object:
        """Applies fields of an object with server-side apply, whoever managed them before.

        Creates the object if it does not exist.
        """
        metadata = body["metadata"]
        path = resource.path(metadata["name"], metadata.get("namespace", ""))
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        written = await self.request("PATCH", path, query=query, body=body, content_type=_APPLY)
        return self._answered(resource, written)

    async def merge(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Object,
        *,
        subresource: str = "",
    ) -> Object:
        """Returns a JSON merge patch, for fields that have one writer."""
        path = resource.path(name, namespace, subresource=subresource)
        query = {"fieldManager": FIELD_MANAGER}
        written = await self.request("PATCH", path, query=query, body=patch, content_type=_MERGE)
        return self._answered(resource, written)

    def _answered(self, resource: Resource, written: Any) -> Object:
        if version := text(written, "metadata", "resourceVersion"):
            self.answered[resource.collection()] = version
        answer: Object = written
        return answer

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        version: str = "",
    ) -> None:
        """Deletes an object with this uid and version; an object that does not exist is no error."""
        given = {"uid": uid, "resourceVersion": version}
        preconditions = {field: value for field, value in given.items() if value}
        body = {"preconditions": preconditions} if preconditions else None
        try:
            await self.request("DELETE", resource.path(name, namespace), body=body)
        except ApiError as error:
            if not error.is_absent:
                raise


class _TooLarge(Exception):
    """An answer exceeds its bound."""


async def _read(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Returns the whole body; raises if it is longer than ``bytes_max``."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > bytes_max:
            raise _TooLarge
        parts.append(part)
    return b"".join(parts)


async def _read_refusal(response: aiohttp.ClientResponse) -> bytes:
    """Returns the body of a refusal, as much of it as is read."""
    body = b""
    async for part in response.content.iter_any():
        body += part
        if len(body) > _REFUSAL_BYTES_MAX:
            return body[:_REFUSAL_BYTES_MAX]
    return body


def _decoded(method: str, path: str, content: bytes) -> Any:
    try:
        return decode(content) if content else None
    except DecodeError as error:
        # A proxy's page, or the body of a server that is going down.
        raise ApiUnreachable(f"{method} {path}: the answer is not JSON: {error}") from error


def _described(error: BaseException) -> str:
    if type(error) is aiohttp.ClientConnectorError and error.os_error.errno is not None:
        # The system may list an error for each address that it tried: one of them is enough.
        why = os.strerror(error.os_error.errno) if error.os_error.errno > 0 else error.strerror
        return f"no API server answers at {error.host}:{error.port}: {why}"
    return str(error) or type(error).__name__
