"""Public and private keys: read from DER as Go reads them, and shown in Go's JSON form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519

from webhook.golang.base64 import encode
from webhook.rego.builtins.keys import der
from webhook.rego.builtins.keys.der import NULL
from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

Kind = Literal["RSA", "DSA", "EC", "Ed25519", "X25519", "unknown"]

ALGORITHMS: Final[dict[Kind, int]] = {"RSA": 1, "DSA": 2, "EC": 3, "Ed25519": 4}
"""Go's PublicKeyAlgorithm constants; every other kind is 0 there."""

_KINDS: Final[dict[tuple[int, ...], Kind]] = {
    (1, 2, 840, 113549, 1, 1, 1): "RSA",
    (1, 2, 840, 10040, 4, 1): "DSA",
    (1, 2, 840, 10045, 2, 1): "EC",
    (1, 3, 101, 112): "Ed25519",
    (1, 3, 101, 110): "X25519",
}
_CURVES: Final[dict[tuple[int, ...], type[ec.EllipticCurve]]] = {
    (1, 3, 132, 0, 33): ec.SECP224R1,
    (1, 2, 840, 10045, 3, 1, 7): ec.SECP256R1,
    (1, 3, 132, 0, 34): ec.SECP384R1,
    (1, 3, 132, 0, 35): ec.SECP521R1,
}


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key: its kind, its numbers, and the loaded key if ``cryptography`` accepts it."""

    kind: Kind
    fields: dict[str, Any]
    spki: bytes

    def json(self) -> Any:
        """Returns the key in Go's JSON form."""
        return self.fields.get("bytes", self.fields)

    def load(self) -> PublicKeyTypes | None:
        """Returns the key for verification; ``None`` where ``cryptography`` refuses it."""
        try:
            return serialization.load_der_public_key(self.spki)
        except (ValueError, UnsupportedAlgorithm):
            return None


def parse_spki(spki: bytes) -> PublicKey:
    """Returns the key of a SubjectPublicKeyInfo (RFC 5280, 4.1.2.7)."""
    fault = "x509: malformed spki"
    reader = der.Reader(spki).enter(der.SEQUENCE, fault)
    algorithm = reader.enter(der.SEQUENCE, "x509: malformed public key algorithm identifier")
    kind = _KINDS.get(algorithm.oid("x509: malformed OID"), "unknown")
    parameters = algorithm.any("x509: malformed parameters")[2] if algorithm else b""
    data = der.right_aligned(reader.bits("x509: malformed subjectPublicKey"))
    return PublicKey(kind, _fields(kind, parameters, data), spki)


def parse_pkix(data: bytes) -> PublicKey:
    """Returns the key of a ``PUBLIC KEY`` block: only kinds that Go's ParsePKIXPublicKey knows."""
    key = parse_spki(data)
    if key.kind == "unknown":
        raise BuiltinError("x509: unknown public key algorithm")
    return key


def _fields(kind: Kind, parameters: bytes, data: bytes) -> dict[str, Any]:
    """Returns a public key's numbers by Go's names; empty for an unknown kind.

    Keys of Ed25519 and X25519 have ``bytes`` alone, in base64. Raises :class:`BuiltinError`, with
    Go's text.
    """
    if kind == "RSA":
        return _rsa(parameters, data)
    if kind == "EC":
        return _ec(parameters, data)
    if kind == "DSA":
        return _dsa(parameters, data)
    if kind in ("Ed25519", "X25519"):
        if parameters:
            raise BuiltinError(f"x509: {kind} key encoded with illegal parameters")
        if len(data) != 32:
            raise BuiltinError(f"x509: wrong {kind} public key size")
        return {"bytes": encode(data)}
    return {}


def _rsa(parameters: bytes, data: bytes) -> dict[str, Any]:
    if parameters != NULL:
        raise BuiltinError("x509: RSA key missing NULL parameters")
    reader = der.Reader(data).enter(der.SEQUENCE, "x509: invalid RSA public key")
    modulus = reader.integer("x509: invalid RSA modulus")
    exponent = reader.integer("x509: invalid RSA public exponent")
    if modulus <= 0:
        raise BuiltinError("x509: RSA modulus is not a positive number")
    if exponent <= 0:
        raise BuiltinError("x509: RSA public exponent is not a positive number")
    return {"N": modulus, "E": exponent}


def _ec(parameters: bytes, data: bytes) -> dict[str, Any]:
    curve = _CURVES.get(der.Reader(parameters).oid("x509: invalid ECDSA parameters"))
    if curve is None:
        raise BuiltinError("x509: unsupported elliptic curve")
    size = (curve().key_size + 7) // 8
    if len(data) != 1 + 2 * size or data[0] != 4:
        raise BuiltinError("ecdsa: invalid uncompressed public key")
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(curve(), data)
    except ValueError:
        raise BuiltinError("ecdsa: point is not on the curve") from None
    numbers = key.public_numbers()
    return {"Curve": {}, "X": numbers.x, "Y": numbers.y}


def _dsa(parameters: bytes, data: bytes) -> dict[str, Any]:
    y = der.Reader(data).integer("x509: invalid DSA public key")
    fault = "x509: invalid DSA parameters"
    reader = der.Reader(parameters).enter(der.SEQUENCE, fault)
    fields = {name: reader.integer(fault) for name in ("P", "Q", "G")} | {"Y": y}
    if min(fields.values()) <= 0:
        raise BuiltinError("x509: zero or negative DSA parameter")
    return fields


def parse_private(label: str, data: bytes) -> PrivateKeyTypes:
    """Returns the key of a PEM block of type ``label``; raises :class:`BuiltinError`, with Go's text."""
    try:
        key = serialization.load_der_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BuiltinError(_private_fault(label)) from None
    if label == "RSA PRIVATE KEY" and not isinstance(key, rsa.RSAPrivateKey):
        other = "EC" if isinstance(key, ec.EllipticCurvePrivateKey) else "PKCS8"
        raise BuiltinError(_other_format(other))
    if label == "EC PRIVATE KEY" and not isinstance(key, ec.EllipticCurvePrivateKey):
        other = "PKCS1" if isinstance(key, rsa.RSAPrivateKey) else "PKCS8"
        raise BuiltinError(_other_format(other))
    return key


def _other_format(name: str) -> str:
    return (
        f"x509: failed to parse private key (use Parse{name}PrivateKey instead for this key format)"
    )


def _private_fault(label: str) -> str:
    if label == "EC PRIVATE KEY":
        return "x509: failed to parse EC private key: asn1: structure error"
    return "asn1: structure error: malformed private key"


def private_json(key: PrivateKeyTypes) -> Any:
    """Returns a private key in Go's JSON form."""
    if isinstance(key, rsa.RSAPrivateKey):
        return _rsa_private_json(key)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        ec_numbers = key.private_numbers()
        public = ec_numbers.public_numbers
        return {"Curve": {}, "X": public.x, "Y": public.y, "D": ec_numbers.private_value}
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return encode(key.private_bytes_raw() + key.public_key().public_bytes_raw())
    return {}


def _rsa_private_json(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    numbers = key.private_numbers()
    return {
        "N": numbers.public_numbers.n,
        "E": numbers.public_numbers.e,
        "D": numbers.d,
        "Primes": [numbers.p, numbers.q],
        "Precomputed": {
            "Dp": numbers.dmp1,
            "Dq": numbers.dmq1,
            "Qinv": numbers.iqmp,
            "CRTValues": [],
        },
    }


def same_public(key: PrivateKeyTypes, public: PublicKey) -> bool | None:
    """Returns whether a private key belongs to a public one; ``None`` when the kinds differ."""
    kinds: dict[Kind, type] = {
        "RSA": rsa.RSAPrivateKey,
        "EC": ec.EllipticCurvePrivateKey,
        "Ed25519": ed25519.Ed25519PrivateKey,
        "DSA": dsa.DSAPrivateKey,
        "X25519": x25519.X25519PrivateKey,
    }
    kind = kinds.get(public.kind)
    if kind is None or not isinstance(key, kind):
        return None
    return bool(key.public_key() == public.load())
