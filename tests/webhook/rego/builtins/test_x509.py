"""Certificates in Go's JSON form, and chains verified as Go verifies them."""

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NOW_NS = int(NOW.timestamp()) * 10**9


def call(name, *operands, now_ns=NOW_NS):
    return BUILTINS[name].function(EvaluationContext(now_ns=now_ns), *operands)


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def issue(subject, issuer, key, signer, *, extensions=(), days=10):
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - dt.timedelta(days=1))
        .not_valid_after(NOW + dt.timedelta(days=days))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    digest = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(signer, digest)


def pem(*certificates):
    return "".join(c.public_bytes(serialization.Encoding.PEM).decode() for c in certificates)


def key_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


CA = (x509.BasicConstraints(ca=True, path_length=None), True)


@pytest.fixture(scope="module")
def chain():
    """A root, an intermediate and a leaf for ``a.example``, with the leaf's key."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
    root = issue("root", "root", keys[0], keys[0], extensions=[CA])
    middle = issue("middle", "root", keys[1], keys[0], extensions=[CA])
    names = x509.SubjectAlternativeName([x509.DNSName("*.example"), x509.DNSName("a.b")])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = issue("leaf", "middle", keys[2], keys[1], extensions=[(names, False), (usage, False)])
    return root, middle, leaf, keys[2]


def test_fields_have_gos_names_and_numbers(chain):
    key = rsa.generate_private_key(65537, 2048)
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("a.b"),
            x509.IPAddress(ipaddress.ip_address("::1")),
            x509.UniformResourceIdentifier("spiffe://d/p%20q"),
        ]
    )
    (fields,) = call(
        "crypto.x509.parse_certificates",
        pem(issue("x", "x", key, key, extensions=[(names, True), CA])),
    )
    assert fields["Subject"]["CommonName"] == "x"
    assert fields["SignatureAlgorithm"] == 4
    assert fields["PublicKeyAlgorithm"] == 1
    assert fields["PublicKey"] == {"N": key.public_key().public_numbers().n, "E": 65537}
    assert (fields["DNSNames"], fields["IPAddresses"]) == (["a.b"], ["::1"])
    assert fields["URIStrings"] == ["spiffe://d/p%20q"]
    assert fields["URIs"][0]["Path"] == "/p q"
    assert fields["NotBefore"] == "2025-12-31T00:00:00Z"
    assert (fields["IsCA"], fields["MaxPathLen"], fields["SerialNumber"]) == (True, -1, 7)
    assert fields["ExtKeyUsage"] is None


def test_a_chain_is_verified_from_its_leaf_to_its_root(chain):
    valid, found = call("crypto.x509.parse_and_verify_certificates", pem(*chain[:3]))
    assert valid
    assert [fields["Subject"]["CommonName"] for fields in found] == ["leaf", "middle", "root"]


@pytest.mark.parametrize(
    ("options", "valid"),
    [
        ({}, True),
        ({"DNSName": "x.example"}, True),
        ({"DNSName": "A.B"}, True),
        ({"DNSName": "x.y.example"}, False),
        ({"KeyUsages": ["KeyUsageClientAuth"]}, False),
        ({"KeyUsages": ["KeyUsageAny"]}, True),
        ({"CurrentTime": NOW_NS + 11 * 86_400 * 10**9}, False),
    ],
)
def test_a_chain_is_verified_for_what_the_options_ask(chain, options, valid):
    name = "crypto.x509.parse_and_verify_certificates_with_options"
    assert call(name, pem(*chain[:3]), options)[0] is valid


def test_a_chain_without_its_intermediate_or_in_other_hands_is_not_valid(chain):
    root, middle, leaf, _ = chain
    other = ec.generate_private_key(ec.SECP256R1())
    forged = issue("middle", "root", other, other, extensions=[CA])
    verify = "crypto.x509.parse_and_verify_certificates"
    for certificates in ([root, leaf], [root, forged, leaf], [middle], [leaf, middle, root]):
        assert call(verify, pem(*certificates)) == [False, []]
    assert call(verify, "no certificate") == [False, []]


def test_a_name_outside_of_the_issuers_constraints_is_not_valid():
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    limits = x509.NameConstraints([x509.DNSName("example")], [x509.DNSName("no.example")])
    root = issue("root", "root", keys[0], keys[0], extensions=[CA, (limits, True)])
    for name, valid in (("a.example", True), ("no.example", False), ("a.other", False)):
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        leaf = issue("leaf", "root", keys[1], keys[0], extensions=[(names, False)])
        found = call("crypto.x509.parse_and_verify_certificates", pem(root, leaf))
        assert found[0] is valid, name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("YmFkc3RyaW5n", "x509: malformed certificate"),
        ("?", "illegal base64 data at input byte 0"),
        (
            "-----BEGIN FOO-----\nYWJj\n-----END FOO-----\n",
            "PEM block type is 'FOO', expected CERTIFICATE",
        ),
    ],
)
def test_a_text_without_certificates_is_refused_in_gos_words(text, message):
    with pytest.raises(BuiltinError) as caught:
        call("crypto.x509.parse_certificates", text)
    assert caught.value.message == message


def test_a_truncated_certificate_is_an_error_at_every_length(chain):
    data = chain[2].public_bytes(serialization.Encoding.DER)
    from webhook.rego.builtins.x509 import certificate

    for length in range(1, len(data)):
        with pytest.raises(BuiltinError):
            certificate.parse(data[:length])


def test_a_key_pair_must_belong_together(chain):
    found = call("crypto.x509.parse_keypair", pem(chain[2]), key_pem(chain[3]))
    assert found["Leaf"]["Subject"]["CommonName"] == "leaf"
    assert found["PrivateKey"]["D"] == chain[3].private_numbers().private_value
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(BuiltinError, match="private key does not match public key"):
        call("crypto.x509.parse_keypair", pem(chain[2]), key_pem(other))
    another = ed25519.Ed25519PrivateKey.generate()
    with pytest.raises(BuiltinError, match="private key type does not match public key type"):
        call("crypto.x509.parse_keypair", pem(chain[2]), key_pem(another))


def test_private_keys_are_shown_as_web_keys_and_as_gos_structures():
    key = ed25519.Ed25519PrivateKey.generate()
    web_key = call("crypto.x509.parse_rsa_private_key", key_pem(key))
    assert (web_key["kty"], web_key["crv"]) == ("OKP", "Ed25519")
    assert len(call("crypto.parse_private_keys", key_pem(key) * 2)) == 2
    assert call("crypto.parse_private_keys", "") is None
    assert call("crypto.parse_private_keys", "-----BEGIN nothing") == []


def test_a_request_shows_the_names_it_asks_for():
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName("a.b")])
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(named("r"))
        .add_extension(names, False)
        .sign(key, hashes.SHA256())
    )
    text = request.public_bytes(serialization.Encoding.PEM).decode()
    found = call("crypto.x509.parse_certificate_request", text)
    assert (found["DNSNames"], found["Subject"]["CommonName"]) == (["a.b"], "r")
    with pytest.raises(BuiltinError, match="illegal base64 data"):
        call("crypto.x509.parse_certificate_request", "?")
