"""The server's certificate changes under it; clients may have to show one."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.behaviour.authority import Authority
from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    review,
    unverified,
    write_policies,
)
from webhook.certificates.pairs import CertificatePair, self_signed

INSTALLED = "certificate installed"


def make_pair(name: str) -> CertificatePair:
    """A new pair for this name."""
    return self_signed([name, "127.0.0.1"], dt.datetime.now(tz=dt.UTC))


def publish(folder: Path, number: int, pair: CertificatePair) -> None:
    """Write a pair as the kubelet does: a new folder, and a link renamed over the old one."""
    revision = folder / f"..revision{number}"
    revision.mkdir(parents=True)
    (revision / "tls.crt").write_bytes(pair.certificate)
    (revision / "tls.key").write_bytes(pair.key)
    link = folder / "..data_new"
    link.symlink_to(revision.name)
    link.rename(folder / "..data")


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Writes a template and one constraint."""
    folder = tmp_path / "policies"
    return write_policies(folder, REQUIRED_LABELS, constraint("needs-owner", "owner"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A mounted Secret with a pair for ``one``."""
    folder = tmp_path / "certs"
    publish(folder, 1, make_pair("one"))
    for name in ("tls.crt", "tls.key"):
        (folder / name).symlink_to(f"..data/{name}")
    return folder


def served_name(server: Server) -> str:
    """The common name of the certificate that a new connection is shown."""
    with server.raw() as connection:
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    found = x509.load_der_x509_certificate(der).subject.rfc4514_string()
    return found.removeprefix("CN=")


def test_two_successive_swaps_of_a_mounted_secret_are_served(policies: Path, secret: Path) -> None:
    with Server(policies, f"--cert-dir={secret}") as server:
        kept = server.ready().connect()
        assert served_name(server) == "one"
        for number, name in ((2, "two"), (3, "three")):
            publish(secret, number, make_pair(name))
            server.wait_for(INSTALLED, number=number - 1)
            assert served_name(server) == name
        assert server.post(review(pod()), connection=kept).status == 200
        kept.close()


def test_a_pair_that_does_not_fit_leaves_the_one_before(policies: Path, secret: Path) -> None:
    with Server(policies, f"--cert-dir={secret}") as server:
        server.ready()
        mixed = CertificatePair(make_pair("two").certificate, make_pair("other").key)
        publish(secret, 2, mixed)
        server.wait_for("certificate cannot be used; the last good one stays")
        assert served_name(server) == "one"
        assert server.admit(pod())["allowed"] is False
        assert server.metric('waddle_reload_failing{subject="certificate"}') == 1
        assert server.get("health", "/readyz").status == 200
        publish(secret, 3, make_pair("three"))
        server.wait_for(INSTALLED)
        assert served_name(server) == "three"


def test_without_its_certificate_a_server_is_not_ready(policies: Path, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    folder.mkdir()
    with Server(policies, f"--cert-dir={folder}") as server:
        server.ready()
        answer = server.get("health", "/readyz")
        assert answer.status == 503
        assert b"tls.crt: No such file" in answer.body
        publish(folder, 1, make_pair("one"))
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(f"..data/{name}")
        server.wait_for(INSTALLED)
        assert served_name(server) == "one"
        assert server.get("health", "/readyz").status == 200


def test_the_certificate_s_end_is_a_metric(policies: Path, secret: Path) -> None:
    with Server(policies, f"--cert-dir={secret}") as server:
        pem = (secret / "tls.crt").read_bytes()
        ends = x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
        assert server.metric("waddle_cert_not_after_timestamp_seconds") == ends


def test_a_self_signed_certificate_is_one_that_a_client_can_trust(
    policies: Path,
) -> None:
    with Server(policies) as server:
        with server.ready().raw() as connection:
            der = connection.getpeercert(binary_form=True)
        assert der is not None
        certificate = x509.load_der_x509_certificate(der)
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)
        context = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(der))
        trusting = server.connect(context)
        assert server.post(review(pod()), connection=trusting).status == 200
        trusting.close()


def is_served(server: Server, context: ssl.SSLContext) -> bool:
    """Whether a client gets an answer; with TLS 1.3 a refusal comes after its handshake."""
    try:
        connection = server.connect(context)
    except (ssl.SSLError, OSError):
        return False
    try:
        return server.post(review(pod()), connection=connection).status == 200
    except (ssl.SSLError, OSError):
        return False
    finally:
        connection.close()


def test_clients_must_come_from_the_authority_and_have_the_name(
    policies: Path, secret: Path, tmp_path: Path
) -> None:
    authority, other = Authority(), Authority()
    (secret / "ca.crt").write_bytes(authority.pem)
    with Server(policies, f"--cert-dir={secret}", "--client-ca-name=ca.crt") as server:
        server.ready()
        good = authority.client("kube-apiserver", tmp_path)
        assert is_served(server, good)
        assert not is_served(server, unverified())
        assert not is_served(server, authority.client("somebody", tmp_path))
        assert not is_served(server, authority.client("kube-apiserver", tmp_path, "somebody"))
        assert not is_served(server, authority.client("somebody", tmp_path, "kube-apiserver"))
        assert not is_served(server, other.client("kube-apiserver", tmp_path))
        refused = 'waddle_connections_closed_total{reason="client_certificate"}'
        assert server.metric(refused) == 3
        # The authorities are reloaded too, and the ones before no longer count.
        (secret / "ca.crt").write_bytes(other.pem)
        await_true(lambda: is_served(server, other.client("kube-apiserver", tmp_path)))
        assert not is_served(server, good)


def strangers(server: Server) -> float:
    return server.metric("waddle_stranger_requests_total") or 0


def test_who_shows_no_certificate_of_the_api_server_is_answered_as_a_stranger(
    policies: Path, tmp_path: Path
) -> None:
    """With a pair of its own, as in a cluster; and the file may change."""
    authority, other = Authority(), Authority()
    path = tmp_path / "api-server-ca.crt"
    path.write_bytes(authority.pem)
    with Server(policies, f"--api-server-ca-file={path}") as server:
        server.ready()
        assert is_served(server, authority.client("kube-apiserver", tmp_path))
        assert strangers(server) == 0
        assert is_served(server, authority.client("somebody", tmp_path))
        assert is_served(server, unverified())
        assert strangers(server) == 2
        path.write_bytes(other.pem)
        context = other.client("kube-apiserver", tmp_path)

        def is_known() -> bool:
            before = strangers(server)
            return is_served(server, context) and strangers(server) == before

        await_true(is_known)


def test_until_the_authorities_can_be_read_everybody_is_a_stranger(
    policies: Path, tmp_path: Path
) -> None:
    path = tmp_path / "api-server-ca.crt"
    with Server(policies, f"--api-server-ca-file={path}") as server:
        server.ready()
        assert is_served(server, unverified())
        assert strangers(server) == 1
        faults = [event for event in server.events if "authorities of API servers" in event["msg"]]
        assert len(faults) == 1
        assert "No such file" in faults[0]["error"]


def offered(server: Server, ciphers: str) -> bool:
    """Whether a client of TLS 1.2 that has these cipher suites is served."""
    context = unverified()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    return is_served(server, context)


def test_tls_1_2_offers_no_suite_with_cbc(policies: Path, secret: Path) -> None:
    flags = (f"--cert-dir={secret}", "--tls-min-version=1.2")
    with Server(policies, *flags) as server:
        server.ready()
        assert offered(server, "ECDHE-ECDSA-AES128-GCM-SHA256")
        assert offered(server, "ECDHE-ECDSA-CHACHA20-POLY1305")
        for name in ("ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"):
            assert not offered(server, name)
