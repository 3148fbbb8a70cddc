"""Reads the keys of tokens, from certificates and JSON web keys; checks and makes signatures.

An algorithm's name is a family (``RS``, ``PS``, ``ES``, ``HS``, ``Ed``) and the bits of a digest.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from webhook.golang.strings import utf8
from webhook.rego.builtins import operands
from webhook.rego.builtins.keys import asymmetric, jwk, pem
from webhook.rego.builtins.x509 import certificate
from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.builtins.registry import Context

_DIGESTS: Final[dict[str, hashes.HashAlgorithm]] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
SECRET_DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
"""The digest of each algorithm with a shared secret."""

TOKEN_ALGORITHMS: Final = frozenset(
    f"{family}{bits}" for family in ("RS", "PS", "ES", "HS") for bits in _DIGESTS
) | {"EdDSA"}
"""The algorithms that tokens may name."""

# Reading a certificate or a key takes about 200 µs, at 50 ns a step.
_STEPS_A_KEY: Final = 4_000
# The length of an RSA key of 2048 bits in a set: its modulus alone has 342 characters.
_KEY_CHARACTERS: Final = 400
_CACHE: Final = "io_jwt_keys"


@dataclass(frozen=True, slots=True)
class _Family:
    """The types of a family's keys, and the error's words for a private key of another family."""

    public: Any
    private: Any
    go_type: str
    failed: str


_RSA: Final = _Family(
    rsa.RSAPublicKey, rsa.RSAPrivateKey, "*rsa.PrivateKey", "failed to produce rsa.PrivateKey"
)
_FAMILIES: Final = {
    "RS": _RSA,
    "PS": _RSA,
    "ES": _Family(
        ec.EllipticCurvePublicKey,
        ec.EllipticCurvePrivateKey,
        "*ecdsa.PrivateKey",
        "keyconv: failed to produce ecdsa.PrivateKey",
    ),
    "Ed": _Family(
        ed25519.Ed25519PublicKey,
        ed25519.Ed25519PrivateKey,
        "ed25519.PrivateKey",
        "failed to produce ed25519.PrivateKey",
    ),
}


def read_keys(context: Context, text: str) -> list[jwk.Key]:
    """Reads a PEM certificate, a PEM public key, or JSON web keys; cached in the query."""
    cached: dict[str, list[jwk.Key]] = context.cache.setdefault(_CACHE, {})
    keys = cached.get(text)
    if keys is None:
        context.charge(_STEPS_A_KEY * (1 + len(text) // _KEY_CHARACTERS))
        keys = cached[text] = _read_keys(text)
    return keys


def _read_keys(text: str) -> list[jwk.Key]:
    block, rest = pem.decode(utf8(text))
    if block is not None:
        return [jwk.Key("", "", "", private=False, material=_pem_key(block, rest))]
    try:
        parsed = jwk.parse(text)
    except BuiltinError as error:
        raise BuiltinError(
            "failed to parse a JWK key (set): jwk.ParseString: failed to parse string: "
            f"{error.message}"
        ) from None
    return [key for key in parsed if not key.algorithm or key.algorithm in TOKEN_ALGORITHMS]


def _pem_key(block: pem.Block, rest: bytes) -> Any:
    if rest:
        raise BuiltinError("extra data after a PEM certificate block")
    if block.label == "CERTIFICATE":
        try:
            fields = certificate.parse(block.data)
        except BuiltinError as error:
            raise BuiltinError(f"failed to parse a PEM certificate: {error.message}") from None
        return asymmetric.parse_spki(
            operands.decode_base64(fields["RawSubjectPublicKeyInfo"])
        ).load()
    if block.label == "PUBLIC KEY":
        try:
            return asymmetric.parse_pkix(block.data).load()
        except BuiltinError as error:
            raise BuiltinError(f"failed to parse a PEM public key: {error.message}") from None
    raise BuiltinError("failed to extract a Key from the PEM certificate")


def candidates(keys: Sequence[jwk.Key], identifier: str, algorithm: str) -> list[jwk.Key]:
    """Returns the keys to try: the key that the token names, else all with a fitting algorithm."""
    if identifier:
        for key in keys:
            if key.identifier == identifier:
                return [key]
    return [key for key in keys if key.algorithm in ("", algorithm)]


def verifier(
    algorithm: str, pss_salt: Any = padding.PSS.AUTO
) -> Callable[[Any, bytes, bytes], bool]:
    """Returns a function that checks a signature by a public key.

    It takes the key, the signed bytes and the signature. A key of another family verifies nothing.
    Only EdDSA names no digest.
    """
    family, digest = algorithm[:2], _DIGESTS.get(algorithm[2:])
    public = _FAMILIES[family].public

    def verify(key: Any, signed: bytes, signature: bytes) -> bool:
        if not isinstance(key, public):
            return False
        try:
            if digest is None:
                key.verify(signature, signed)
            elif family == "ES":
                half = len(signature) // 2
                r = int.from_bytes(signature[:half], "big")
                s = int.from_bytes(signature[half:], "big")
                key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
            elif family == "RS":
                key.verify(signature, signed, padding.PKCS1v15(), digest)
            else:
                pss = padding.PSS(padding.MGF1(digest), pss_salt)
                key.verify(signature, signed, pss, digest)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verify


_STRICT_VERIFIERS: Final = {
    algorithm: verifier(algorithm, padding.PSS.DIGEST_LENGTH)
    for algorithm in sorted(TOKEN_ALGORITHMS)
    if algorithm not in SECRET_DIGESTS
}


def verify_strictly(key: jwk.Key, algorithm: str, signed: bytes, signature: bytes) -> bool:
    """Verifies as ``decode_verify``: by the token's algorithm, also with private or secret keys.

    It is stricter than :func:`verifier` in two cases: 1. A signature by an elliptic curve has the
    curve's length. 2. The salt of a ``PS`` signature has the digest's length.
    """
    if algorithm in SECRET_DIGESTS:
        if not isinstance(key.material, bytes):
            return False
        expected = hmac.digest(key.material, signed, SECRET_DIGESTS[algorithm])
        return hmac.compare_digest(signature, expected)
    if algorithm not in _STRICT_VERIFIERS or isinstance(key.material, bytes):
        return False
    public = key.material.public_key() if key.private else key.material
    if isinstance(public, ec.EllipticCurvePublicKey):
        size = (public.curve.key_size + 7) // 8
        if len(signature) != 2 * size:
            return False
    return _STRICT_VERIFIERS[algorithm](public, signed, signature)


def parse_signing(text: str) -> jwk.Key:
    """Returns the first key of a JSON web key or set."""
    keys = jwk.parse(text)
    if not keys:
        raise BuiltinError("no keys found in JWK set")
    return keys[0]


def sign(key: jwk.Key, algorithm: str, signed: bytes) -> bytes:
    """Returns the signature of ``signed``; raises BuiltinError for a key of another family."""
    if algorithm in SECRET_DIGESTS:
        if not isinstance(key.material, bytes):
            raise _wrong_key(key, "[]byte", "keyconv: failed to produce []byte")
        return hmac.digest(key.material, signed, SECRET_DIGESTS[algorithm])
    family, digest = algorithm[:2], _DIGESTS.get(algorithm[2:])
    if not isinstance(key.material, (types := _FAMILIES[family]).private):
        raise _wrong_key(key, types.go_type, types.failed)
    if digest is None:
        return bytes(key.material.sign(signed))
    if family == "ES":
        size = (key.material.curve.key_size + 7) // 8
        r, s = decode_dss_signature(key.material.sign(signed, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    if family == "RS":
        return bytes(key.material.sign(signed, padding.PKCS1v15(), digest))
    pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
    return bytes(key.material.sign(signed, pss, digest))


def _wrong_key(key: jwk.Key, expected: str, failed: str) -> BuiltinError:
    name = key.type_name
    return BuiltinError(
        f"jwsbb.Sign: invalid key type {name}. {expected} is required: {failed} from {name}: "
        f"jwk.Export: no suitable exporter found for key type '{name}'"
    )
