"""Pairs that can be used, pairs that cannot, and contexts swapped under a listener."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from webhook.certificates.pairs import (
    CertificatePair,
    InvalidCertificate,
    SwappedContext,
    make_context,
    not_after,
    read_pair,
    self_signed,
)

NOW = dt.datetime.now(tz=dt.UTC).replace(microsecond=0)


def pair(name: str = "one") -> CertificatePair:
    """A new pair."""
    return self_signed([name, "127.0.0.1"], NOW)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """A handshake in memory: the client's side; raises what either side raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours


def trusting(certificate: bytes) -> ssl.SSLContext:
    """A client that trusts one certificate."""
    return ssl.create_default_context(cadata=certificate.decode())


def test_a_self_signed_certificate_names_what_it_was_made_for() -> None:
    made = pair()
    side = handshake(make_context(made), trusting(made.certificate))
    assert side.version() == "TLSv1.3"
    assert not_after(made.certificate) == NOW + dt.timedelta(days=365)


def test_a_key_is_not_shown() -> None:
    assert b"PRIVATE" not in repr(pair()).encode()


def test_a_new_context_serves_the_next_handshake_through_the_old_listener() -> None:
    first, second = pair("one"), pair("two")
    swapped = SwappedContext(make_context(first))
    handshake(swapped.listening, trusting(first.certificate))
    swapped.install(make_context(second))
    handshake(swapped.listening, trusting(second.certificate))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(swapped.listening, trusting(first.certificate))


def encrypted(made: CertificatePair) -> bytes:
    """The key under a password."""
    key = serialization.load_pem_private_key(made.key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


ONE = pair()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (CertificatePair(ONE.certificate, pair("two").key), "key values mismatch"),
        (CertificatePair(ONE.certificate, encrypted(ONE)), "the key is encrypted"),
        (CertificatePair(ONE.certificate[:200], ONE.key), "certificate and key cannot be used"),
        (CertificatePair(ONE.certificate, ONE.key[:60]), "certificate and key cannot be used"),
        (CertificatePair(b"hello", b"world"), "certificate and key cannot be used"),
        (CertificatePair(ONE.certificate, ONE.key, b"hello"), "client authorities cannot be used"),
    ],
    ids=["mismatch", "encrypted", "truncated certificate", "truncated key", "text", "authorities"],
)
def test_what_cannot_be_used_is_refused_with_a_reason(broken: CertificatePair, why: str) -> None:
    with pytest.raises(InvalidCertificate) as found:
        make_context(broken)
    assert why in str(found.value).lower()


def test_what_is_missing_empty_or_too_large_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidCertificate, match=r"tls\.crt: No such file"):
        read_pair(tmp_path)
    (tmp_path / "tls.crt").write_bytes(ONE.certificate)
    (tmp_path / "tls.key").write_bytes(b"\n")
    with pytest.raises(InvalidCertificate, match=r"tls\.key: empty"):
        read_pair(tmp_path)
    (tmp_path / "tls.key").write_bytes(b"x" * (1024 * 1024 + 1))
    with pytest.raises(InvalidCertificate, match=r"tls\.key: larger than"):
        read_pair(tmp_path)
    (tmp_path / "tls.key").write_bytes(ONE.key)
    assert read_pair(tmp_path) == ONE
    with pytest.raises(InvalidCertificate, match=r"ca\.crt: No such file"):
        read_pair(tmp_path, "ca.crt")


def test_what_is_no_certificate_has_no_end() -> None:
    assert not_after(b"hello") is None


@pytest.mark.parametrize("year", [1970, 1999, 2026, 2049, 2050, 3000])
@pytest.mark.parametrize("serial", [1, 2**158])
def test_the_end_of_a_certificate_is_read_as_it_was_written(year: int, serial: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "é" * 30)])
    ends = dt.datetime(year, 2, 28, 13, 14, 15, tzinfo=dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(dt.datetime(1960, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    assert not_after(b"# a comment\n" + pem + pem) == ends
    assert not_after(pem[:100]) is None
    assert not_after(b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----") is None
    assert not_after(b"") is None
