"""Valid Providers, and the faults of the others, with Gatekeeper's messages."""

import base64

import pytest

from tests.provider_process import make_authority
from webhook.external_data.provider import InvalidProvider, read_provider

PEM = make_authority().certificate
OTHER = make_authority().certificate


def encoded(pem):
    return base64.b64encode(pem).decode()


BUNDLE = encoded(PEM)
LONG = "\u00e4" * 64
"""No label of a name: it is too long."""


def strange_certificate():
    """Returns a certificate that Go reads: only its issuer's name ends before its field does."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    der = base64.b64decode(PEM.decode().replace(begin, "").replace(end, ""))
    name = b"provider authority"
    cut = der.replace(bytes([12, len(name)]) + name, bytes([12, len(name) - 5]) + name)
    assert cut != der
    return f"{begin}\n{encoded(cut)}\n{end}\n".encode()


def read(annotations=None, name="p", **spec):
    metadata = {"name": name, "annotations": annotations}
    spec = {"url": "https://p.example/", "caBundle": BUNDLE, **spec}
    return read_provider({"kind": "Provider", "metadata": metadata, "spec": spec})


def test_what_can_be_asked():
    made = read(timeout=3, caBundle=encoded(PEM + OTHER))
    assert (made.name, made.url, made.timeout_seconds) == ("p", "https://p.example/", 3.0)
    assert len(made.authorities) == 2
    assert made.namesakes == tuple((authority,) for authority in made.authorities)
    assert not made.is_guarded
    assert read(annotations={"waddle.dev/use": "required"}).is_guarded


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(None, 5.0), (0, 5.0), (30, 30.0), (3600, 30.0), (10**400, 30.0)],
)
def test_no_timeout_is_that_of_mutators_and_none_is_longer_than_an_admission(timeout, seconds):
    assert read(timeout=timeout).timeout_seconds == seconds


@pytest.mark.parametrize(("timeout", "warns"), [(None, False), (30, False), (31, True)])
def test_a_timeout_beyond_the_longest_is_reported(timeout, warns):
    says = "its spec.timeout is 31 s, and 30 s is the most that counts"
    assert read(timeout=timeout).warnings == ((says,) if warns else ())


def test_what_is_no_certificate_behind_the_first_does_not_count():
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert read(caBundle=encoded(PEM + broken)).authorities == read().authorities


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"url": ""}, "invalid provider url. value: "),
        ({"url": None}, "invalid provider url. value: "),
        ({"url": "http://p.example"}, "only HTTPS scheme is supported for Providers"),
        ({"url": "p.example"}, "only HTTPS scheme is supported for Providers"),
        ({"url": "https://[::1"}, "parse \"https://[::1\": missing ']' in host"),
        ({"url": "https:///path"}, "invalid provider url: no host. value: https:///path"),
        (
            {"url": f"https://{LONG}.example/"},
            f"invalid provider url: no name of a host. value: https://{LONG}.example/",
        ),
        ({"url": "https://a..b/"}, "invalid provider url: no name of a host. value: https://a..b/"),
        (
            {"url": "https://p.example:65536/"},
            "invalid provider url: no port. value: https://p.example:65536/",
        ),
        (
            {"url": f"https://p.example:{'9' * 5000}/"},
            f"invalid provider url: no port. value: https://p.example:{'9' * 5000}/",
        ),
        ({"url": 5}, "spec.url must be of type string"),
        (
            {"timeout": -(10**400)},
            f"provider timeout should be a positive integer. value: -{10**400}",
        ),
        ({"timeout": -1}, "provider timeout should be a positive integer. value: -1"),
        ({"timeout": "3s"}, "spec.timeout must be of type integer"),
        ({"timeout": True}, "spec.timeout must be of type integer"),
        ({"caBundle": ""}, "caBundle should be set for HTTPS scheme"),
        (
            {"caBundle": "?"},
            "failed to base64 decode caBundle: illegal base64 data at input byte 0",
        ),
        ({"caBundle": encoded(b"no PEM")}, "bad caBundle"),
        (
            {"caBundle": encoded(b"-----BEGIN X-----\nAAAA\n-----END X-----\n")},
            "failed to parse caBundle: x509: malformed certificate",
        ),
        (
            {"caBundle": encoded(PEM.replace(b"CERTIFICATE", b"X509 CERTIFICATE"))},
            "bad caBundle: it holds no block of type CERTIFICATE",
        ),
    ],
)
def test_what_cannot_be_asked(spec, message):
    with pytest.raises(InvalidProvider) as refused:
        read(**spec)
    assert str(refused.value) == message


def test_an_annotation_says_required_or_is_not_there():
    with pytest.raises(InvalidProvider, match="want required, got 'yes'"):
        read(annotations={"waddle.dev/use": "yes"})


@pytest.mark.parametrize("annotations", [["a"], "a"])
def test_annotations_of_another_type_are_a_fault_of_the_provider(annotations):
    with pytest.raises(InvalidProvider, match=r"metadata\.annotations must be of type object"):
        read(annotations=annotations)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_certificate_that_openssl_does_not_read_makes_no_provider_that_breaks_reviews(is_first):
    broken = strange_certificate()
    if is_first:
        with pytest.raises(InvalidProvider, match="failed to parse caBundle: "):
            read(caBundle=encoded(broken + PEM))
    else:
        assert read(caBundle=encoded(PEM + broken)).authorities == read().authorities


def test_a_provider_has_a_name():
    with pytest.raises(InvalidProvider, match="provider name can not be empty"):
        read(name="")
