"""The serving certificate is a client's, too: who asks callers for one (a provider of data) takes it."""

import datetime as dt
import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.patience import PATIENCE_SECONDS
from webhook.certificates import pairs
from webhook.certificates.plan import plan

NAMES = ["waddle-webhook-service.waddle-system.svc", "localhost"]
NOW = dt.datetime.now(tz=dt.UTC)


def called(folder: Path, authority: bytes, certificate: bytes, key: bytes) -> str:
    """Returns the caller's name as a TLS server sees it that asks for such a certificate."""
    own = pairs.self_signed(["localhost"], NOW)
    (folder / "own.pem").write_bytes(own.certificate + own.key)
    (folder / "caller.pem").write_bytes(certificate + key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "own.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=authority.decode())
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    client.load_cert_chain(folder / "caller.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def call() -> None:
            with (
                socket.create_connection(listening.getsockname(), PATIENCE_SECONDS) as plain,
                client.wrap_socket(plain) as calling,
            ):
                calling.sendall(b"?")
                calling.recv(1)

        def call_whatever_comes_of_it() -> None:
            try:
                call()
            except OSError:
                return  # The server says why.

        caller = threading.Thread(target=call_whatever_comes_of_it)
        caller.start()
        try:
            accepted, _ = listening.accept()
            with server.wrap_socket(accepted, server_side=True) as asking:
                assert asking.recv(1) == b"?"
                shown = asking.getpeercert(binary_form=True) or b""
        except ssl.SSLError as error:
            return str(error.reason)
        finally:
            caller.join()
    found = x509.load_der_x509_certificate(shown)
    [name] = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(name.value)


def without_client_authentication(secret: dict[str, bytes]) -> dict[str, bytes]:
    """The Secret with a pair such as other programs make: for servers alone."""
    old = x509.load_pem_x509_certificate(secret["tls.crt"])
    authority = x509.load_pem_x509_certificate(secret["ca.crt"])
    signer = serialization.load_pem_private_key(secret["ca.key"], None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(authority.subject)
        .public_key(old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(old.not_valid_before_utc)
        .not_valid_after(old.not_valid_after_utc)
    )
    for extension in old.extensions:
        if extension.oid != x509.ExtendedKeyUsage.oid:
            builder = builder.add_extension(extension.value, critical=extension.critical)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    made = builder.add_extension(usage, critical=False).sign(signer, hashes.SHA256())  # type: ignore[arg-type]  # an EC key
    return secret | {"tls.crt": made.public_bytes(serialization.Encoding.PEM)}


@pytest.fixture
def secret() -> dict[str, bytes]:
    made = plan({}, NAMES, NOW, trusted_seconds=0).secret
    assert made is not None
    return made


def test_a_server_that_requires_a_certificate_takes_the_serving_one(
    secret: dict[str, bytes], tmp_path: Path
) -> None:
    found = called(tmp_path, secret["ca.crt"], secret["tls.crt"], secret["tls.key"])
    assert found == NAMES[0]


def test_a_certificate_of_servers_alone_is_refused_by_it_and_made_anew(
    secret: dict[str, bytes], tmp_path: Path
) -> None:
    foreign = without_client_authentication(secret)
    refusal = called(tmp_path, foreign["ca.crt"], foreign["tls.crt"], foreign["tls.key"])
    assert refusal == "CERTIFICATE_VERIFY_FAILED"
    made = plan(foreign, NAMES, NOW, trusted_seconds=0).secret
    assert made is not None
    assert made["ca.crt"] == secret["ca.crt"]
    assert called(tmp_path, made["ca.crt"], made["tls.crt"], made["tls.key"]) == NAMES[0]


def test_a_pair_that_is_its_own_authority_is_taken_too(tmp_path: Path) -> None:
    pair = pairs.self_signed(NAMES, NOW)
    assert called(tmp_path, pair.certificate, pair.certificate, pair.key) == NAMES[0]
