"""Signed timestamps (RFC 3161): proof by a trusted clock that bytes existed at a time."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from webhook.images.chain import UntrustedCertificate, build_chain, is_authority, read_certificates
from webhook.images.signatures import InvalidPublicKey, PublicKey, key_of
from webhook.rego.builtins.keys import der
from webhook.rego.errors import BuiltinError

if TYPE_CHECKING:
    from cryptography import x509

    from webhook.images.trusted_root import TrustedAuthority

TIMESTAMP_BYTES_MAX: Final = 64 * 1024
"""The size of a timestamp at most; with the authority's certificates it has 2 to 6 KiB."""

_CERTIFICATES_MAX: Final = 8

_SIGNED_DATA: Final = bytes.fromhex("2a864886f70d010702")
_TST_INFO: Final = bytes.fromhex("2a864886f70d0109100104")
_MESSAGE_DIGEST: Final = bytes.fromhex("2a864886f70d010904")
_CONTENT_TYPE: Final = bytes.fromhex("2a864886f70d010903")
_HASHES: Final = {
    bytes.fromhex("608648016503040201"): "sha256",
    bytes.fromhex("608648016503040202"): "sha384",
    bytes.fromhex("608648016503040203"): "sha512",
}
_ALGORITHMS: Final = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
_EXPLICIT: Final = der.context(0, constructed=True)
_REVOCATIONS: Final = der.context(1, constructed=True)

_UNREADABLE: Final = "a signed timestamp cannot be read"


class UntrustedTimestamp(ValueError):
    """A timestamp that proves no time; the message says why."""


def check_timestamp(
    token: bytes, signed: bytes, authorities: tuple[TrustedAuthority, ...]
) -> float:
    """Returns the time of a timestamp over some bytes; raises :class:`UntrustedTimestamp`.

    ``token`` is a response (TimeStampResp) or its token alone.
    """
    if len(token) > TIMESTAMP_BYTES_MAX:
        raise UntrustedTimestamp(f"a signed timestamp is larger than {TIMESTAMP_BYTES_MAX} bytes")
    try:
        return _checked(token, signed, authorities)
    except BuiltinError as error:
        raise UntrustedTimestamp(str(error)) from None


def _checked(token: bytes, signed: bytes, authorities: tuple[TrustedAuthority, ...]) -> float:
    """Checks SignedData of CMS (RFC 5652, section 5.1) with a TSTInfo (RFC 3161, section 2.4.2)."""
    data = _signed_data(token)
    data.integer(_UNREADABLE)
    data.read(der.SET, _UNREADABLE)
    encapsulated = data.enter(der.SEQUENCE, _UNREADABLE)
    if encapsulated.read(der.OBJECT_IDENTIFIER, _UNREADABLE) != _TST_INFO:
        raise UntrustedTimestamp("a signed timestamp holds something else than a time")
    info = encapsulated.enter(_EXPLICIT, _UNREADABLE).read(der.OCTET_STRING, _UNREADABLE)
    moment = _time_of(info, signed)
    certificates = _certificates(data.optional(_EXPLICIT, _UNREADABLE))
    data.optional(_REVOCATIONS, _UNREADABLE)
    signers = data.enter(der.SET, _UNREADABLE)
    _check_signer(signers.enter(der.SEQUENCE, _UNREADABLE), info, certificates, authorities, moment)
    return moment


def _signed_data(token: bytes) -> der.Reader:
    outer = der.Reader(token).enter(der.SEQUENCE, _UNREADABLE)
    if outer.peek(der.SEQUENCE):  # a response: its status, then the token
        if outer.enter(der.SEQUENCE, _UNREADABLE).integer(_UNREADABLE) not in {0, 1}:
            raise UntrustedTimestamp("the time stamping authority has refused it")
        outer = outer.enter(der.SEQUENCE, _UNREADABLE)
    if outer.read(der.OBJECT_IDENTIFIER, _UNREADABLE) != _SIGNED_DATA:
        raise UntrustedTimestamp("a signed timestamp is not a SignedData of CMS")
    return outer.enter(_EXPLICIT, _UNREADABLE).enter(der.SEQUENCE, _UNREADABLE)


def _time_of(info: bytes, signed: bytes) -> float:
    """Returns the time of a TSTInfo; raises if its imprint is of other bytes."""
    reader = der.Reader(info).enter(der.SEQUENCE, _UNREADABLE)
    if reader.integer(_UNREADABLE) != 1:
        raise UntrustedTimestamp("a signed timestamp is of a version that is not known")
    reader.read(der.OBJECT_IDENTIFIER, _UNREADABLE)
    imprint = reader.enter(der.SEQUENCE, _UNREADABLE)
    algorithm = _algorithm(imprint)
    if imprint.read(der.OCTET_STRING, _UNREADABLE) != hashlib.new(algorithm, signed).digest():
        raise UntrustedTimestamp("a signed timestamp is for another signature")
    reader.integer(_UNREADABLE)
    text = reader.read(der.GENERALIZED_TIME, _UNREADABLE).decode("ascii", "replace")
    whole, _, fraction = text.removesuffix("Z").partition(".")
    try:
        parsed = dt.datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
    except ValueError:
        raise UntrustedTimestamp(_UNREADABLE) from None
    return parsed.timestamp() + (float(f"0.{fraction}") if fraction.isdecimal() else 0.0)


def _algorithm(reader: der.Reader) -> str:
    """Reads the next algorithm identifier; returns the name of the hash."""
    oid = reader.enter(der.SEQUENCE, _UNREADABLE).read(der.OBJECT_IDENTIFIER, _UNREADABLE)
    if oid not in _HASHES:
        raise UntrustedTimestamp("a signed timestamp has a hash that is not of SHA-2")
    return _HASHES[oid]


def _certificates(reader: der.Reader | None) -> list[x509.Certificate]:
    certificates: list[x509.Certificate] = []
    while reader:
        if len(certificates) == _CERTIFICATES_MAX:
            raise UntrustedTimestamp(
                f"a signed timestamp has more than {_CERTIFICATES_MAX} certificates"
            )
        try:
            certificates += read_certificates(reader.element(der.SEQUENCE, _UNREADABLE))
        except UntrustedCertificate as error:
            raise UntrustedTimestamp(f"a signed timestamp's certificate: {error}") from None
    return certificates


def _check_signer(
    signer: der.Reader,
    info: bytes,
    certificates: list[x509.Certificate],
    authorities: tuple[TrustedAuthority, ...],
    moment: float,
) -> None:
    """Raises unless a trusted authority has signed (RFC 5652, section 5.4)."""
    signer.integer(_UNREADABLE)
    _, _, identifier = signer.any(_UNREADABLE)
    algorithm = _algorithm(signer)
    attributes = signer.element(_EXPLICIT, _UNREADABLE)
    _check_attributes(attributes, algorithm, info)
    signer.any(_UNREADABLE)
    sealed = signer.read(der.OCTET_STRING, _UNREADABLE)
    message = bytes([der.SET]) + attributes[1:]
    why = "no time stamping authority is in the trusted root"
    for authority in authorities:
        leaf = _signing_certificate(authority, certificates, identifier)
        if leaf is None or not authority.validity.holds(moment):
            why = "a signed timestamp is by no authority of the trusted root"
            continue
        try:
            between = [*authority.chain[:-1], *certificates]
            usage = ExtendedKeyUsageOID.TIME_STAMPING
            build_chain(leaf, between, authority.chain[-1:], moment, usage=usage)
            if _is_sealed(key_of(leaf), sealed, message, algorithm):
                return
            why = "a signed timestamp's signature is not its authority's"
        except (UntrustedCertificate, InvalidPublicKey) as error:
            why = f"a signed timestamp's certificate: {error}"
    raise UntrustedTimestamp(why)


def _check_attributes(attributes: bytes, algorithm: str, info: bytes) -> None:
    """Raises unless the signed attributes are of this TSTInfo."""
    reader = der.Reader(attributes).enter(_EXPLICIT, _UNREADABLE)
    named = {}
    while reader:
        attribute = reader.enter(der.SEQUENCE, _UNREADABLE)
        oid = attribute.read(der.OBJECT_IDENTIFIER, _UNREADABLE)
        named[oid] = attribute.read(der.SET, _UNREADABLE)
    kind, digest = (der.Reader(named.get(oid, b"")) for oid in (_CONTENT_TYPE, _MESSAGE_DIGEST))
    if kind.read(der.OBJECT_IDENTIFIER, _UNREADABLE) != _TST_INFO:
        raise UntrustedTimestamp("a signed timestamp signs something else than a time")
    if digest.read(der.OCTET_STRING, _UNREADABLE) != hashlib.new(algorithm, info).digest():
        raise UntrustedTimestamp("a signed timestamp's digest is of another time")


def _is_sealed(key: PublicKey, signature: bytes, message: bytes, name: str) -> bool:
    """Whether a signature was made with the key and the hash that the signer names."""
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), _ALGORITHMS[name])
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(_ALGORITHMS[name]))
        else:
            key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _signing_certificate(
    authority: TrustedAuthority, certificates: list[x509.Certificate], identifier: bytes
) -> x509.Certificate | None:
    """Returns the certificate that a signer names by issuer and serial number.

    It is the first of the authority's chain. If that is a CA certificate, the signer's certificate
    is in the timestamp.
    """
    reader = der.Reader(identifier)
    if not reader.peek(der.SEQUENCE) or not authority.chain:
        return None  # identified by its key identifier: no authority of Sigstore does so
    reader = reader.enter(der.SEQUENCE, _UNREADABLE)
    name, serial = reader.element(der.SEQUENCE, _UNREADABLE), reader.integer(_UNREADABLE)
    first = authority.chain[0]
    for certificate in certificates if is_authority(first) else [first]:
        if name == certificate.issuer.public_bytes() and serial == certificate.serial_number:
            return certificate
    return None
