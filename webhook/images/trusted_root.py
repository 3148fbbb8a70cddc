"""The trusted root of Sigstore (``trusted_root.json``): trusted authorities, logs and clocks.

The operator provides the file. Nothing is fetched: the operator must renew a root that ends.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import math
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import DecodeError, decode
from webhook.images.chain import UntrustedCertificate, read_certificates
from webhook.images.signatures import InvalidPublicKey, PublicKey, key_id, read_public_key
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography import x509

ROOT_BYTES_MAX: Final = 1024 * 1024
"""The maximal size of a trusted root, in bytes; the root of Sigstore's public instance has 7 KiB.
"""

_ENTRIES_MAX: Final = 100
_CHAIN_MAX: Final = 10


class InvalidTrustedRoot(ValueError):
    """A trusted root that cannot be used; the message names the field."""


@dataclass(frozen=True, slots=True)
class Validity:
    """The first and last moment of trust, both included, in seconds since 1970."""

    start: float = -math.inf
    end: float = math.inf

    def holds(self, moment: float) -> bool:
        """Whether a moment lies within."""
        return self.start <= moment <= self.end


@dataclass(frozen=True, slots=True)
class TrustedLog:
    """A trusted log, by its key: of signatures (Rekor), or of certificates."""

    key: PublicKey
    validity: Validity


@dataclass(frozen=True, slots=True)
class TrustedAuthority:
    """A chain of certificates, from the signing certificate to the root."""

    chain: tuple[x509.Certificate, ...]
    validity: Validity


@dataclass(frozen=True, slots=True)
class TrustedRoot:
    """The trusted authorities and logs; logs are keyed by the identifier in log entries."""

    digest: str = ""
    logs: Mapping[bytes, TrustedLog] | None = None
    certificate_logs: Mapping[bytes, TrustedLog] | None = None
    authorities: tuple[TrustedAuthority, ...] = ()
    timestamp_authorities: tuple[TrustedAuthority, ...] = ()


def read_trusted_root(data: bytes) -> TrustedRoot:
    """Reads a trusted root; raises :class:`InvalidTrustedRoot`."""
    try:
        document = decode(data, max_bytes=ROOT_BYTES_MAX)
    except DecodeError as error:
        raise InvalidTrustedRoot(f"it is not JSON: {error}") from None
    if type(document) is not dict:
        raise InvalidTrustedRoot("it is not a JSON object")
    kind = document.get("mediaType")
    if not str(kind).startswith("application/vnd.dev.sigstore.trustedroot"):
        raise InvalidTrustedRoot(f"its mediaType is not a trusted root's: {kind!r}")
    return TrustedRoot(
        hashlib.sha256(data).hexdigest(),
        dict(_log(item, where) for item, where in _items(document, "tlogs")),
        dict(_log(item, where) for item, where in _items(document, "ctlogs")),
        tuple(_authority(item, at) for item, at in _items(document, "certificateAuthorities")),
        tuple(_authority(item, at) for item, at in _items(document, "timestampAuthorities")),
    )


def _items(document: Mapping[str, Any], name: str) -> list[tuple[dict[str, Any], str]]:
    values = document.get(name) or []
    if type(values) is not list or not all(type(item) is dict for item in values):
        raise InvalidTrustedRoot(f"{name} is not a list of objects")
    if len(values) > _ENTRIES_MAX:
        raise InvalidTrustedRoot(f"{name} has more than {_ENTRIES_MAX} entries")
    return [(item, f"{name}[{number}]") for number, item in enumerate(values)]


def _object(holder: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    value = holder.get(name)
    if type(value) is not dict:
        raise InvalidTrustedRoot(f"{where}.{name} is missing, or no object")
    return value


def _bytes(holder: Mapping[str, Any], name: str, where: str) -> bytes:
    try:
        return base64.b64decode(holder[name], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise InvalidTrustedRoot(f"{where}.{name} is missing, or no base64") from None


def _log(item: dict[str, Any], where: str) -> tuple[bytes, TrustedLog]:
    public = _object(item, "publicKey", where)
    try:
        key = read_public_key(_bytes(public, "rawBytes", f"{where}.publicKey"))
    except InvalidPublicKey as error:
        raise InvalidTrustedRoot(f"{where}.publicKey: {error}") from None
    name = _object(item, "logId", where) if "logId" in item else {}
    identifier = _bytes(name, "keyId", f"{where}.logId") if name else key_id(key)
    return identifier, TrustedLog(key, _validity(public, f"{where}.publicKey"))


def _authority(item: dict[str, Any], where: str) -> TrustedAuthority:
    certificates = [
        encoded for encoded, _ in _items(_object(item, "certChain", where), "certificates")
    ]
    if not 1 <= len(certificates) <= _CHAIN_MAX:
        raise InvalidTrustedRoot(f"{where}.certChain has no certificate, or more than {_CHAIN_MAX}")
    try:
        chain = tuple(
            read_certificates(_bytes(certificate, "rawBytes", f"{where}.certChain"))[0]
            for certificate in certificates
        )
    except UntrustedCertificate as error:
        raise InvalidTrustedRoot(f"{where}.certChain: {error}") from None
    return TrustedAuthority(chain, _validity(item, where))


def _validity(holder: dict[str, Any], where: str) -> Validity:
    span = holder.get("validFor") or {}
    if type(span) is not dict:
        raise InvalidTrustedRoot(f"{where}.validFor is not an object")
    try:
        start, end = (
            dt.datetime.fromisoformat(span[name]).timestamp() if name in span else otherwise
            for name, otherwise in (("start", -math.inf), ("end", math.inf))
        )
    except (TypeError, ValueError):
        raise InvalidTrustedRoot(f"{where}.validFor has no times of RFC 3339") from None
    return Validity(start, end)
