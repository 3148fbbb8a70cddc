"""The HTTP client of ``http.send``; without it ``http.send`` has no network.

It blocks its thread: ``waddle test`` and ``verify`` provide it for the hosts of
``--http-send-host``, and servers never do. Only the hosts on its list are reached, also by
redirections. Each attempt ends at its timeout, and responses are read up to a limit.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import tempfile
import time
from collections import OrderedDict
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from webhook.proxies import InvalidProxy, Route, route
from webhook.rego.builtins.operands import url_of
from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.golang.url import Url
    from webhook.rego.builtins.http.request import HttpRequest
    from webhook.rego.run.values import Key

BODY_BYTES_MAX: Final = 8 << 20
"""The longest response that is read, in bytes: five times the largest object of an API server."""

CACHED_MAX: Final = 256
"""The most responses kept between queries."""

_REDIRECTS_MAX: Final = 10  # net/http's own limit
_REDIRECTIONS: Final = frozenset((301, 302, 303, 307, 308))
_FIRST_DELAY_SECONDS: Final = 0.1  # doubled at each retry, as OPA's


class NetworkError(Exception):
    """The request could not be sent or answered; the message is net/http's."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer: status, headers by lower-case name, body."""

    status_code: int
    reason: str
    headers: dict[str, list[str]]
    body: bytes


@dataclass(slots=True)
class HttpClient:
    """Sends requests to the hosts of ``allowed_hosts``; ``None`` allows every host."""

    allowed_hosts: frozenset[str] | None
    _cache: OrderedDict[Key, tuple[float, HttpResponse]] = field(default_factory=OrderedDict)

    def cached(self, name: Key) -> HttpResponse | None:
        """Returns a cached response that has not expired."""
        expires, response = self._cache.get(name, (0.0, None))
        return response if expires > time.monotonic() else None

    def keep(self, name: Key, response: HttpResponse, seconds: float) -> None:
        """Caches a response; removes the oldest one if the cache is full."""
        self._cache[name] = time.monotonic() + seconds, response
        while len(self._cache) > CACHED_MAX:
            self._cache.popitem(last=False)

    def send(self, request: HttpRequest, deadline: float | None) -> HttpResponse:
        """Returns the response; raises NetworkError. ``deadline`` is on the monotonic clock."""
        delay = _FIRST_DELAY_SECONDS
        for attempt in range(request.retries + 1):
            try:
                return self._follow(request, deadline)
            except NetworkError:
                if attempt == request.retries or _left(deadline, delay) < delay:
                    raise
            time.sleep(delay)
            delay *= 2
        raise AssertionError("the last attempt returns or raises")

    def _follow(self, request: HttpRequest, deadline: float | None) -> HttpResponse:
        method, address, body = request.method, request.url, request.body
        ends = time.monotonic() + _left(deadline, request.timeout_seconds)
        for _ in range(_REDIRECTS_MAX + 1):
            response = self._once(request, method, address, body, ends)
            location = response.headers.get("location")
            if not request.enable_redirect or response.status_code not in _REDIRECTIONS:
                return response
            if not location:
                return response
            if response.status_code in (301, 302, 303) and method not in ("GET", "HEAD"):
                method, body = "GET", b""
            address = urljoin(address, location[0])
        fault = f'{_verb(request)} "{address}": stopped after {_REDIRECTS_MAX} redirects'
        raise NetworkError(fault)

    def _once(
        self, request: HttpRequest, method: str, address: str, body: bytes, ends: float
    ) -> HttpResponse:
        url = url_of(address)
        if self.allowed_hosts is not None and url.hostname not in self.allowed_hosts:
            raise BuiltinError(f"disallowed host: {url.hostname}")
        connection, prefix, by = _connection(request, url, max(ends - time.monotonic(), 0.001))
        target = (url.escaped_path or "/") + (f"?{url.raw_query}" if url.raw_query else "")
        try:
            connection.request(method, prefix + target, body or None, {**by, **request.headers})
            answer = connection.getresponse()
            data = answer.read(BODY_BYTES_MAX + 1)
        except TimeoutError:
            raise NetworkError(f"{_verb(request)} {address}: request timed out") from None
        except (OSError, http.client.HTTPException) as error:
            raise NetworkError(f'{_verb(request)} "{address}": {_words(error, url)}') from None
        finally:
            connection.close()
        if len(data) > BODY_BYTES_MAX:
            fault = f'{_verb(request)} "{address}": response is over {BODY_BYTES_MAX} bytes'
            raise NetworkError(fault)
        headers: dict[str, list[str]] = {}
        for name, value in answer.getheaders():
            headers.setdefault(name.lower(), []).append(value)
        return HttpResponse(answer.status, answer.reason, headers, data)


def _verb(request: HttpRequest) -> str:
    return request.method.capitalize()


def _words(error: Exception, url: Url) -> str:
    """Returns the failure in the words of Go's net package, if it is a common one."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {url.hostname}: no such host"
    if isinstance(error, ConnectionRefusedError):
        port = url.port or ("443" if url.scheme == "https" else "80")
        return f"dial tcp {url.hostname}:{port}: connect: connection refused"
    if isinstance(error, http.client.RemoteDisconnected):
        return "EOF"
    return str(error)


def _left(deadline: float | None, seconds: float) -> float:
    return seconds if deadline is None else min(seconds, max(deadline - time.monotonic(), 0))


def _connection(request: HttpRequest, url: Url, seconds: float) -> Route:
    if not url.is_port_in_range:
        fault = f"dial tcp: address {url.port}: invalid port"
        raise NetworkError(f'{_verb(request)} "{url}": {fault}')
    port = int(url.port) if url.port else None
    if url.scheme in ("http", "https"):
        context = _tls_context(request.tls) if url.scheme == "https" else None
        try:
            return route(url.scheme, url.hostname, port, timeout=seconds, context=context)
        except InvalidProxy as error:
            raise NetworkError(f'{_verb(request)} "{url}": {error}') from None
    raise NetworkError(f'{_verb(request)} "{url}": unsupported protocol scheme "{url.scheme}"')


def _tls_context(given: dict[str, Any]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context()
        authorities = list(_authorities(given))
        if authorities and not given.get("tls_use_system_certs"):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for text in authorities:
            context.load_verify_locations(cadata=text)
        if given.get("tls_insecure_skip_verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_client_pair(context, given)
    except (OSError, ValueError) as error:
        raise BuiltinError(f"tls: {error}") from None
    return context


def _authorities(given: dict[str, Any]) -> Iterator[str]:
    if "tls_ca_cert" in given:
        yield given["tls_ca_cert"].replace("\\n", "\n")
    if "tls_ca_cert_file" in given:
        yield Path(given["tls_ca_cert_file"]).read_text("utf-8")
    if "tls_ca_cert_env_variable" in given:
        yield os.environ.get(given["tls_ca_cert_env_variable"], "")


def _load_client_pair(context: ssl.SSLContext, given: dict[str, Any]) -> None:
    if "tls_client_cert_file" in given and "tls_client_key_file" in given:
        context.load_cert_chain(given["tls_client_cert_file"], given["tls_client_key_file"])
    for suffix, read in (("", str), ("_env_variable", lambda name: os.environ.get(name, ""))):
        cert, key = given.get(f"tls_client_cert{suffix}"), given.get(f"tls_client_key{suffix}")
        if cert is None or key is None:
            continue
        # OpenSSL's binding takes a pair only from files.
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, "cert"), Path(folder, "key")]
            for path, text in zip(paths, (read(cert), read(key)), strict=True):
                path.touch(mode=0o600)
                path.write_text(text, "utf-8")
            context.load_cert_chain(paths[0], paths[1])
