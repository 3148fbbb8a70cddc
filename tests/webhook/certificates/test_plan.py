"""The certificate's plan: made once, renewed in time, an authority replaced without a gap."""

import datetime as dt
import ssl
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from webhook.certificates.plan import STANDS, CertificatePlan, Lifetimes, bundle, is_trusted, plan

NAMES = ["waddle-webhook-service.waddle-system.svc", "localhost"]
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def planned(secret, now=NOW, trusted_seconds=0.0, **options) -> CertificatePlan:
    return plan(secret, NAMES, now, trusted_seconds=trusted_seconds, **options)


def authorities(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem)


def serving(secret) -> x509.Certificate:
    return authorities(secret["tls.crt"])[0]


def trusts(trusted: bytes, secret) -> bool:
    """Whether a client that trusts these authorities accepts what is served."""
    leaf = serving(secret)
    for authority in authorities(trusted):
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError):
            continue
        return True
    return False


@pytest.fixture
def secret():
    data = planned({}).secret
    assert data is not None
    return data


def test_an_empty_secret_gets_an_authority_and_a_pair_of_it(secret):
    assert set(secret) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert trusts(bundle(secret, NOW), secret)
    alternative = serving(secret).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert alternative.value.get_values_for_type(x509.DNSName) == NAMES


def test_openssl_accepts_the_pair(secret, tmp_path):
    file = tmp_path / "pair.pem"
    file.write_bytes(secret["tls.crt"] + secret["tls.key"])

    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


def test_a_good_secret_is_left_alone(secret):
    again = planned(secret, NOW + 30 * DAY)

    assert again.secret is None
    assert again.bundle == secret["ca.crt"]


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key"])
def test_an_authority_that_cannot_sign_is_made_anew(secret, lost):
    made = planned(secret | {lost: b"nonsense"}).secret

    assert made is not None
    assert made["ca.crt"] != secret["ca.crt"]


@pytest.mark.parametrize("lost", ["tls.crt", "tls.key"])
def test_a_lost_pair_is_made_anew_by_the_same_authority(secret, lost):
    made = planned(secret | {lost: b""}).secret

    assert made is not None
    assert made["ca.crt"] == secret["ca.crt"]
    assert trusts(bundle(secret, NOW), made)


def test_a_pair_for_other_names_is_made_anew(secret):
    made = plan(secret, [*NAMES, "another.example"], NOW, trusted_seconds=0).secret

    assert made is not None
    assert trusts(secret["ca.crt"], made)


def test_a_pair_that_ends_soon_is_renewed_under_the_trust_there_is(secret):
    later = NOW + (365 - 89) * DAY
    made = planned(secret, later).secret

    assert made is not None
    assert serving(made).not_valid_after_utc > serving(secret).not_valid_after_utc
    assert trusts(bundle(secret, later), made)
    assert planned(made, later).secret is None


def renewed(secret, now):
    """The Secret after every renewal that the passing of time asks for."""
    while (step := planned(secret, now).secret) is not None and "next-ca.crt" not in step:
        secret = step
    return secret, step


def test_an_authority_is_trusted_before_it_signs_what_is_served(secret):
    """At each step, old and new replicas are both trusted by old and new API servers."""
    now = NOW + (10 * 365 - 60) * DAY
    secret, announced = renewed(secret, now)
    assert announced is not None
    assert announced["tls.crt"] == secret["tls.crt"]
    both = bundle(announced, now)
    assert len(authorities(both)) == 2

    assert planned(announced, now, trusted_seconds=59.0).secret is None
    promoted = planned(announced, now, trusted_seconds=60.0).secret
    assert promoted is not None
    assert promoted["ca.key"] == announced["next-ca.key"]
    assert "next-ca.key" not in promoted
    assert trusts(both, promoted)
    assert trusts(bundle(promoted, now), secret)
    assert planned(promoted, now).secret is None


def test_an_authority_that_providers_copy_stands_there_for_a_day_before_it_signs(secret):
    now = NOW + (10 * 365 - 60) * DAY
    lifetimes = Lifetimes(stands=STANDS)
    _, announced = renewed(secret, now)

    def promoted(after):
        step = planned(announced, now + after, trusted_seconds=3600.0, lifetimes=lifetimes)
        return step.reason == "the new authority is trusted"

    assert not promoted(dt.timedelta(minutes=30))
    assert not promoted(dt.timedelta(hours=23))
    assert promoted(dt.timedelta(hours=24))


def test_an_ended_authority_is_trusted_no_more(secret):
    now = NOW + (10 * 365 - 60) * DAY
    _, announced = renewed(secret, now)
    promoted = planned(announced, now, trusted_seconds=60.0).secret

    assert promoted is not None
    assert len(authorities(bundle(promoted, now))) == 2
    assert len(authorities(bundle(promoted, now + 61 * DAY))) == 1


def test_lifetimes_of_seconds_rotate_too():
    """The rotation that a test of a running cluster sees."""
    lifetimes = Lifetimes(
        authority=dt.timedelta(seconds=60),
        serving=dt.timedelta(seconds=20),
        lookahead=dt.timedelta(seconds=30),
        trust_seconds=2,
    )
    secret = planned({}, lifetimes=lifetimes).secret
    assert secret is not None
    assert planned(secret, lifetimes=lifetimes).secret is None
    reasons = set()
    trusted = 0.0
    for second in range(1, 180):
        now = NOW + dt.timedelta(seconds=second)
        step = planned(secret, now, trusted_seconds=trusted, lifetimes=lifetimes)
        if step.secret is not None:
            assert trusts(step.bundle, secret)
            assert trusts(step.bundle, step.secret)
            reasons.add(step.reason)
            secret = step.secret
        trusted = trusted + 1 if "next-ca.crt" in secret else 0.0
        assert serving(secret).not_valid_after_utc > now
    assert reasons == {
        "the serving certificate ends soon, or is not for these names and uses",
        "the authority ends soon",
        "the new authority is trusted",
    }


PKCS8 = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
FOREIGN_KEYS: dict[str, Any] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
    "rsa": rsa.generate_private_key(65537, 2048),
    "another curve": ec.generate_private_key(ec.SECP384R1()),
}


def self_signed_by(key) -> bytes:
    """An authority of another program's making."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gatekeeper-ca")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + 1000 * DAY)
    )
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("name", FOREIGN_KEYS)
def test_what_another_program_left_ends_in_a_pair_that_can_be_served(name):
    """An authority of a kind of ours is used; any other is made anew."""
    key = FOREIGN_KEYS[name]
    pem = key.private_bytes(*PKCS8, serialization.NoEncryption())
    found = planned({"ca.crt": self_signed_by(key), "ca.key": pem})

    assert found.secret is not None
    assert trusts(found.bundle, found.secret)
    assert (found.secret["ca.key"] == pem) is (name == "another curve")


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key", "next-ca.crt"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"\x00\xff" * 50,
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n",
    ],
)
def test_a_broken_field_ends_in_a_pair_that_can_be_served(secret, field, content):
    broken = secret | {field: content}
    found = planned(broken)
    data = found.secret or broken

    assert trusts(found.bundle, data)
    assert planned(data).secret is None


def test_a_bundle_is_right_when_it_holds_what_it_must_and_nobody_else(secret):
    other = planned({}).secret["ca.crt"]

    assert is_trusted(secret["ca.crt"], secret, NOW)
    assert is_trusted(secret["ca.crt"], secret | {"next-ca.crt": b""}, NOW)
    assert not is_trusted(b"", secret, NOW)
    assert not is_trusted(b"nonsense", secret, NOW)
    assert not is_trusted(other, secret, NOW)
    assert not is_trusted(secret["ca.crt"] + other, secret, NOW)
    assert not is_trusted(secret["ca.crt"], secret | {"next-ca.crt": other}, NOW)
    assert is_trusted(secret["ca.crt"] + other, secret | {"next-ca.crt": other}, NOW)
    assert not is_trusted(b"", {}, NOW)


def test_an_authority_that_has_ended_may_stay_in_the_bundle(secret):
    """Replicas whose clocks differ do not write against one another at its end."""
    ended = planned({}, NOW - 20 * 365 * DAY).secret["ca.crt"]
    both = secret | {"ca.crt": secret["ca.crt"] + ended}

    assert is_trusted(secret["ca.crt"], both, NOW)
    assert is_trusted(secret["ca.crt"] + ended, both, NOW)
