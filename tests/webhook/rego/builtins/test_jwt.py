"""Tokens signed, decoded and verified."""

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from webhook.rego.builtins.keys.jwk import from_private_key
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext

SECRET = {"kty": "oct", "k": "AQ"}


def call(name, *operands, now_ns=10**18):
    return BUILTINS[name].function(EvaluationContext(now_ns=now_ns), *operands)


def sign(key, payload, **headers):
    return call("io.jwt.encode_sign", {"typ": "JWT", **headers}, payload, key)


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


KEYS = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "PS384": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def test_a_token_is_the_headers_and_the_payload_as_sorted_json():
    # OPA 1.22's answer.
    assert call("io.jwt.encode_sign", {"alg": "HS256"}, {"a": 1, "b": "<é>"}, SECRET) == (
        "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxLCJiIjoiXHUwMDNjw6lcdTAwM2UifQ."
        "crtupNXOw-Kx9uraqS9an8zuB4Xf3-T1uGIWoqDwO4o"
    )


@pytest.mark.parametrize("algorithm", KEYS)
def test_what_is_signed_is_verified_with_the_public_key_alone(algorithm):
    key = KEYS[algorithm]
    token = sign(from_private_key(key), {"a": 1}, alg=algorithm)
    certificate = public_pem(key).decode()
    assert call(f"io.jwt.verify_{algorithm.lower()}", token, certificate)
    expected = [True, {"alg": algorithm, "typ": "JWT"}, {"a": 1}]
    assert call("io.jwt.decode_verify", token, {"cert": certificate}) == expected
    header, payload, signature = token.split(".")
    forged = ".".join((header, payload + "AA", signature))
    assert not call(f"io.jwt.verify_{algorithm.lower()}", forged, certificate)


def test_a_key_of_another_kind_verifies_nothing_and_cannot_sign():
    token = sign(from_private_key(KEYS["ES256"]), {}, alg="ES256")
    assert not call("io.jwt.verify_es256", token, public_pem(KEYS["RS256"]).decode())
    with pytest.raises(BuiltinError, match=r"\*ecdsa\.PrivateKey is required"):
        sign(SECRET, {}, alg="ES256")


def test_a_private_web_key_verifies_in_decode_verify_only():
    key = json.dumps(from_private_key(KEYS["ES256"]))
    token = sign(from_private_key(KEYS["ES256"]), {}, alg="ES256")
    assert not call("io.jwt.verify_es256", token, key)
    assert call("io.jwt.decode_verify", token, {"cert": key})[0]


def test_the_key_that_the_token_names_is_the_only_one_tried():
    right = from_private_key(KEYS["ES256"]) | {"kid": "right"}
    wrong = from_private_key(ec.generate_private_key(ec.SECP256R1())) | {"kid": "wrong"}
    keys = json.dumps({"keys": [wrong, right]})
    named = sign(right, {}, alg="ES256", kid="right")
    misnamed = sign(right, {}, alg="ES256", kid="wrong")
    assert call("io.jwt.decode_verify", named, {"cert": keys})[0]
    assert not call("io.jwt.decode_verify", misnamed, {"cert": keys})[0]


@pytest.mark.parametrize(
    ("claims", "constraints", "valid"),
    [
        ({}, {}, True),
        ({"exp": 1_000_000_001}, {}, True),
        ({"exp": 1_000_000_000}, {}, False),
        ({"nbf": 1_000_000_000}, {}, True),
        ({"nbf": 1_000_000_001}, {}, False),
        ({"exp": 10}, {"time": 9_000_000_000}, True),
        ({"iss": "me"}, {"iss": "me"}, True),
        ({}, {"iss": "me"}, False),
        ({"aud": "us"}, {}, False),
        ({"aud": ["x", "us"]}, {"aud": "us"}, True),
        ({}, {"aud": "us"}, False),
        ({}, {"alg": "HS512"}, False),
    ],
)
def test_registered_claims_are_held_against_the_constraints(claims, constraints, valid):
    token = sign(SECRET, claims, alg="HS256")
    found = call("io.jwt.decode_verify", token, {"secret": "\x01", **constraints})
    assert found[0] is valid
    assert found[1:] == ([{"alg": "HS256", "typ": "JWT"}, claims] if valid else [{}, {}])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({}, "no key constraint"),
        ({"foo": 1}, "unknown token validation constraint: foo"),
        ({"secret": 1}, "secret constraint: must be a string"),
        ({"secret": "x", "cert": '{"keys":[]}'}, "duplicate key constraints"),
        ({"secret": "x", "time": -1}, "token time constraint: must not be negative"),
    ],
)
def test_constraints_that_make_no_sense_are_errors(constraints, message):
    with pytest.raises(BuiltinError) as caught:
        call("io.jwt.decode_verify", "a.b.c", constraints)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("a", "encoded JWT had no period separators"),
        ("a.b", "encoded JWT must have 3 sections, found 2"),
        ("!!!!.b.c", "JWT header had invalid encoding: illegal base64 data at input byte 0"),
        ("e30.W10.c", "decoded JSON type was not an Object"),
        ("e30.e30.c", "JWT signature had invalid encoding: illegal base64url string: c"),
        ("eyJlbmMiOjF9.e30.YWI", "JWT is a JWE object, which is not supported"),
        ("bm9wZQ.e30.YWI", ("bad JWT header: invalid JSON: invalid character 'o' in literal null "
         "(expecting 'u')")),
    ],
)  # fmt: skip
def test_a_text_that_is_no_token_is_refused_in_opas_words(token, message):
    with pytest.raises(BuiltinError) as caught:
        call("io.jwt.decode", token)
    assert caught.value.message == message


def test_tokens_within_tokens_are_followed_to_a_bound():
    token = sign(SECRET, {"deep": True}, alg="HS256")
    for _ in range(3):
        token = call(
            "io.jwt.encode_sign_raw",
            '{"alg":"HS256","typ":"text","cty":"JWT"}',
            token,
            json.dumps(SECRET),
        )
    assert call("io.jwt.decode", token)[1] == {"deep": True}
    assert call("io.jwt.decode_verify", token, {"secret": "\x01"})[2] == {"deep": True}
