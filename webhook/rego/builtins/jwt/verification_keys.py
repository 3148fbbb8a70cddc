"""Keys of tokens: read from certificates and JSON web keys; signatures made and checked."""

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
    from collections.abc import Callable, Iterable

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
# A key in a set is at least this long.
_KEY_BYTES_MIN: Final = 40
_CACHE: Final = "io_jwt_keys"
_KEYS: Final[dict[str, tuple[Any, Any]]] = {
    "RS": (rsa.RSAPublicKey, rsa.RSAPrivateKey),
    "PS": (rsa.RSAPublicKey, rsa.RSAPrivateKey),
    "ES": (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
    "Ed": (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey),
}
"""The types of a family's public and private keys."""

_KEY_FAULTS: Final = {
    "RS": ("*rsa.PrivateKey", "failed to produce rsa.PrivateKey"),
    "PS": ("*rsa.PrivateKey", "failed to produce rsa.PrivateKey"),
    "ES": ("*ecdsa.PrivateKey", "keyconv: failed to produce ecdsa.PrivateKey"),
    "Ed": ("ed25519.PrivateKey", "failed to produce ed25519.PrivateKey"),
}
"""The expected type and the reason in the error for a private key of another family."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key, with the algorithm and key ID from its set, if any."""

    material: Any
    algorithm: str = ""
    identifier: str = ""
    private: bool = False

    @property
    def public_only(self) -> Any:
        """Returns the public key; None for a private key, which ``io.jwt.verify_*`` refuse."""
        return None if self.private else self.material


def read_keys(context: Context, text: str) -> list[VerificationKey]:
    """Reads a PEM certificate, a PEM public key, or JSON web keys; cached in the query."""
    cached: dict[str, list[VerificationKey]] = context.cache.setdefault(_CACHE, {})
    keys = cached.get(text)
    if keys is None:
        context.charge(_STEPS_A_KEY * (1 + len(text) // _KEY_BYTES_MIN // 10))
        keys = cached[text] = _read_keys(text)
    return keys


def _read_keys(text: str) -> list[VerificationKey]:
    block, rest = pem.decode(utf8(text))
    if block is not None:
        return [VerificationKey(_pem_key(block, rest))]
    try:
        parsed = jwk.parse(text)
    except BuiltinError as error:
        raise BuiltinError(
            "failed to parse a JWK key (set): jwk.ParseString: failed to parse string: "
            f"{error.message}"
        ) from None
    return [
        VerificationKey(key.material, key.algorithm, key.identifier, key.private)
        for key in parsed
        if not key.algorithm or key.algorithm in TOKEN_ALGORITHMS
    ]


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


def candidates(
    keys: Iterable[VerificationKey], identifier: str, algorithm: str
) -> list[VerificationKey]:
    """Returns the keys to try: the key that the token names, else all with a fitting algorithm."""
    members = list(keys)
    if identifier:
        for key in members:
            if key.identifier == identifier:
                return [key]
    return [key for key in members if key.algorithm in ("", algorithm)]


def verifier(algorithm: str) -> Callable[[Any, bytes, bytes], bool]:
    """Returns a function that checks a signature by a key, the signed bytes and the signature."""
    family, digest = algorithm[:2], _DIGESTS.get(algorithm[2:])
    public = _KEYS[family][0]

    def verify(key: Any, signed: bytes, signature: bytes) -> bool:
        if not isinstance(key, public):
            return False
        try:
            _verify(family, digest, key, signed, signature)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verify


def _verify(
    family: str, digest: hashes.HashAlgorithm | None, key: Any, signed: bytes, signature: bytes
) -> None:
    """Raises unless the key made the signature."""
    if digest is None:
        key.verify(signature, signed)
    elif family == "ES":
        half = len(signature) // 2
        r, s = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
        key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
    elif family == "RS":
        key.verify(signature, signed, padding.PKCS1v15(), digest)
    else:
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.AUTO)
        key.verify(signature, signed, pss, digest)


_VERIFIERS: Final = {
    algorithm: verifier(algorithm)
    for algorithm in sorted(TOKEN_ALGORITHMS)
    if algorithm not in SECRET_DIGESTS
}


def verify_strictly(key: VerificationKey, algorithm: str, signed: bytes, signature: bytes) -> bool:
    """Verifies as ``decode_verify``: by the token's algorithm, also with private or secret keys."""
    if algorithm in SECRET_DIGESTS:
        if not isinstance(key.material, bytes):
            return False
        expected = hmac.digest(key.material, signed, SECRET_DIGESTS[algorithm])
        return hmac.compare_digest(signature, expected)
    if algorithm not in _VERIFIERS or isinstance(key.material, bytes):
        return False
    public = key.material.public_key() if key.private else key.material
    if isinstance(public, ec.EllipticCurvePublicKey):
        size = (public.curve.key_size + 7) // 8
        if len(signature) != 2 * size:
            return False
    if algorithm.startswith("PS") and isinstance(public, rsa.RSAPublicKey):
        return _verify_pss_of_digest_length(public, algorithm, signed, signature)
    return _VERIFIERS[algorithm](public, signed, signature)


def _verify_pss_of_digest_length(
    key: rsa.RSAPublicKey, algorithm: str, signed: bytes, signature: bytes
) -> bool:
    digest = _DIGESTS[algorithm[2:]]
    pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
    try:
        key.verify(signature, signed, pss, digest)
    except InvalidSignature:
        return False
    return True


def parse_signing(text: str) -> jwk.Key:
    """Returns the first key of a JSON web key or set."""
    keys = jwk.parse(text)
    if not keys:
        raise BuiltinError("no keys found in JWK set")
    return keys[0]


def sign(key: jwk.Key, algorithm: str, signed: bytes) -> bytes:
    """Returns the signature of ``signed``; raises :class:`BuiltinError` for a key of another kind."""
    if algorithm in SECRET_DIGESTS:
        if not isinstance(key.material, bytes):
            raise _wrong_key(key, "[]byte", "keyconv: failed to produce []byte")
        return hmac.digest(key.material, signed, SECRET_DIGESTS[algorithm])
    family, digest = algorithm[:2], _DIGESTS.get(algorithm[2:])
    if not isinstance(key.material, _KEYS[family][1]):
        expected, failed = _KEY_FAULTS[family]
        raise _wrong_key(key, expected, failed)
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
