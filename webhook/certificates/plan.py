"""Plans the content of the Secret with the serving certificate, without a leader.

Every replica computes the same plan from the Secret, the webhook configuration and the time. The
first to write by compare-and-swap wins, and the rest find no difference. The Secret holds
Gatekeeper's keys, so that its own tools read it (cert-controller, pkg/rotator), and two of ours
while an authority is replaced:

``ca.crt``, ``ca.key``    the authority that signed the serving pair; ``ca.crt``
                          also has earlier authorities that have not ended
``tls.crt``, ``tls.key``  the serving pair
``next-ca.crt`` …         the authority to come, until the API server trusts it

An authority is replaced in two steps, so that no replica ever serves a pair that the API server
does not trust. First the new authority is only trusted, together with the old one. The serving pair
changes once the webhook configuration has held the new authority for long enough that every API
server has read it. A new serving pair of the same authority needs no such care.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webhook.certificates.pairs import BACKDATED, CERTIFICATE, KEY
from webhook.certificates.reading import (
    CA_CERTIFICATE,
    CA_KEY,
    NEXT_CA_CERTIFICATE,
    NEXT_CA_KEY,
    USAGES,
    Authority,
    ServingPair,
    authority_of,
    known_authorities,
    pem_of,
    read_bundle,
    read_certificates,
    read_secret,
)
from webhook.values import dataclass

# cert-controller's own validity and lookahead.
CA_DAYS: Final = 10 * 365
SERVING_DAYS: Final = 365
LOOKAHEAD_DAYS: Final = 90

TRUST_SECONDS: Final = 60.0
"""How long a new authority is trusted before it signs the serving pair. API servers watch webhook
configurations and follow within a second or two; a minute is for a slow one."""

STANDS: Final = dt.timedelta(hours=24)
"""How long a new authority is in the Secret for providers before it signs. A kubelet projects a
Secret within minutes. Providers that read it only at start must be restarted within a day."""

SecretData = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class CertificatePlace:
    """The Secret and the configurations of the certificate, and its DNS names."""

    namespace: str
    secret: str
    configuration: str
    names: tuple[str, ...]
    mutating_configuration: str = ""
    """The name of a MutatingWebhookConfiguration; empty without mutation."""
    provider_secret: tuple[str, str] | None = None
    """Namespace and name of the Secret with our authorities for providers of external data."""
    validates: bool = True
    """Whether requests are validated: a missing ``configuration`` is a fault then."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The lifetimes of certificates; tests that rotate in seconds change them."""

    authority: dt.timedelta = dt.timedelta(days=CA_DAYS)
    serving: dt.timedelta = dt.timedelta(days=SERVING_DAYS)
    lookahead: dt.timedelta = dt.timedelta(days=LOOKAHEAD_DAYS)
    trust_seconds: float = TRUST_SECONDS
    stands: dt.timedelta = dt.timedelta(0)
    """The age of an authority before it signs, for clients that copy it in their own time."""


@dataclass(frozen=True, slots=True)
class CertificatePlan:
    """The Secret and bundle to write, and the reason; ``secret`` is None if the Secret is right."""

    secret: SecretData | None
    reason: str
    bundle: bytes
    """The authorities that the webhook configuration must hold."""


def plan(
    secret: Mapping[str, bytes],
    names: Sequence[str],
    now: dt.datetime,
    *,
    trusted_seconds: float,
    lifetimes: Lifetimes = Lifetimes(),
) -> CertificatePlan:
    """Plan the Secret and the bundle as they should be.

    ``trusted_seconds`` is for how long the webhook configuration has been seen
    to hold ``next-ca.crt``; 0 if it does not.
    """
    reading = read_secret(secret)
    authority = _in_force(reading.authority, now)
    if authority is None:
        data, reason = _anew(names, now, lifetimes), "there is no authority that can be used"
        return CertificatePlan(data, reason, bundle(data, now))
    coming = _in_force(reading.coming, now)
    is_trusted_now = trusted_seconds >= lifetimes.trust_seconds
    if coming is not None and is_trusted_now and _has_stood(coming, authority, now, lifetimes):
        data = _promoted(secret, coming, names, now, lifetimes)
        return CertificatePlan(data, "the new authority is trusted", bundle(data, now))
    if not _serves(reading.serving, authority, names, now, lifetimes):
        data = dict(secret) | _serving_pair(authority, names, now, lifetimes)
        reason = "the serving certificate ends soon, or is not for these names and uses"
        return CertificatePlan(data, reason, bundle(data, now))
    if coming is None and authority.ends - now <= lifetimes.lookahead:
        data = dict(secret) | _authority_data(
            _make_authority(now, lifetimes), NEXT_CA_CERTIFICATE, NEXT_CA_KEY
        )
        return CertificatePlan(data, "the authority ends soon", bundle(data, now))
    return CertificatePlan(None, "", bundle(secret, now))


def bundle(secret: Mapping[str, bytes], now: dt.datetime) -> bytes:
    """Returns every authority that may have signed a pair served by some replica, now or soon."""
    return b"".join(item.pem for item in known_authorities(secret) if item.ends > now)


def is_trusted(held: bytes, secret: Mapping[str, bytes], now: dt.datetime) -> bool:
    """Whether a bundle holds every necessary authority, and none that is not in the Secret.

    An expired authority may stay until the bundle changes for another reason. It vouches for
    nothing, and replicas with different clocks would undo each other's writes.
    """
    certificates = read_bundle(held)
    known = known_authorities(secret)
    needed = [item for item in known if item.ends > now]
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
    coming: Authority,
    names: Sequence[str],
    now: dt.datetime,
    lifetimes: Lifetimes,
) -> SecretData:
    """Puts the new authority in force; the old one stays trusted until it expires.

    Its key is deleted, but a replica that has not read the new pair yet still serves the old one.
    """
    data = _authority_data(coming, CA_CERTIFICATE, CA_KEY)
    earlier = [
        item
        for item in read_certificates(secret[CA_CERTIFICATE])
        if item.not_valid_after_utc > now and item != coming.certificate
    ]
    data[CA_CERTIFICATE] += b"".join(pem_of(item) for item in earlier)
    return data | _serving_pair(coming, names, now, lifetimes)


def _in_force(authority: Authority | None, now: dt.datetime) -> Authority | None:
    """Returns the authority if it has begun and not ended."""
    if authority is None or not authority.begins <= now < authority.ends:
        return None
    return authority


def _has_stood(
    coming: Authority, authority: Authority, now: dt.datetime, lifetimes: Lifetimes
) -> bool:
    """Whether an authority has existed for long enough to be copied.

    At most half of the remaining time of the authority in force is waited for.
    """
    made_at = coming.begins + BACKDATED
    return now - made_at >= min(lifetimes.stands, (authority.ends - made_at) / 2)


def _serves(
    serving: ServingPair | None,
    authority: Authority,
    names: Sequence[str],
    now: dt.datetime,
    lifetimes: Lifetimes,
) -> bool:
    """Whether the authority's pair is for these names, and not about to end."""
    if serving is None or not serving.names.issuperset(names):
        return False
    # Otherwise every pair of a short-lived authority would seem about to end.
    ends = min(serving.ends, authority.ends)
    lookahead = min(lifetimes.lookahead, lifetimes.serving / 4)
    return serving.begins <= now and (ends - now > lookahead or ends == authority.ends > now)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _authority_data(authority: Authority, certificate: str, key: str) -> SecretData:
    return {certificate: pem_of(authority.certificate), key: _key_pem(authority.key)}


def _make_authority(now: dt.datetime, lifetimes: Lifetimes) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number in the name distinguishes authorities: a chain is looked up by name.
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
    return authority_of(certificate, key)


def _serving_pair(
    authority: Authority, names: Sequence[str], now: dt.datetime, lifetimes: Lifetimes
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
        .add_extension(x509.ExtendedKeyUsage(USAGES), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return {CERTIFICATE: pem_of(certificate), KEY: _key_pem(key)}


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
