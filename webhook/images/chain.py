"""Certificates of signers: the chain to a trusted authority, and their identities."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from webhook.values import dataclass

DEPTH_MAX: Final = 8
"""The number of certificates between a signer's and the root at most; Fulcio has one."""

_ISSUER: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_ISSUER_AS_BYTES: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_OTHER_NAME: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.7")
"""Extensions of Fulcio's certificates (from its list of object identifiers)."""

_UTF8_STRING: Final = 0x0C


UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""The exceptions of ``cryptography`` for invalid certificates; not all are subclasses of
ValueError."""


class UntrustedCertificate(ValueError):
    """A certificate that is not trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class SignerIdentity:
    """The subject of a certificate, and the issuer that vouches for it."""

    subjects: tuple[str, ...]
    issuer: str


def read_certificates(data: bytes, limit: int = DEPTH_MAX) -> tuple[x509.Certificate, ...]:
    """Reads certificates in PEM, or one in DER; raises :class:`UntrustedCertificate`."""
    if data.count(b"-----BEGIN") > limit:
        raise UntrustedCertificate(f"it has more than {limit} certificates")
    try:
        if data.lstrip().startswith(b"-----"):
            return tuple(x509.load_pem_x509_certificates(data))
        return (x509.load_der_x509_certificate(data),)
    except UNREADABLE:
        raise UntrustedCertificate("it is not a certificate in PEM or DER") from None


def build_chain(
    leaf: x509.Certificate,
    intermediates: Sequence[x509.Certificate],
    roots: Sequence[x509.Certificate],
    moment: float,
    *,
    usage: ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING,
) -> list[x509.Certificate]:
    """Returns the chain from a signer's certificate to a root, at a moment.

    Raises :class:`UntrustedCertificate`.
    """
    time = dt.datetime.fromtimestamp(moment, dt.UTC)
    _check_times(leaf, time)
    _check_leaf(leaf, usage)
    builder = (
        verification.PolicyBuilder()
        .store(verification.Store(list(roots)))
        .time(time)
        .max_chain_depth(DEPTH_MAX)
        .extension_policies(ca_policy=_AUTHORITIES, ee_policy=_SIGNERS)
    )
    try:
        return builder.build_client_verifier().verify(leaf, list(intermediates)).chain
    except verification.VerificationError as error:
        reason = str(error).partition(" (encountered")[0].removeprefix("validation failed: ")
        raise UntrustedCertificate(f"no way leads from it to an authority: {reason}") from None
    except UNREADABLE:
        raise UntrustedCertificate("it, or one above it, cannot be read") from None


def _check_times(leaf: x509.Certificate, time: dt.datetime) -> None:
    """Raises if the certificate is not valid at a time.

    These two common faults have messages of their own.
    """
    if time > leaf.not_valid_after_utc:
        raise UntrustedCertificate(
            f"it ended at {_text(leaf.not_valid_after_utc)}, before the signature of {_text(time)}"
        )
    if time < leaf.not_valid_before_utc:
        raise UntrustedCertificate(
            f"it begins at {_text(leaf.not_valid_before_utc)}, after the signature of {_text(time)}"
        )


def _text(time: dt.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_leaf(leaf: x509.Certificate, usage: ObjectIdentifier) -> None:
    if usage not in (extension_of(leaf, x509.ExtendedKeyUsage) or ()):
        raise UntrustedCertificate(f"it is not for {usage._name}")  # noqa: SLF001  # its only name
    if is_authority(leaf):
        raise UntrustedCertificate("it is an authority's")
    key_usage = extension_of(leaf, x509.KeyUsage)
    if key_usage is not None and not key_usage.digital_signature:
        raise UntrustedCertificate("it is not for signatures")


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether the certificate is a CA certificate."""
    constraints = extension_of(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def extension_of(certificate: x509.Certificate, kind: type[Any]) -> Any:
    """Returns the value of an extension, or None; raises :class:`UntrustedCertificate`."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except UNREADABLE:
        raise UntrustedCertificate("its extensions cannot be read") from None


def _authority_constraints(
    _policy: object, _certificate: object, extension: x509.BasicConstraints
) -> None:
    if not extension.ca:
        raise ValueError("it is not an authority's")


def _authority_usage(
    _policy: object, _certificate: object, extension: x509.KeyUsage | None
) -> None:
    if extension is not None and not extension.key_cert_sign:
        raise ValueError("it is not for certificates")


_AUTHORITIES: Final = (
    verification.ExtensionPolicy.permit_all()
    .require_present(
        x509.BasicConstraints, verification.Criticality.AGNOSTIC, _authority_constraints
    )
    .may_be_present(x509.KeyUsage, verification.Criticality.AGNOSTIC, _authority_usage)
)
_SIGNERS: Final = verification.ExtensionPolicy.permit_all()


def identity_of(certificate: x509.Certificate) -> SignerIdentity:
    """Returns subjects and issuer; raises :class:`UntrustedCertificate`."""
    names = extension_of(certificate, x509.SubjectAlternativeName) or ()
    subjects = []
    for name in names:
        if isinstance(name, x509.OtherName):
            if name.type_id == _OTHER_NAME:
                subjects.append(_utf8(name.value))
        elif isinstance(name, x509.RFC822Name | x509.UniformResourceIdentifier | x509.DNSName):
            subjects.append(name.value)
    return SignerIdentity(tuple(subjects), _issuer(certificate))


def _issuer(certificate: x509.Certificate) -> str:
    for oid in (_ISSUER, _ISSUER_AS_BYTES):
        try:
            value = certificate.extensions.get_extension_for_oid(oid).value
        except x509.ExtensionNotFound:
            continue
        except UNREADABLE:
            raise UntrustedCertificate("its extensions cannot be read") from None
        assert isinstance(value, x509.UnrecognizedExtension)
        return _utf8(value.value) if oid == _ISSUER else value.value.decode("utf-8", "replace")
    return ""


def _utf8(value: bytes) -> str:
    """Reads a UTF8String in DER of at most 255 bytes; longer names do not occur."""
    if len(value) >= 2 and value[0] == _UTF8_STRING:
        if value[1] < 0x80 and value[1] == len(value) - 2:
            return value[2:].decode("utf-8", "replace")
        if value[1] == 0x81 and len(value) >= 3 and value[2] == len(value) - 3:
            return value[3:].decode("utf-8", "replace")
    raise UntrustedCertificate("its extensions cannot be read")


def der_of(certificate: x509.Certificate) -> bytes:
    """Returns the certificate as DER, by which certificates are compared."""
    return certificate.public_bytes(Encoding.DER)
