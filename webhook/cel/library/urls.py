"""URLs, as Go's ``net/url`` reads them."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import Opaque
from webhook.golang import url as go_url
from webhook.golang.strings import from_utf8
from webhook.golang.url import fault_of_request_uri

NAME: Final = "kubernetes.URL"


@form("url", str)
def url(text: str) -> Opaque:
    """Returns the URL of a text."""
    fault = fault_of_request_uri(text)
    if fault is None:
        try:
            parsed = go_url.parse(text)
        except ValueError as error:
            fault = str(error)
    if fault is not None:
        raise EvaluationError(f"URL parse error during conversion from string: {fault}")
    return Opaque(NAME, parsed, str(parsed))


@form("isURL", str)
def is_url(text: str) -> bool:
    """Returns whether a text is a URL."""
    return fault_of_request_uri(text) is None


@form("getScheme", NAME)
def scheme(url: Opaque) -> str:
    """Returns the scheme, such as ``https``."""
    return str(url.value.scheme)


@form("getHost", NAME)
def host(url: Opaque) -> str:
    """Returns the host with its port."""
    return str(url.value.host)


@form("getHostname", NAME)
def hostname(url: Opaque) -> str:
    """Returns the host without its port."""
    return str(url.value.hostname)


@form("getPort", NAME)
def port(url: Opaque) -> str:
    """Returns the digits of the port."""
    return str(url.value.port)


@form("getEscapedPath", NAME)
def escaped_path(url: Opaque) -> str:
    """Returns the path with ``%20`` for a space, as in a request."""
    return str(url.value.escaped_path)


@form("getQuery", NAME)
def query(url: Opaque) -> dict[str, list[str]]:
    """Returns the query's values by name; malformed parameters are left out."""
    values: dict[str, list[str]] = {}
    for pair in str(url.value.raw_query).split("&"):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        plain = [_unescaped(part) for part in (name, value)]
        if plain[0] is not None and plain[1] is not None:
            values.setdefault(plain[0], []).append(plain[1])
    return values


def _unescaped(text: str) -> str | None:
    parts = text.split("%")[1:]
    if any(len(part) < 2 or not _is_hex(part[:2]) for part in parts):
        return None
    return from_utf8(unquote_to_bytes(text.replace("+", " ").encode("utf-8", "surrogateescape")))


def _is_hex(text: str) -> bool:
    return all(mark in "0123456789abcdefABCDEF" for mark in text)
