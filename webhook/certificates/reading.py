"""Reads the Secret's bytes, independent of the time: the authorities, and the serving pair.

The plan is made twice a minute and with each change, of a Secret that changes once in months. So
results are cached by content: keys and certificates are parsed, and the signature is verified, once
for each Secret.
"""

from __future__ import annotations

import base64
import binascii
import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from webhook.certificates.pairs import CERTIFICATE, KEY
from webhook.values import dataclass

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
NEXT_CA_CERTIFICATE: Final = "next-ca.crt"
NEXT_CA_KEY: Final = "next-ca.key"

USAGES: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
"""A provider of external data may require a client certificate, for which this one is used."""

_READ: Final = (CA_CERTIFICATE, CA_KEY, NEXT_CA_CERTIFICATE, NEXT_CA_KEY, CERTIFICATE, KEY)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    begins: dt.datetime
    ends: dt.datetime


class DatedCertificate(NamedTuple):
    """A certificate as a bundle holds it, and when it ends."""

    ends: dt.datetime
    pem: bytes


@dataclass(frozen=True, slots=True)
class ServingPair:
    """A certificate with its key, signed by the authority for servers and clients."""

    begins: dt.datetime
    ends: dt.datetime
    names: frozenset[str]
    """The DNS names in the certificate."""


@dataclass(frozen=True, slots=True)
class SecretReading:
    """The content of a Secret; None for missing, unsuitable or unreadable parts."""

    authority: Authority | None
    coming: Authority | None
    """The authority to come."""
    serving: ServingPair | None


def secret_data(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """Decodes the data of a Secret."""
    return {name: decoded(value) for name, value in (secret.get("data") or {}).items()}


def decoded(text: str | None) -> bytes:
    """Decodes base64; empty for invalid text, so that the entry is made anew."""
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def known_authorities(secret: Mapping[str, bytes]) -> tuple[DatedCertificate, ...]:
    """Returns every authority in the Secret: the current one, earlier ones, and the next one."""
    return _known(secret.get(CA_CERTIFICATE, b""), secret.get(NEXT_CA_CERTIFICATE, b""))


@functools.lru_cache(maxsize=2)
def _known(certificates: bytes, coming: bytes) -> tuple[DatedCertificate, ...]:
    return read_bundle(certificates) + read_bundle(coming)


def read_secret(secret: Mapping[str, bytes]) -> SecretReading:
    """Reads the authorities and the pair from the Secret's data."""
    return _read(*[secret.get(name, b"") for name in _READ])


# The current Secret and the one before it: both are read while replicas swap them. No key is kept
# for longer.
@functools.lru_cache(maxsize=2)
def _read(
    ca_certificate: bytes,
    ca_key: bytes,
    next_ca_certificate: bytes,
    next_ca_key: bytes,
    certificate: bytes,
    key: bytes,
) -> SecretReading:
    authority = _authority(ca_certificate, ca_key)
    return SecretReading(
        authority,
        _authority(next_ca_certificate, next_ca_key),
        None if authority is None else _serving(authority, certificate, key),
    )


@functools.lru_cache(maxsize=8)  # the Secret's authorities, and the bundles of webhooks
def read_bundle(pem: bytes) -> tuple[DatedCertificate, ...]:
    """Returns the certificates in a text; empty if one of them cannot be read."""
    return tuple(
        DatedCertificate(item.not_valid_after_utc, pem_of(item)) for item in read_certificates(pem)
    )


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """Parses the certificates in a text; empty if one of them cannot be read."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def pem_of(certificate: x509.Certificate) -> bytes:
    """Returns the certificate as Secrets and bundles hold it."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def authority_of(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Authority:
    """Returns an authority of a certificate and its key."""
    return Authority(
        certificate, key, certificate.not_valid_before_utc, certificate.not_valid_after_utc
    )


def _authority(certificate: bytes, key: bytes) -> Authority | None:
    pair = _pair(certificate, key)
    return None if pair is None else authority_of(*pair)


def _serving(authority: Authority, certificate: bytes, key: bytes) -> ServingPair | None:
    pair = _pair(certificate, key)
    if pair is None:
        return None
    serving, _ = pair
    try:
        serving.verify_directly_issued_by(authority.certificate)
        alternative = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        usages = serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return None
    if not set(USAGES) <= set(usages.value):
        return None
    return ServingPair(
        serving.not_valid_before_utc,
        serving.not_valid_after_utc,
        frozenset(alternative.value.get_values_for_type(x509.DNSName)),
    )


def _pair(
    certificate: bytes, key: bytes
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
    """Returns the first certificate and the key, if they fit."""
    certificates = read_certificates(certificate)
    private = _private_key(key)
    if not certificates or private is None or not _fits(certificates[0], private):
        return None
    return certificates[0], private


def _fits(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    """Whether the certificate is for this key; false if its key cannot be read."""
    try:
        return certificate.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    """Reads an ECDSA key; None for any other, which another program made and which is replaced."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None
