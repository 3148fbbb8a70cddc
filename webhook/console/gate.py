"""Refuses requests that a page of another site makes through a visitor's browser."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer own forms lack an origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response. No inline script or style takes effect, whatever a policy contains."""

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Paths open under any host, as the kubelet uses the Pod's address."""


def refusal(
    method: str, path: str, headers: Mapping[str, str], hosts: Collection[str]
) -> tuple[int, str] | None:
    """Returns the status code and reason for a refused request; None for an accepted one.

    An unknown host name may be an attacker's that resolves to this console: its pages would share
    the origin (DNS rebinding). A POST is costly even if it changes nothing, so it must come from
    this console's own pages.
    """
    if path in PROBES:
        return None
    host = headers.get("host", "")
    if host_name(host) not in hosts:
        return 421, f"this console does not answer as {host_name(host)!r:.100}; see --allow-host"
    if method == "POST":
        origin = headers.get("origin")
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} or (
            origin is not None and urlsplit(origin).netloc != host
        ):
            return 403, "the form comes from another site"
    return None


def host_name(host: str) -> str:
    """Returns a Host header without its port, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
