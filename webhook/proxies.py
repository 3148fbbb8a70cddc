"""Chooses the proxy of a request, as Go's programs do (golang.org/x/net/http/httpproxy).

``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, also in lower case. An entry of ``NO_PROXY`` is a
host (with its subdomains), ``.suffix`` or ``*.suffix``, an address, a network (CIDR), each with an
optional port, or ``*`` for all. Requests to the local machine use no proxy.
"""

from __future__ import annotations

import base64
import http.client
import os
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from ipaddress import IPv4Address, IPv6Address

_PLAIN_ONLY: Final = "a proxy behind TLS is not supported here: use http://"
_PORTS: Final = {"http": 80, "https": 443}


class InvalidProxy(OSError):
    """The environment names a proxy that cannot be used."""


class Proxy(NamedTuple):
    """A proxy: its address without credentials, and the headers with the credentials."""

    url: str
    headers: Mapping[str, str]
    user: str = ""
    """Name and password as they stand in a URL."""


def read_proxy(text: str) -> Proxy:
    """Reads a proxy from its URL, or ``host:port``; raises :class:`InvalidProxy`."""
    parts = urlsplit(text)
    if not parts.scheme or not parts.netloc:
        parts = urlsplit(f"http://{text}")
    try:
        if parts.scheme not in _PORTS or not parts.hostname:
            raise InvalidProxy(f"{_shown(parts)} is not an http:// or https:// proxy")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = parts.port or _PORTS[parts.scheme]
    except ValueError as error:
        raise InvalidProxy(f"{_shown(parts)} is not a proxy: {error}") from None
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    user = parts.netloc.rpartition("@")[0]
    return Proxy(f"{parts.scheme}://{host}:{port}", headers, user)


def proxy_for(url: str, environment: Mapping[str, str] | None = None) -> Proxy | None:
    """Returns the proxy for a URL; None for none. Raises :class:`InvalidProxy`."""
    environment = os.environ if environment is None else environment
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        return None
    text = _variable(environment, f"{parts.scheme}_proxy")
    if not text or (parts.scheme == "http" and environment.get("REQUEST_METHOD")):
        return None  # In CGI a client names HTTP_PROXY.
    host, port = parts.hostname or "", str(parts.port or _PORTS[parts.scheme])
    if not host or _is_direct(host, port, _variable(environment, "no_proxy")):
        return None
    return read_proxy(text)


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _shown(parts: SplitResult) -> str:
    """Returns a URL without its credentials, for logs."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _is_direct(host: str, port: str, no_proxy: str) -> bool:
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry, host, port, address) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, port: str, address: IPv4Address | IPv6Address | None) -> bool:
    """Whether an entry of NO_PROXY names a host."""
    from ipaddress import ip_network  # noqa: PLC0415  # few have such entries

    entry = entry.strip().lower()
    if not entry or entry == "*":
        return entry == "*"
    if "/" in entry:
        try:
            network = ip_network(entry, strict=False)
        except ValueError:
            network = None
        if network is not None:
            return address is not None and address in network
    name, expected_port = _split_port(entry)
    if not name or (expected_port and expected_port != port):
        return False
    if (address_named := _address(name)) is not None:
        return address_named == address
    if name.startswith((".", "*.")):
        return host.endswith(name.removeprefix("*"))
    return host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    """Splits an entry into host and port; an IPv6 address with a port is in brackets."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    name, colon, port = entry.partition(":")
    return (entry, "") if not colon or ":" in port else (name, port)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    if not host or not (host[-1].isdigit() or ":" in host):
        return None
    from ipaddress import IPv6Address, ip_address  # noqa: PLC0415  # most hosts are names

    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def grpc_options(host: str, port: int) -> list[tuple[str, int | str]]:
    """Returns options of a gRPC channel: gRPC reads the environment differently from Go.

    As in Go a channel uses ``HTTPS_PROXY``, with or without TLS. Raises :class:`InvalidProxy`.
    """
    named = f"[{host}]" if ":" in host else host
    proxy = proxy_for(f"https://{named}:{port}")
    if proxy is None:
        return [("grpc.enable_http_proxy", 0)]
    scheme, _, address = proxy.url.partition("://")
    if scheme == "https":
        raise InvalidProxy(f"{proxy.url}: {_PLAIN_ONLY}")
    user = f"{proxy.user}@" if proxy.user else ""
    return [("grpc.http_proxy", f"http://{user}{address}")]


class Route(NamedTuple):
    """A connection, the prefix of each request path on it, and the headers of each request."""

    connection: http.client.HTTPConnection
    prefix: str
    headers: Mapping[str, str]


def route(
    scheme: str,
    host: str,
    port: int | None,
    *,
    timeout: float,
    context: ssl.SSLContext | None = None,
) -> Route:
    """Returns a connection to a server, through the proxy of the environment if it sets one.

    ``context`` is for ``https``. Raises :class:`InvalidProxy`.
    """
    port = port or _PORTS[scheme]
    named = f"[{host}]" if ":" in host else host
    proxy = proxy_for(f"{scheme}://{named}:{port}")
    if proxy is None:
        if scheme == "https":
            direct = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
            return Route(direct, "", {})
        return Route(http.client.HTTPConnection(host, port, timeout=timeout), "", {})
    by = urlsplit(proxy.url)
    if by.scheme == "https":
        raise InvalidProxy(f"{proxy.url}: {_PLAIN_ONLY}")
    assert by.hostname is not None
    if scheme == "https":
        tunnel = http.client.HTTPSConnection(by.hostname, by.port, timeout=timeout, context=context)
        tunnel.set_tunnel(named, port, dict(proxy.headers))
        return Route(tunnel, "", {})
    connection = http.client.HTTPConnection(by.hostname, by.port, timeout=timeout)
    return Route(connection, f"http://{named}:{port}", proxy.headers)
