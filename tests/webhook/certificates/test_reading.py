"""Certificates are read once from the same bytes of a Secret, and anew from other bytes."""

import datetime as dt

import pytest

from webhook.certificates import reading
from webhook.certificates.plan import plan
from webhook.certificates.reading import known_authorities, read_bundle, read_secret

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def make_secret() -> dict[str, bytes]:
    data = plan({}, ["localhost"], NOW, trusted_seconds=0.0).secret
    assert data is not None
    return data


@pytest.fixture
def secret() -> dict[str, bytes]:
    return make_secret()


def test_the_same_bytes_are_read_once(secret):
    first = read_secret(secret)

    assert first.authority is not None
    assert first.serving is not None
    assert first.serving.names == {"localhost"}
    assert read_secret({name: bytes(bytearray(text)) for name, text in secret.items()}) is first


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_what_another_secret_has_in_one_field_is_seen(secret, name):
    """Each is known by itself before: nothing of that stands for the mixture."""
    other = make_secret()
    assert read_secret(secret).serving is not None
    assert read_secret(other).serving is not None

    assert read_secret(secret | {name: other[name]}).serving is None


@pytest.mark.parametrize("name", ["next-ca.crt", "next-ca.key"])
def test_an_authority_to_come_is_one_with_its_own_key(secret, name):
    other = make_secret()
    both = secret | {"next-ca.crt": other["ca.crt"], "next-ca.key": other["ca.key"]}
    coming = read_secret(both).coming
    assert coming is not None
    assert coming.begins < NOW < coming.ends

    third = make_secret()
    assert read_secret(both | {name: third[name.removeprefix("next-")]}).coming is None


def test_known_authorities_are_the_one_in_force_those_before_and_the_next(secret):
    before, coming = make_secret()["ca.crt"], make_secret()["ca.crt"]
    data = {"ca.crt": secret["ca.crt"] + before, "next-ca.crt": coming}

    assert [item.pem for item in known_authorities(data)] == [secret["ca.crt"], before, coming]
    assert known_authorities({"ca.crt": b"nonsense", "next-ca.crt": coming}) == read_bundle(coming)


def test_no_key_is_kept_beyond_the_secret_and_the_one_before_it(secret):
    read_secret(secret)
    for _ in range(3):
        read_secret(make_secret())

    assert reading._read.cache_info().currsize == 2
    misses = reading._read.cache_info().misses
    read_secret(secret)
    assert reading._read.cache_info().misses == misses + 1
