"""The serving certificate in its Secret: what should stand there now, decided without a leader.

Every replica computes the same plan from the Secret, the webhook configuration
and the time; whoever writes first by compare-and-swap wins, and the rest find
that nothing differs. The Secret holds Gatekeeper's keys, so that its own tools
read it (cert-controller, pkg/rotator), and two of ours while an authority is
replaced:

``ca.crt``, ``ca.key``    the authority that signed the serving pair; ``ca.crt``
                          goes on with earlier authorities that have not ended
``tls.crt``, ``tls.key``  the serving pair
``next-ca.crt`` …         the authority to come, until the API server trusts it

An authority is replaced in two steps, so that at no moment a replica serves
what the API server does not trust: first the new one is only trusted, together
with the old; the serving pair changes when the webhook configuration has held
the new one for long enough that every API server has read it. A new serving
pair of the same authority needs no such care.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.certificates.pairs import CERTIFICATE, KEY
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USAGES: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
"""A provider of external data asks whoever calls it for a certificate: it is this one."""

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
NEXT_CA_CERTIFICATE: Final = "next-ca.crt"
NEXT_CA_KEY: Final = "next-ca.key"

# cert-controller's own validity and lookahead.
CA_DAYS: Final = 10 * 365
SERVING_DAYS: Final = 365
LOOKAHEAD_DAYS: Final = 90
BACKDATED: Final = dt.timedelta(hours=1)

TRUST_SECONDS: Final = 60.0
"""How long a new authority is trusted before it signs what is served: API servers watch webhook
configurations and follow within a second or two; a minute is for one that is slow."""

SecretData = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates live, for tests that rotate in seconds."""

    authority: dt.timedelta = dt.timedelta(days=CA_DAYS)
    serving: dt.timedelta = dt.timedelta(days=SERVING_DAYS)
    lookahead: dt.timedelta = dt.timedelta(days=LOOKAHEAD_DAYS)
    trust_seconds: float = TRUST_SECONDS


@dataclass(frozen=True, slots=True)
class CertificatePlan:
    """What to write, and why; ``secret`` is None where the Secret is right."""

    secret: SecretData | None
    reason: str
    bundle: bytes
    """The authorities that the webhook configuration must hold."""


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def plan(
    secret: Mapping[str, bytes],
    names: Sequence[str],
    now: dt.datetime,
    *,
    trusted_seconds: float,
    lifetimes: Lifetimes = Lifetimes(),
) -> CertificatePlan:
    """What the Secret and the bundle should be.

    ``trusted_seconds`` is for how long the webhook configuration has been seen
    to hold ``next-ca.crt``; 0 if it does not.
    """
    authority = _read_authority(secret, CA_CERTIFICATE, CA_KEY, now)
    if authority is None:
        data, reason = _anew(names, now, lifetimes), "there is no authority that can be used"
        return CertificatePlan(data, reason, bundle(data, now))
    coming = _read_authority(secret, NEXT_CA_CERTIFICATE, NEXT_CA_KEY, now)
    if coming is not None and trusted_seconds >= lifetimes.trust_seconds:
        data = _promoted(secret, coming, names, now, lifetimes)
        return CertificatePlan(data, "the new authority is trusted", bundle(data, now))
    if not _serves(secret, authority, names, now, lifetimes):
        data = dict(secret) | _serving_pair(authority, names, now, lifetimes)
        reason = "the serving certificate ends soon, or is not for these names and uses"
        return CertificatePlan(data, reason, bundle(data, now))
    ends = authority.certificate.not_valid_after_utc
    if coming is None and ends - now <= lifetimes.lookahead:
        data = dict(secret) | _authority_data(
            _make_authority(now, lifetimes), NEXT_CA_CERTIFICATE, NEXT_CA_KEY
        )
        return CertificatePlan(data, "the authority ends soon", bundle(data, now))
    return CertificatePlan(None, "", bundle(secret, now))


def bundle(secret: Mapping[str, bytes], now: dt.datetime) -> bytes:
    """Every authority that may have signed what some replica serves, now or soon."""
    certificates = _certificates(secret.get(CA_CERTIFICATE, b""))
    certificates += _certificates(secret.get(NEXT_CA_CERTIFICATE, b""))
    return b"".join(_pem(item) for item in certificates if item.not_valid_after_utc > now)


def is_trusted(held: bytes, secret: Mapping[str, bytes], now: dt.datetime) -> bool:
    """Whether a bundle holds every authority it must, and none that the Secret does not name.

    One that has ended may stay until the bundle changes for another reason: it
    vouches for nothing, and replicas whose clocks differ would quarrel about it.
    """
    certificates = _certificates(held)
    known = _certificates(secret.get(CA_CERTIFICATE, b""))
    known += _certificates(secret.get(NEXT_CA_CERTIFICATE, b""))
    needed = [item for item in known if item.not_valid_after_utc > now]
    return (
        bool(needed)
        and all(item in certificates for item in needed)
        and set(certificates) <= set(known)
    )


def _anew(names: Sequence[str], now: dt.datetime, lifetimes: Lifetimes) -> SecretData:
    authority = _make_authority(now, lifetimes)
    data = _authority_data(authority, CA_CERTIFICATE, CA_KEY)
    return data | _serving_pair(authority, names, now, lifetimes)


def _promoted(
    secret: Mapping[str, bytes],
    coming: _Authority,
    names: Sequence[str],
    now: dt.datetime,
    lifetimes: Lifetimes,
) -> SecretData:
    """The new authority in force; the old one is trusted on until it ends.

    Nobody has its key any more, and a replica that has not read the new pair yet
    still serves the old one.
    """
    data = _authority_data(coming, CA_CERTIFICATE, CA_KEY)
    earlier = [
        item
        for item in _certificates(secret[CA_CERTIFICATE])
        if item.not_valid_after_utc > now and item != coming.certificate
    ]
    data[CA_CERTIFICATE] += b"".join(_pem(item) for item in earlier)
    return data | _serving_pair(coming, names, now, lifetimes)


def _serves(
    secret: Mapping[str, bytes],
    authority: _Authority,
    names: Sequence[str],
    now: dt.datetime,
    lifetimes: Lifetimes,
) -> bool:
    """Whether the serving pair is good, of this authority, for these names, and not about to end."""
    certificates = _certificates(secret.get(CERTIFICATE, b""))
    key = _private_key(secret.get(KEY, b""))
    if not certificates or key is None or not _fits(certificates[0], key):
        return False
    serving = certificates[0]
    try:
        serving.verify_directly_issued_by(authority.certificate)
        alternative = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        usages = serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return False
    if not set(names) <= set(alternative.value.get_values_for_type(x509.DNSName)):
        return False
    if not set(_USAGES) <= set(usages.value):
        return False
    # A short-lived authority must not make every pair of its own look ended.
    ends = min(serving.not_valid_after_utc, authority.certificate.not_valid_after_utc)
    lookahead = min(lifetimes.lookahead, lifetimes.serving / 4)
    return serving.not_valid_before_utc <= now and (
        ends - now > lookahead or ends == authority.certificate.not_valid_after_utc > now
    )


def _read_authority(
    secret: Mapping[str, bytes], certificate: str, key: str, now: dt.datetime
) -> _Authority | None:
    certificates = _certificates(secret.get(certificate, b""))
    private = _private_key(secret.get(key, b""))
    if not certificates or private is None or not _fits(certificates[0], private):
        return None
    if not certificates[0].not_valid_before_utc <= now < certificates[0].not_valid_after_utc:
        return None
    return _Authority(certificates[0], private)


def _fits(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    """Whether the certificate is this key's; one of a key that cannot be read is not."""
    try:
        return certificate.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    """An ECDSA key; a Secret with any other was made by another program and is made anew."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _authority_data(authority: _Authority, certificate: str, key: str) -> SecretData:
    return {certificate: _pem(authority.certificate), key: _key_pem(authority.key)}


def _make_authority(now: dt.datetime, lifetimes: Lifetimes) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number in the name tells authorities of one name apart: a chain is sought by it.
    serial = x509.random_serial_number()
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "waddle-ca"),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"{serial:x}"),
        ]
    )
    usage = _usage(signs_certificates=True)
    certificate = (
        _builder(subject, subject, key, serial, now, lifetimes.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _serving_pair(
    authority: _Authority, names: Sequence[str], now: dt.datetime, lifetimes: Lifetimes
) -> SecretData:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    issuer = authority.certificate.subject
    alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    serial = x509.random_serial_number()
    certificate = (
        _builder(subject, issuer, key, serial, now, lifetimes.serving)
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_USAGES), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return {CERTIFICATE: _pem(certificate), KEY: _key_pem(key)}


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    serial: int,
    now: dt.datetime,
    lifetime: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
