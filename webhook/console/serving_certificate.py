"""Reads the webhook's serving certificate from a TLS handshake, as the API server sees it.

Reads no Secret. Address and authorities come from the webhook configuration, which the API server
uses too; the certificate comes from the handshake.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from webhook.api import timestamp
from webhook.api.gvk import name_of
from webhook.api.shapes import integer_of, object_of, objects_of
from webhook.certificates import pairs
from webhook.console.picture import ShownCertificate

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

HANDSHAKE_SECONDS: Final = 5.0


async def seen(configuration: Mapping[str, Any]) -> ShownCertificate | None:
    """Returns the certificate behind a webhook configuration; None if it has no address."""
    place = address_of(configuration)
    if place is None:
        return None
    host, port, bundle = place
    name = name_of(configuration)
    address = f"{host}:{port}"
    authority_ends = _latest(bundle)
    try:
        der = await _presented(host, port, None)
    except (OSError, TimeoutError) as error:
        why = f"{address} cannot be reached from this console: {_reason(error)}"
        return ShownCertificate(name, address, "", authority_ends, None, why)
    ends = _text(pairs.not_after(ssl.DER_cert_to_PEM_cert(der).encode()))
    try:
        await _presented(host, port, bundle)
    except (OSError, TimeoutError, ValueError) as error:
        return ShownCertificate(
            name, address, ends, authority_ends, is_trusted=False, why=_reason(error)
        )
    return ShownCertificate(name, address, ends, authority_ends, is_trusted=True)


def address_of(configuration: Mapping[str, Any]) -> tuple[str, int, bytes] | None:
    """Returns host, port and authorities (PEM) of the first webhook of a configuration."""
    for webhook in objects_of(configuration.get("webhooks")):
        client = object_of(webhook.get("clientConfig"))
        try:
            bundle = base64.b64decode(str(client.get("caBundle") or ""))
        except binascii.Error:
            bundle = b""
        service = object_of(client.get("service"))
        if service.get("name") and service.get("namespace"):
            host = f"{service['name']}.{service['namespace']}.svc"
            return host, integer_of(service.get("port")) or 443, bundle
        url = client.get("url")
        if isinstance(url, str):
            try:
                parts = urlsplit(url)
                if parts.hostname:
                    return parts.hostname, parts.port or 443, bundle
            except ValueError:
                continue
    return None


async def _presented(host: str, port: int, bundle: bytes | None) -> bytes:
    """Returns a server's certificate as DER; verifies it if a bundle is given. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if bundle is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        if not bundle.strip():
            raise ValueError("the configuration has no caBundle")
        context.load_verify_locations(cadata=bundle.decode("ascii", "replace"))
    async with asyncio.timeout(HANDSHAKE_SECONDS):
        _, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname=host, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
    try:
        shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    if shown is None:
        raise OSError("no certificate was presented")
    return shown


def _latest(bundle: bytes) -> str:
    """Returns the end of the latest authority; a rotation has two authorities."""
    ends = [pairs.not_after(pairs.BEGIN + part) for part in bundle.split(pairs.BEGIN)[1:]]
    return _text(max((one for one in ends if one is not None), default=None))


def _text(moment: dt.datetime | None) -> str:
    return "" if moment is None else timestamp.text_of(moment.timestamp())


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {HANDSHAKE_SECONDS:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the API server cannot trust it: {error.verify_message}"
    return str(error) or type(error).__name__
