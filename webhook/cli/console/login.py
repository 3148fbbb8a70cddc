"""The login of a console, by its flags."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webhook.extras import install_command
from webhook.printable import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from webhook.console.login import Login


class InvalidLogin(Exception):
    """The flags do not allow any sign-in; the text has the reason."""


def login_of(  # noqa: PLR0913  # one for each flag
    *,
    over_cluster: bool,
    oidc_issuer_url: str | None,
    oidc_client_id: str | None,
    oidc_client_secret_file: Path | None,
    oidc_redirect_url: str | None,
    oidc_ca_file: Path | None,
    oidc_scopes: tuple[str, ...],
    oidc_username_claim: str,
    oidc_username_prefix: str,
    oidc_groups_claim: str,
    oidc_groups_prefix: str,
    cookie_key_file: Path | None,
    session_minutes: int,
) -> Login | None:
    """Returns the sign-in options; None without a provider. Raises :class:`InvalidLogin`."""
    given = {
        "--oidc-client-id": oidc_client_id,
        "--oidc-redirect-url": oidc_redirect_url,
        "--cookie-key-file": cookie_key_file,
    }
    if not _is_expected(oidc_issuer_url, given):
        return None
    assert oidc_issuer_url and oidc_client_id and oidc_redirect_url  # noqa: PT018  # as above
    assert cookie_key_file  # as above
    if not over_cluster:
        raise InvalidLogin(
            "--oidc-issuer-url needs a cluster, whose API server decides what users may read; "
            "remove it for files"
        )
    try:
        # Only for a console with sign-in: they import cryptography, authlib and aiohttp.
        from webhook.console.login import Login  # noqa: PLC0415
        from webhook.console.provider import ProviderOptions, is_safe_address  # noqa: PLC0415
        from webhook.console.sealing import InvalidKey, Sealer, read_key  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InvalidLogin(f"a login needs {error.name}: {install_command('oidc')}") from None
    _check_addresses(oidc_issuer_url, oidc_redirect_url, is_safe_address)
    try:
        key = read_key(cookie_key_file)
        secret = oidc_client_secret_file.read_text().strip() if oidc_client_secret_file else ""
        tls = ssl.create_default_context(cafile=oidc_ca_file or None)
    except (InvalidKey, OSError, ValueError) as error:
        place = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        raise InvalidLogin(f"{place}{reason_of(error)}") from None
    options = ProviderOptions(
        oidc_issuer_url,
        oidc_client_id,
        oidc_redirect_url,
        secret,
        tuple(dict.fromkeys(("openid", *oidc_scopes))),
        oidc_username_claim,
        oidc_username_prefix,
        oidc_groups_claim,
        oidc_groups_prefix,
        tls,
    )
    return Login(options, Sealer(key), session_minutes * 60)


def _is_expected(issuer: str | None, given: Mapping[str, object]) -> bool:
    """Returns whether there is a login; raises unless ``given`` has all its options or none."""
    if not issuer:
        named = [name for name, value in given.items() if value]
        if named:
            raise InvalidLogin(f"{named[0]} needs --oidc-issuer-url, which turns on the login")
        return False
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise InvalidLogin(f"--oidc-issuer-url also needs {', '.join(missing)}")
    return True


def _check_addresses(issuer: str, redirect: str, is_safe: Callable[[str], bool]) -> None:
    for name, url in (("--oidc-issuer-url", issuer), ("--oidc-redirect-url", redirect)):
        if not is_safe(url) or urlsplit(url).query or urlsplit(url).fragment:
            raise InvalidLogin(
                f"{name}: give an https:// address without a query (http:// is allowed on this "
                "machine)"
            )
    path = urlsplit(redirect).path
    if path in TAKEN or path.startswith("/static"):
        raise InvalidLogin(
            f"--oidc-redirect-url: the console uses the path {path!r} itself; give another one"
        )


TAKEN = frozenset(
    {
        *("", "/", "/policies", "/policy", "/violations", "/resource", "/decisions", "/rollouts"),
        *("/playground", "/health", "/events", "/healthz", "/readyz", "/login", "/logout"),
    }
)
"""Paths of pages."""
