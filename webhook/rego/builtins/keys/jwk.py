"""JSON web keys (RFC 7517), with the errors of OPA's library."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa, x448, x25519

from webhook.golang.base64 import encode_url
from webhook.rego.builtins import go_json
from webhook.rego.errors import BuiltinError
from webhook.rego.run.text import json_text
from webhook.values import dataclass

KEYS_MAX: Final = 1_000
"""The most keys of a set that are read; the library has no limit, and each takes 0.5 ms."""

_CURVES: Final[dict[str, ec.EllipticCurve]] = {
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}
_OKP: Final[dict[str, tuple[Any, Any, int]]] = {
    "Ed25519": (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey, 32),
    "X25519": (x25519.X25519PublicKey, x25519.X25519PrivateKey, 32),
    "Ed448": (ed448.Ed448PublicKey, ed448.Ed448PrivateKey, 57),
    "X448": (x448.X448PublicKey, x448.X448PrivateKey, 56),
}
_ALGORITHMS: Final = frozenset(
    {"none", "dir", "RSA1_5", "ECDH-ES"}
    | {f"{family}{bits}" for family in ("HS", "RS", "PS", "ES") for bits in (256, 384, 512)}
    | {"ES256K", "EdDSA", "EdDSAEd25519", "EdDSAEd448", "Ed25519", "Ed448"}
    | {"A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512"}
    | {f"A{bits}{mode}" for bits in (128, 192, 256) for mode in ("GCM", "KW", "GCMKW")}
    | {"RSA-OAEP", "RSA-OAEP-256", "RSA-OAEP-384", "RSA-OAEP-512"}
    | {f"ECDH-ES+A{bits}KW" for bits in (128, 192, 256)}
    | {"PBES2-HS256+A128KW", "PBES2-HS384+A192KW", "PBES2-HS512+A256KW"}
)
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*|[A-Za-z0-9+/]*")
_REQUIRED: Final = {"RSA": ("e", "n"), "EC": ("crv", "x", "y"), "oct": ("k",), "OKP": ("crv", "x")}
"""The required fields of each kind of key, in the order in which the library misses them."""
_BYTES: Final = frozenset(("e", "n", "d", "p", "q", "dp", "dq", "qi", "x", "y", "k"))
_GO_KINDS: Final = {bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a set: its identity, and the key itself as ``cryptography`` or bytes hold it.

    The texts are empty for a key that a PEM block holds alone.
    """

    kind: str
    algorithm: str
    identifier: str
    private: bool
    material: Any

    @property
    def type_name(self) -> str:
        """The type's name in the library's messages."""
        names = {"RSA": "rsa", "EC": "ecdsa", "OKP": "okp"}
        if self.kind == "oct":
            return "*jwk.symmetricKey"
        return f"*jwk.{names[self.kind]}{'Private' if self.private else 'Public'}Key"


def parse(text: str) -> list[Key]:
    """Returns the keys of a set, or the single key; raises :class:`BuiltinError`, with the library's text.

    There are four cases: 1. no JSON, or no object. 2. a single key. 3. a set with a faulty key: its
    index is in the error. 4. a set of at most :data:`KEYS_MAX` keys.
    """
    try:
        document = go_json.decode(text)
    except BuiltinError as error:
        raise _sole(
            f"jwk.Parse: failed to probe data: probe: failed to unmarshal data: {error}"
        ) from None
    if not isinstance(document, dict):
        raise _sole(
            "jwk.Parse: failed to probe data: probe: failed to unmarshal data: json: cannot "
            f"unmarshal {_go_kind(document)} into Go value of type struct "
            '{ D json.RawMessage "json:\\"d,omitempty\\""; Kty string "json:\\"kty\\"" }'
        )
    if "keys" not in document:
        try:
            return [_key(document)]
        except BuiltinError as error:
            raise _sole(error.message) from None
    return _set(document["keys"])


def _sole(message: str) -> BuiltinError:
    return BuiltinError(f"jwk.Parse: failed to parse sole key: jwk.ParseKey: {message}")


def _set(members: Any) -> list[Key]:
    fault = "jwk.Parse: failed to unmarshal JWK set: failed to decode"
    if not isinstance(members, list):
        raise BuiltinError(f"{fault} \"keys\": expected '[' but got {json_text(members)}")
    if len(members) > KEYS_MAX:
        raise BuiltinError(f'{fault} "keys": more than {KEYS_MAX} keys')
    keys = []
    for index, member in enumerate(members):
        try:
            keys.append(_key(member))
        except BuiltinError as error:
            message = f'{fault} key #{index} in "keys": jwk.ParseKey: {error.message}'
            raise BuiltinError(message) from None
    return keys


def _key(document: Any) -> Key:
    kind: Any = document.get("kty", "") if isinstance(document, dict) else ""
    if not isinstance(kind, str):
        raise BuiltinError(
            "jwk.Parse: failed to probe data: probe: failed to unmarshal data: json: cannot "
            f"unmarshal {_go_kind(kind)} into Go value of type string"
        )
    if kind not in _REQUIRED:
        raise BuiltinError(f"invalid key type from JSON ({kind})")
    private = "d" in document and kind != "oct"
    unread = Key(kind, "", "", private, None)
    try:
        decoded = _decoded(document, _REQUIRED[kind])
    except BuiltinError as error:
        prefix = f"failed to unmarshal JSON into key ({unread.type_name}): "
        raise BuiltinError(f"{prefix}{prefix}{error.message}") from None
    try:
        material = _MATERIALS[kind](document, decoded)
    except (BuiltinError, ValueError) as error:
        message = error.message if isinstance(error, BuiltinError) else str(error)
        prefix = "jwk.Parse: key validation failed: key validation failed: "
        raise BuiltinError(f"{prefix}{message}") from None
    return Key(kind, document.get("alg", ""), document.get("kid", ""), private, material)


def _decoded(document: dict[str, Any], required: tuple[str, ...]) -> dict[str, bytes]:
    """Returns the members that are bytes; all strings are checked to be strings."""
    decoded = {}
    for name, value in document.items():
        if name not in _BYTES and name not in ("alg", "kid", "use", "crv"):
            continue
        if not isinstance(value, str):
            raise BuiltinError(
                f"failed to decode value for key {name}: error reading next value: json: cannot "
                f"unmarshal {_go_kind(value)} into Go value of type string"
            )
        if name in _BYTES:
            decoded[name] = _base64(name, value)
        elif name == "alg" and value not in _ALGORITHMS:
            raise BuiltinError(
                f'failed to decode value for key alg: invalid key value: "{value}": '
                "invalid key algorithm"
            )
        elif name == "crv" and value not in _CURVES and value not in _OKP:
            raise BuiltinError(
                f'failed to decode value for key crv: unknown EllipticCurveAlgorithm: "{value}"'
            )
    for name in required:
        if name not in document:
            raise BuiltinError(f"required field {name} is missing")
    return decoded


def _base64(name: str, value: str) -> bytes:
    """Returns the bytes of a text in either alphabet, padded or not."""
    bare = value.rstrip("=")
    if not _BASE64.fullmatch(bare) or len(bare) % 4 == 1:
        raise BuiltinError(
            f"failed to decode value for key {name}: expected base64 encoded []byte (string)"
        )
    return base64.b64decode(
        bare + "=" * (-len(bare) % 4), altchars=b"-_" if "-" in bare or "_" in bare else None
    )


def _go_kind(value: Any) -> str:
    return "null" if value is None else _GO_KINDS.get(type(value), "string")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _rsa(document: dict[str, Any], decoded: dict[str, bytes]) -> Any:
    public = rsa.RSAPublicNumbers(_number(decoded["e"]), _number(decoded["n"]))
    if "d" not in document:
        try:
            return public.public_key()
        except ValueError:
            return None  # a key too weak to load: it verifies nothing, as in Go
    d = _number(decoded["d"])
    if "p" in decoded and "q" in decoded:
        p, q = _number(decoded["p"]), _number(decoded["q"])
    else:
        p, q = rsa.rsa_recover_prime_factors(public.n, public.e, d)
    return rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public
    ).private_key()


def _ec(document: dict[str, Any], decoded: dict[str, bytes]) -> Any:
    name = document["crv"]
    curve = _CURVES.get(name)
    side = "Private" if "d" in document else "Public"
    if curve is None:
        raise BuiltinError(f"jwk.ECDSA{side}Key: unsupported curve {name}")
    size = (curve.key_size + 7) // 8
    for axis in ("x", "y"):
        if len(decoded[axis]) != size:
            raise BuiltinError(
                f'jwk.ECDSA{side}Key: invalid "{axis}" length ({len(decoded[axis])}) '
                f'for curve "{name}"'
            )
    public = ec.EllipticCurvePublicNumbers(_number(decoded["x"]), _number(decoded["y"]), curve)
    if "d" not in document:
        return public.public_key()
    return ec.EllipticCurvePrivateNumbers(_number(decoded["d"]), public).private_key()


def _oct(_document: dict[str, Any], decoded: dict[str, bytes]) -> Any:
    if not decoded["k"]:
        raise BuiltinError('jwk.SymmetricKey: missing "k" field')
    return decoded["k"]


def _okp(document: dict[str, Any], decoded: dict[str, bytes]) -> Any:
    name = document["crv"]
    side = "Private" if "d" in document else "Public"
    if name not in _OKP:
        raise BuiltinError(f"jwk.OKP{side}Key: invalid curve algorithm {name}")
    public, private, size = _OKP[name]
    if len(decoded["x"]) != size:
        raise BuiltinError(f"jwk.OKP{side}Key: {name.lower()}: wrong public key size")
    if "d" not in document:
        return public.from_public_bytes(decoded["x"])
    if len(decoded["d"]) != size:
        raise BuiltinError(f"jwk.OKPPrivateKey: {name.lower()}: wrong private key size")
    return private.from_private_bytes(decoded["d"])


_MATERIALS: Final[dict[str, Any]] = {"RSA": _rsa, "EC": _ec, "oct": _oct, "OKP": _okp}


def from_private_key(key: Any) -> dict[str, str]:
    """Returns the JSON web key of a private key; raises :class:`BuiltinError` for other kinds of keys."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.private_numbers()
        public = numbers.public_numbers
        fields = {"n": public.n, "e": public.e, "d": numbers.d, "p": numbers.p, "q": numbers.q}
        fields |= {"dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp}
        return {"kty": "RSA"} | {name: _shortest(value) for name, value in fields.items()}
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return _ec_private(key)
    for name, (_, private, _) in _OKP.items():
        if isinstance(key, private):
            public_bytes = key.public_key().public_bytes_raw()
            secret = key.private_bytes(
                serialization.Encoding.Raw,
                serialization.PrivateFormat.Raw,
                serialization.NoEncryption(),
            )
            texts = {"x": encode_url(public_bytes), "d": encode_url(secret)}
            return {"kty": "OKP", "crv": name} | texts
    raise BuiltinError(f"jwk.Import: failed to convert {type(key).__name__} to jwk.Key")


def _ec_private(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    size = (key.curve.key_size + 7) // 8
    names = [name for name, curve in _CURVES.items() if curve.name == key.curve.name]
    if not names:
        raise BuiltinError(f"jwk.Import: unsupported curve {key.curve.name}")
    numbers = key.private_numbers()
    public = numbers.public_numbers
    fields = {"x": public.x, "y": public.y, "d": numbers.private_value}
    return {"kty": "EC", "crv": names[0]} | {
        name: encode_url(value.to_bytes(size, "big")) for name, value in fields.items()
    }


def _shortest(value: int) -> str:
    return encode_url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
