"""Certificates: pairs read from a directory or made here, and their TLS contexts.

A pair is tried on a context of its own before it serves: a key that does not match would break the
context in use. Private keys are kept only in memory.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import os
import ssl
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.values import dataclass

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator, Sequence
    from pathlib import Path

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"

FILE_BYTES_MAX: Final = 1024 * 1024
"""The largest file read: the limit of a Secret."""

SELF_SIGNED_DAYS: Final = 365
BACKDATED: Final = dt.timedelta(hours=1)
"""How long before its creation a certificate begins to be valid, for clocks that differ."""

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class InvalidCertificate(ValueError):
    """A certificate, key or authority that cannot be used; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate chain with its key, and the authorities for client certificates, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)
    client_authorities: bytes = b""
    known_authorities: bytes = b""
    """Authorities of clients to recognise; other clients are admitted, too."""


def read_pair(directory: Path, client_ca_name: str = "") -> CertificatePair:
    """Returns the pair in a directory; raises :class:`InvalidCertificate`."""
    return CertificatePair(
        certificate=_read(directory / CERTIFICATE),
        key=_read(directory / KEY),
        client_authorities=_read(directory / client_ca_name) if client_ca_name else b"",
    )


def read_authorities(path: Path) -> bytes:
    """Authorities of clients in a file, in PEM; raises :class:`InvalidCertificate`."""
    authorities = _read(path)
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), authorities)
    return authorities


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidCertificate(f"{path}: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise InvalidCertificate(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    if not content.strip():
        raise InvalidCertificate(f"{path}: empty")
    return content


def make_context(pair: CertificatePair, min_version: str = "1.3") -> ssl.SSLContext:
    """Returns a server's context with this pair; raises :class:`InvalidCertificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[min_version]
    # For TLS 1.2: only forward secrecy and authenticated encryption, which every Go client has.
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    # The API server speaks nothing newer to webhooks (client-go sets NextProtos so).
    context.set_alpn_protocols(["http/1.1"])
    show(context, pair)
    if pair.client_authorities:
        _trust(context, pair.client_authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    elif pair.known_authorities:
        _trust(context, pair.known_authorities)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def show(context: ssl.SSLContext, pair: CertificatePair) -> None:
    """Makes a context show this pair from its next handshake on.

    Raises :class:`InvalidCertificate`.
    """
    try:
        with _as_file(pair.certificate + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InvalidCertificate(f"certificate and key cannot be used: {_why(error)}") from None


def _trust(context: ssl.SSLContext, authorities: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise InvalidCertificate(f"client authorities cannot be used: {_why(error)}") from None


def _no_password() -> bytes:
    """Refuses an encrypted key rather than ask for its password on the terminal."""
    raise ValueError("the key is encrypted")


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)


@contextlib.contextmanager
def _as_file(content: bytes) -> Generator[str]:
    """Yields the path of a file with this content, in memory if the system permits it."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("certificate", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as stream:
            stream.write(content)
            stream.flush()
            yield f"/proc/self/fd/{number}"
    else:
        # Imported here: Linux does without, and the import costs memory and start-up time.
        import tempfile  # noqa: PLC0415

        with tempfile.NamedTemporaryFile() as stream:
            stream.write(content)
            stream.flush()
            yield stream.name


class SwappedContext:
    """The context for listeners: each handshake takes the latest installed one.

    Handshakes in progress and open connections keep theirs. Swapping whole contexts allows a change
    of client authorities, which a context can add to but not replace.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._current = context
        self.listening = context
        # Called for clients without a server name too.
        context.sni_callback = self._choose

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._current

    def install(self, context: ssl.SSLContext) -> None:
        """Uses this context from the next handshake on; any thread may call."""
        self._current = context


def check_client_name(transport: asyncio.BaseTransport, expected_name: str) -> str | None:
    """Returns why a client's certificate does not have the permitted name; None if it does."""
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    names = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    # Software that reads another of several names (Go reads the last) must find the same.
    strange = [name for name in names if name != expected_name]
    if names and not strange:
        return None
    shown = strange[0] if strange else ""
    return f"x509: subject with cn={shown} do not identify as {expected_name}"


def not_after(certificate: bytes) -> dt.datetime | None:
    """Returns the end of the first certificate of a chain; None if it cannot be read.

    Parsed by hand: importing a library for it takes a tenth of a start, and 10 MiB.
    """
    try:
        pem = certificate[certificate.index(BEGIN) : certificate.index(_END) + len(_END)]
        der = ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))
        return _end_of(der)
    except (ValueError, IndexError):
        return None


BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_END: Final = b"-----END CERTIFICATE-----"

_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_VERSION: Final = 0xA0


def _end_of(der: bytes) -> dt.datetime:
    """``tbsCertificate.validity.notAfter`` (RFC 5280, 4.1); raises ValueError and IndexError."""
    at = _value(der, _value(der, 0)[1])[1]  # within the certificate, and its signed part
    if der[at] == _VERSION:
        at = _value(der, at)[2]
    for _ in range(3):  # serial number, signature's algorithm, issuer
        at = _value(der, at)[2]
    begin = _value(der, _value(der, at)[1])  # notBefore
    tag, start, end = _value(der, begin[2])
    text = der[start:end].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year: 1950 to 2049
        text = f"{'20' if text < '50' else '19'}{text}"
    elif tag != _GENERALIZED_TIME:
        raise ValueError("notAfter is not a time")
    return dt.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=dt.UTC)


def _value(der: bytes, at: int) -> tuple[int, int, int]:
    """Returns a DER value's tag, and the begin and end of its content."""
    tag, length, start = der[at], der[at + 1], at + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[at + 2 : start])
    return tag, start, start + length


def self_signed(names: Sequence[str], now: dt.datetime) -> CertificatePair:
    """Makes a pair for these DNS names and addresses: ECDSA P-256, the cheapest at a handshake."""
    from cryptography import x509  # noqa: PLC0415  # 10 MiB that only this needs
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    # The same usages as in a cluster's plan.
    usages = (x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH)
    subject = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, names[0][:64])])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + dt.timedelta(days=SELF_SIGNED_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), False)
        # Its own authority, so that it can be given to a client as the CA to trust.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), False)
        .sign(key, hashes.SHA256())
    )
    return CertificatePair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _general_name(name: str) -> Any:
    from cryptography import x509  # noqa: PLC0415  # see self_signed

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
