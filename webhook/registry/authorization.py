"""Authorization at registries: challenges, and tokens of the token service."""

from __future__ import annotations

import re
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from webhook.api.encoding import DecodeError, decode
from webhook.registry.errors import RegistryRefused, UntrustedContent
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.registry.credentials import Credential

TOKEN_BYTES_MAX: Final = 256 << 10
"""The size of a token answer at most; tokens with many scopes have some KiB."""

TOKENS_MAX: Final = 1024
"""The number of repositories with kept tokens; beyond it the cache is cleared."""

_LIFETIME_SECONDS: Final = 60.0
"""The lifetime of a token without a stated one, by the specification."""

_LIFETIME_SECONDS_MAX: Final = 3600.0
_SPARE_SECONDS: Final = 5.0
_PARAMETER: Final = re.compile(r'([a-zA-Z]+)="([^"\\]{0,2048})"')
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_CLIENT_ID: Final = "waddle"


@dataclass(frozen=True, slots=True)
class Challenge:
    """The challenge of ``WWW-Authenticate``; ``realm`` is the address of the token service."""

    scheme: str
    realm: str = ""
    service: str = ""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request to a token service."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


def read_challenge(header: str, host: str, *, is_plain: bool) -> Challenge:
    """Reads the challenge of a registry.

    ``is_plain`` allows a token service without TLS, for a registry without TLS. Raises
    :class:`UntrustedContent`.
    """
    scheme, _, rest = header.strip()[:8192].partition(" ")
    if scheme.lower() == "basic":
        return Challenge("basic")
    if scheme.lower() != "bearer":
        raise UntrustedContent(f"{host} asks for {scheme[:40] or 'no'!r} authentication")
    parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
    realm = parameters.get("realm", "")
    parts = urlsplit(realm)
    if not parts.hostname or parts.scheme not in ({"http", "https"} if is_plain else {"https"}):
        raise UntrustedContent(
            f"{host} sends clients for tokens to {realm[:200]!r}, which is not an https URL"
        )
    return Challenge("bearer", realm, parameters.get("service", ""))


def scope_of(repository: str, *, pushes: bool) -> str:
    """Returns the scope to request, regardless of the challenge."""
    return f"repository:{repository}:{'pull,push' if pushes else 'pull'}"


def token_request(challenge: Challenge, scope: str, credential: Credential | None) -> TokenRequest:
    """Returns the request that answers a challenge, for these rights."""
    parameters = {"service": challenge.service, "scope": scope}
    if credential is not None and credential.identity_token:
        form = {
            **parameters,
            "grant_type": "refresh_token",
            "refresh_token": credential.identity_token,
            "client_id": _CLIENT_ID,
        }
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return TokenRequest("POST", challenge.realm, content_type, urlencode(form).encode())
    query = urlencode({name: value for name, value in parameters.items() if value})
    joint = "&" if urlsplit(challenge.realm).query else "?"
    headers = {} if credential is None else {"Authorization": credential.basic()}
    return TokenRequest("GET", f"{challenge.realm}{joint}{query}", headers)


def read_token(status: int, content: bytes, realm: str) -> tuple[str, float]:
    """Returns a token and its lifetime in seconds; raises ``RegistryError``."""
    service = urlsplit(realm).netloc
    if status >= 400:
        raise RegistryRefused(f"{service} gave no token: HTTP status {status}", status)
    try:
        document = decode(content)
    except DecodeError:
        document = None
    answer: dict[str, Any] = document if isinstance(document, dict) else {}
    token = answer.get("token") or answer.get("access_token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise UntrustedContent(f"{service} answered without a token that can be sent")
    seconds = answer.get("expires_in")
    lifetime = float(seconds) if type(seconds) is int and seconds > 0 else _LIFETIME_SECONDS
    return token, min(lifetime, _LIFETIME_SECONDS_MAX)


class TokenCache:
    """Authorization headers that registries accepted, by host and scope, until they expire."""

    def __init__(self) -> None:
        self._headers: dict[tuple[str, str], tuple[str, float]] = {}

    def get(self, host: str, scope: str) -> str | None:
        """Returns a valid header, or None."""
        header, until = self._headers.get((host, scope), ("", 0.0))
        return header if header and time.monotonic() < until else None

    def keep(self, host: str, scope: str, header: str, seconds: float) -> None:
        """Keeps a header until five seconds before its end."""
        if len(self._headers) >= TOKENS_MAX:
            self._headers.clear()
        until = time.monotonic() + max(seconds - _SPARE_SECONDS, 0.0)
        self._headers[host, scope] = header, until

    def drop(self, host: str, scope: str) -> None:
        """Removes a header that was refused."""
        self._headers.pop((host, scope), None)
