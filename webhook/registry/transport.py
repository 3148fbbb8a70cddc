"""Requests to registries, with limits of size, redirects, retries and time.

Credentials are sent only to the host that they belong to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import ssl
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

from webhook import __version__
from webhook.api.encoding import DecodeError, decode
from webhook.backoff import Backoff
from webhook.printable import printable, reason_of
from webhook.proxies import InvalidProxy, proxy_for
from webhook.registry.authorization import (
    TOKEN_BYTES_MAX,
    TokenCache,
    read_challenge,
    read_token,
    scope_of,
    token_request,
)
from webhook.registry.credentials import Credential, DockerConfig, credential_for
from webhook.registry.errors import RegistryRefused, RegistryUnavailable, UntrustedContent
from webhook.registry.reference import DOCKER_HUB, Reference
from webhook.values import dataclass

REDIRECTS_MAX: Final = 5
TRIES_MAX: Final = 4
RETRY_AFTER_SECONDS_MAX: Final = 20.0
"""The longest requested wait that is respected; after a longer one the deadline would pass."""

_CONNECTION_SECONDS: Final = 10.0
_SILENCE_SECONDS: Final = 20.0
_REFUSAL_BYTES_MAX: Final = 64 << 10
_RETRIED: Final = frozenset((429, 500, 502, 503, 504))
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_IDEMPOTENT: Final = frozenset(("GET", "HEAD"))
_IN_FLIGHT_MAX: Final = 8
"""The number of simultaneous requests: registries limit clients, and layers are small."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """The options of requests to registries."""

    configs: tuple[DockerConfig, ...] = ()
    """The sources of credentials, in this order."""
    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The mirrors of each registry, tried before the registry itself."""
    insecure: frozenset[str] = frozenset()
    """The hosts (with port, if any) that are accessed without TLS."""
    ca_files: tuple[Path, ...] = ()
    """Files of CA certificates that are trusted besides the system's."""
    deadline_seconds: float = 60.0
    """The time of one question with its retries, redirects and tokens, in seconds."""


@dataclass(frozen=True, slots=True)
class RegistryRequest:
    """A request to a host about a repository."""

    host: str
    repository: str
    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    bytes_max: int = 0
    pushes: bool = False
    leaves: bool = False
    """Whether another host may serve the content; only for content with a verified digest."""

    @property
    def scope(self) -> str:
        """Returns the scope that the token must allow."""
        return scope_of(self.repository, pushes=self.pushes)


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


class _Retry(Exception):
    """A failed attempt that may be retried, after some seconds (None: as back-off determines)."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


def trust(options: RegistryOptions) -> ssl.SSLContext:
    """Returns a context with the system's CAs and those of the options.

    Raises :class:`UntrustedContent`.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for file in options.ca_files:
        try:
            context.load_verify_locations(cafile=str(file))
        except OSError as error:  # ssl.SSLError is a subclass
            raise UntrustedContent(f"{file}: no certificates: {error.strerror or error}") from None
    return context


class RegistryTransport:
    """Sends requests; an async context manager."""

    def __init__(self, options: RegistryOptions) -> None:
        self.options = options
        self._tokens = TokenCache()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=_IN_FLIGHT_MAX, ssl=trust(self.options))
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": f"waddle/{__version__}", "Accept-Encoding": "identity"},
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._session = None

    def scheme(self, host: str) -> str:
        """Returns ``http`` for hosts that are listed as insecure, else ``https``."""
        return "http" if host in self.options.insecure else "https"

    async def send(self, request: RegistryRequest) -> RegistryAnswer:
        """Sends a request with retries; returns a successful answer. Raises ``RegistryError``."""
        backoff = Backoff(initial_seconds=0.5, max_seconds=8.0)
        seconds = self.options.deadline_seconds
        failed = ""
        try:
            async with asyncio.timeout(seconds):
                for attempt in range(1, TRIES_MAX + 1):
                    try:
                        return await self._authorized(request)
                    except _Retry as retry:
                        failed = str(retry)
                        if attempt == TRIES_MAX or (retry.seconds or 0) > RETRY_AFTER_SECONDS_MAX:
                            break
                        wait = backoff.next_seconds()
                        if retry.seconds is not None:  # spreads out clients with the same wait
                            wait = retry.seconds + random.uniform(0, 0.5)  # noqa: S311  # no secret
                        await asyncio.sleep(wait)
        except TimeoutError:
            why = f": {failed}" if failed else ""
            raise RegistryUnavailable(
                f"{request.host} gave no answer within {seconds:g} s{why}"
            ) from None
        raise RegistryUnavailable(failed)

    async def _authorized(self, request: RegistryRequest) -> RegistryAnswer:
        """Sends a request; obtains a token once if the registry requires one."""
        header = self._tokens.get(request.host, request.scope)
        answer = await self._followed(request, header)
        if answer.status == 401:
            if header is not None:
                self._tokens.drop(request.host, request.scope)
            fresh = await self._authorize(request, answer.headers.get("WWW-Authenticate", ""))
            answer = await self._followed(request, fresh)
        if answer.status < 400:
            return answer
        if answer.status in _RETRIED and request.method in _IDEMPOTENT:
            raise _Retry(_refusal_text(request, answer), _retry_after(answer))
        if answer.status == 429:  # nothing was done, so that a retry is safe
            raise _Retry(_refusal_text(request, answer), _retry_after(answer))
        raise RegistryRefused(_refusal_text(request, answer), answer.status)

    async def _authorize(self, original: RegistryRequest, header: str) -> str:
        """Returns the Authorization header that a challenge requires."""
        challenge = read_challenge(
            header, original.host, is_plain=original.host in self.options.insecure
        )
        credential = await self._credential(original)
        if challenge.scheme == "basic":
            if credential is None:
                raise RegistryRefused(
                    f"{original.host} asks for a user, and no credentials name it", 401
                )
            basic = credential.basic()
            self._tokens.keep(original.host, original.scope, basic, 3600.0)
            return basic
        request = token_request(challenge, original.scope, credential)
        parts = urlsplit(request.url)
        answer = await self._once(
            request.method, request.url, request.headers, request.body or None, TOKEN_BYTES_MAX
        )
        if answer.status in _REDIRECTS:
            raise UntrustedContent(f"{parts.netloc} redirects who asks for a token: not followed")
        if answer.status in _RETRIED:
            raise _Retry(
                f"{parts.netloc} gave no token: HTTP status {answer.status}", _retry_after(answer)
            )
        token, seconds = read_token(answer.status, answer.content, challenge.realm)
        bearer = f"Bearer {token}"
        self._tokens.keep(original.host, original.scope, bearer, seconds)
        return bearer

    async def _credential(self, request: RegistryRequest) -> Credential | None:
        hub = Reference(DOCKER_HUB, "").host
        registry = DOCKER_HUB if request.host == hub else request.host
        return await credential_for(self.options.configs, registry, request.repository)

    async def _followed(
        self, request: RegistryRequest, authorization: str | None
    ) -> RegistryAnswer:
        """Follows redirects; returns the last answer."""
        origin = f"{self.scheme(request.host)}://{request.host}"
        url = urljoin(origin, request.path)
        for _ in range(REDIRECTS_MAX + 1):
            headers = dict(request.headers)
            if authorization is not None and _is_below(url, origin):
                headers["Authorization"] = authorization
            answer = await self._once(request.method, url, headers, request.body, request.bytes_max)
            if answer.status not in _REDIRECTS or request.method not in _IDEMPOTENT:
                break
            url = _redirected(url, answer.headers.get("Location", ""), origin, request)
        if answer.status in _REDIRECTS:
            raise UntrustedContent(
                f"{request.host} redirects {request.method} more than {REDIRECTS_MAX} times"
                if request.method in _IDEMPOTENT
                else f"{request.host} redirects {request.method}: not followed"
            )
        return answer

    async def _once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        bytes_max: int,
    ) -> RegistryAnswer:
        """Sends one request, through a proxy if the environment names one."""
        assert self._session is not None, "the client is not open"
        host = urlsplit(url).netloc
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECTION_SECONDS, sock_read=_SILENCE_SECONDS
        )
        try:
            proxy = proxy_for(url)
            async with self._session.request(
                method,
                URL(url, encoded=True),  # unchanged: signed URLs must keep their encoding
                headers=headers,
                data=body,
                timeout=timeout,
                allow_redirects=False,
                proxy=None if proxy is None else proxy.url,
                proxy_headers=None if proxy is None else proxy.headers,
            ) as response:
                content = b""
                if method != "HEAD":
                    fine = response.status < 300
                    content = await _read(
                        response, bytes_max if fine else _REFUSAL_BYTES_MAX, host, cut=not fine
                    )
                return RegistryAnswer(response.status, response.headers, content)
        except InvalidProxy as error:
            raise UntrustedContent(f"{host}: {error}") from None
        except (aiohttp.ClientSSLError, ssl.SSLError) as error:
            # A retry would meet the same certificate.
            why = getattr(error, "certificate_error", error)
            raise RegistryUnavailable(
                f"{host}: {reason_of(why)}: for a registry without TLS give --registry-insecure (waddle "
                "conftest: --tls=false), for an authority of your own --registry-ca"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _Retry(f"{host}: {reason_of(error) or type(error).__name__}") from None


async def _read(response: aiohttp.ClientResponse, bytes_max: int, host: str, *, cut: bool) -> bytes:
    """Reads the whole body, or its beginning with ``cut``; raises if it is too large."""
    if response.headers.get("Content-Encoding", "identity") != "identity" and not cut:
        raise UntrustedContent(f"{host} sent what nobody asked for: compressed content")
    length = response.content_length
    if length is not None and length > bytes_max and not cut:
        raise _too_large(host, bytes_max)
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        parts.append(part)
        if size > bytes_max:
            if cut:
                return b"".join(parts)[:bytes_max]
            raise _too_large(host, bytes_max)
    return b"".join(parts)


def _too_large(host: str, bytes_max: int) -> UntrustedContent:
    return UntrustedContent(f"{host} answered with more than {bytes_max} bytes")


def _is_below(url: str, origin: str) -> bool:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" == origin


def _redirected(url: str, location: str, origin: str, request: RegistryRequest) -> str:
    """Returns the target of a redirect; raises :class:`UntrustedContent` if it is not allowed."""
    target = urljoin(url, location)
    parts, origin_parts = urlsplit(target), urlsplit(origin)
    shown = f"{parts.scheme}://{parts.netloc}"[:200]
    if not location or not parts.hostname or parts.username is not None:
        raise UntrustedContent(f"{request.host} redirects to no address")
    if (
        parts.scheme != "https"
        and shown != origin
        and not (origin_parts.scheme == "http" and parts.scheme == "http")
    ):
        raise UntrustedContent(f"{request.host} redirects to {shown}, which is not https")
    if shown == origin:
        return target
    if not request.leaves:
        raise UntrustedContent(
            f"{request.host} redirects to another host, {shown}: only blobs may come from elsewhere"
        )
    if _is_internal(parts.hostname) and not _is_internal(origin_parts.hostname or ""):
        raise UntrustedContent(f"{request.host} redirects to an internal address, {shown}")
    return target


def _is_internal(host: str) -> bool:
    """Whether a host is the machine itself, or has an address that is not global."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _retry_after(answer: RegistryAnswer) -> float | None:
    """Returns the seconds of Retry-After; None for dates, which are not read."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _refusal_text(request: RegistryRequest, answer: RegistryAnswer) -> str:
    """Returns a refusal with the registry's reason, made printable."""
    reason = printable(" ".join(_reason(answer.content).split()))
    suffix = f": {reason}" if reason else ""
    wait = answer.headers.get("Retry-After", "") if answer.status == 429 else ""
    later = f"; it asks to wait {printable(wait[:40])} s" if wait else ""
    return f"{request.host}: {request.method} {request.path}: HTTP status {answer.status}{suffix}{later}"


def _reason(content: bytes) -> str:
    """Returns the first error of an answer, in the form of the specification."""
    try:
        errors = decode(content)["errors"]
        return f"{errors[0]['code']} {errors[0].get('message') or ''}".strip()[:300]
    except (DecodeError, TypeError, KeyError, IndexError, AttributeError):
        return ""
