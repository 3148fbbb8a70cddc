"""One keep-alive HTTP connection of the standard library, for HTTP and OTLP sinks.

aiohttp costs 17 MiB that the sidecar does not have.
"""

from __future__ import annotations

import email.utils
import http.client
import re
import ssl
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.sink import (
    ANSWER_SECONDS,
    ANSWER_SECONDS_MIN,
    RecordsRefused,
    SinkUnavailable,
)
from webhook.proxies import Route, route
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.decisions.configuration import Section

RETRIED: Final = frozenset({401, 403, 404, 407, 408, 425, 429})
"""Client errors that are tried again. A credential or a route that is being rolled out refuses
every record alike, and a queue full of dead letters would not help then."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""The characters that http.client accepts in values; its errors for others quote the value."""

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Read of an answer; more closes the connection."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address, headers and timeout of posts.

    ``header_files`` and ``bearer_token_file`` name files with header values. They are read again
    for each request, so that a rotated Secret is used.
    """

    url: str = setting()
    timeout_seconds: float = setting(ANSWER_SECONDS, least=ANSWER_SECONDS_MIN)
    headers: Mapping[str, str] = setting(dict)
    header_files: Mapping[str, Path] = field(default_factory=dict)
    bearer_token_file: Path | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None


def read_endpoint(section: Section) -> Endpoint:
    """Reads an endpoint's keys; raises InvalidConfiguration for invalid values."""
    parts = section.url("url")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise section.error("url", "expected http://… or https://…")
    tls = section.section("tls")
    for key in ("headers", "headerFiles"):
        for name, value in section.text_map(key).items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value if key == "headers" else ""):
                raise section.error(
                    key, f"{name!r} is not a header of HTTP, or its value is not allowed"
                )
    return section.read(
        Endpoint,
        header_files={name: Path(file) for name, file in section.text_map("headerFiles").items()},
        bearer_token_file=section.path("bearerTokenFile"),
        ca_file=tls.path("caFile"),
        certificate_file=tls.path("certFile"),
        key_file=tls.path("keyFile"),
    )


class Poster:
    """Posts bodies over one connection, opened again after a fault."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        parts = urlsplit(endpoint.url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._route: Route | None = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Returns the answer's body, for any 2xx; raises as a sink's ``send`` does."""
        try:
            connection, prefix, by = self._connect()
            sent = {**headers, **by, **self._headers()}
            connection.request("POST", prefix + self._target, body, sent)
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER_BYTES)
            if response.read(1):
                self.close()
        except (OSError, http.client.HTTPException, ssl.SSLError, ValueError) as error:
            self.close()
            raise SinkUnavailable(f"{type(error).__name__}: {error}") from None
        if 200 <= response.status < 300:
            return answer
        message = f"answered {response.status} {response.reason}"
        if response.status in RETRIED or not 400 <= response.status < 500:
            raise SinkUnavailable(message, _retry_after(response.getheader("Retry-After")))
        raise RecordsRefused(message)

    def close(self) -> None:
        """Closes the connection."""
        if self._route is not None:
            self._route.connection.close()
            self._route = None

    def _connect(self) -> Route:
        if self._route is None:
            endpoint = self._endpoint
            parts = urlsplit(endpoint.url)
            assert parts.hostname is not None
            context = None
            if parts.scheme == "https":
                context = ssl.create_default_context(cafile=endpoint.ca_file)
                if endpoint.certificate_file is not None:
                    context.load_cert_chain(endpoint.certificate_file, endpoint.key_file)
            self._route = route(
                parts.scheme,
                parts.hostname,
                parts.port,
                timeout=endpoint.timeout_seconds,
                context=context,
            )
        return self._route

    def _headers(self) -> dict[str, str]:
        headers = dict(self._endpoint.headers)
        for name, path in self._endpoint.header_files.items():
            headers[name] = _secret(path)
        if self._endpoint.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {_secret(self._endpoint.bearer_token_file)}"
        return headers


def _secret(path: Path) -> str:
    """Returns a file's text for a header. Errors do not quote the text, since they are logged."""
    text = path.read_text().strip()
    if not _VALUE.fullmatch(text):
        raise ValueError(f"{path} holds no value of a header of HTTP")
    return text


def _retry_after(value: str | None) -> float:
    """Returns the seconds of a Retry-After header, at most an hour; 0 without a valid value."""
    if value is None:
        return 0.0
    if value.strip().isdecimal():
        return min(float(value), 3600.0)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return min(max(moment.timestamp() - time.time(), 0.0), 3600.0)
