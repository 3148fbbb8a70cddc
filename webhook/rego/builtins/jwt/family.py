"""``io.jwt.*``: JSON web tokens (OPA reference, "Tokens"; RFC 7519)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.base64 import encode_url
from webhook.golang.strings import from_utf8, utf8
from webhook.rego.builtins import go_json
from webhook.rego.builtins.jwt import verification_keys as jwt_keys
from webhook.rego.builtins.jwt.verification_keys import TOKEN_ALGORITHMS
from webhook.rego.builtins.operands import decode_base64url
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.text import json_text
from webhook.rego.run.values import RegoObject, Value, compare
from webhook.rego.types import BOOLEAN, NAMED, OBJECT, STRING, static_array
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.rego.builtins.keys.jwk import Key

# Checking a signature takes about 100 µs, at 50 ns a step.
_STEPS_A_SIGNATURE: Final = 2_000
_BYTES_A_STEP: Final = 16
# Tokens inside tokens: each is a third shorter than the one around it, so few
# can be nested; the bound keeps a loop over them short.
_NESTING_MAX: Final = 32
# The library's parser of headers takes these for numbers.
_FASTJSON_NUMBER: Final = re.compile(r"\s*[-+.eE0-9]+\s*")
_UNVERIFIED: Final[tuple[Value, ...]] = (False, {}, {})


@dataclass(frozen=True, slots=True)
class _Token:
    """The three sections of a token, still encoded."""

    header: str
    payload: str
    signature: str

    @property
    def signed(self) -> bytes:
        """Returns the bytes that the signature signs."""
        return utf8(f"{self.header}.{self.payload}")

    def decoded_header(self) -> dict[str, Value]:
        """Returns the header's object."""
        text = _section(self.header, "header")
        try:
            header = _json_object(text)
        except BuiltinError as error:
            raise BuiltinError(f"bad JWT header: {error.message}") from None
        if "enc" in header:
            raise BuiltinError("JWT is a JWE object, which is not supported")
        return header


@dataclass(slots=True)
class _Header:
    """The header's parameters that are known (RFC 7515, 4.1)."""

    alg: str = ""
    kid: str = ""
    typ: str = ""
    cty: str = ""
    crit: frozenset[str] = frozenset()
    unknown: list[str] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Returns whether there is an algorithm, and no unknown critical parameter."""
        return bool(self.alg) and not self.crit.intersection(self.unknown)


def _split(context: Context, text: str) -> _Token:
    context.charge(len(text) // _BYTES_A_STEP)
    if "." not in text:
        raise BuiltinError("encoded JWT had no period separators")
    sections = text.split(".")
    if len(sections) != 3:
        raise BuiltinError(f"encoded JWT must have 3 sections, found {len(sections)}")
    return _Token(*sections)


def _section(text: str, name: str) -> str:
    try:
        return from_utf8(decode_base64url(text))
    except BuiltinError as error:
        raise BuiltinError(f"JWT {name} had invalid encoding: {error.message}") from None


def _json_object(text: str) -> dict[str, Value]:
    try:
        value = go_json.decode(text)
    except BuiltinError as error:
        raise BuiltinError(f"invalid JSON: {error.message}") from None
    if not isinstance(value, dict):
        raise BuiltinError("decoded JSON type was not an Object")
    return value


def _header(parameters: dict[str, Value]) -> _Header:
    header = _Header()
    for name, value in sorted(parameters.items()):
        if name in ("alg", "kid", "typ", "cty"):
            if not isinstance(value, str):
                raise BuiltinError(f"{name}: must be a string")
            setattr(header, name, value)
        elif name == "crit":
            header.crit = _critical(value)
        else:
            header.unknown.append(name)
    return header


def _critical(value: Value) -> frozenset[str]:
    if not isinstance(value, list):
        raise BuiltinError("crit: must be a list")
    names: set[str] = set()
    for item in value:
        if not isinstance(item, str):
            break
        names.add(item)
    if not names:
        raise BuiltinError("crit: must be a nonempty list")
    return frozenset(names)


@builtin("io.jwt.decode", STRING, result=static_array(OBJECT, OBJECT, STRING), context=True)
def jwt_decode(context: Context, jwt: str) -> list[Value]:
    """Returns header, payload and signature (in hexadecimal) of a token, unverified."""
    text = jwt
    for _ in range(_NESTING_MAX):
        token = _split(context, text)
        header = token.decoded_header()
        payload = _section(token.payload, "payload")
        content_type = header.get("cty")
        if content_type is not None and not isinstance(content_type, str):
            raise BuiltinError("cty: must be a string")
        if content_type != "JWT":
            claims = _json_object(payload)
            return [header, claims, utf8(_section(token.signature, "signature")).hex()]
        text = payload.strip("\"'")
    raise BuiltinError(f"tokens nested more than {_NESTING_MAX} deep")


# --- verification by one algorithm -----------------------------------------------------------


def _verify_with_keys(
    context: Context, jwt: str, certificate: str, verify: Callable[[Any, bytes, bytes], bool]
) -> bool:
    token = _split(context, jwt)
    keys = jwt_keys.read_keys(context, certificate)
    signature = decode_base64url(token.signature)
    header = _header(token.decoded_header())
    for key in jwt_keys.candidates(keys, header.kid, header.alg):
        context.charge(_STEPS_A_SIGNATURE)
        if not key.private and verify(key.material, token.signed, signature):
            return True
    return False


def _register_public(name: str, algorithm: str) -> None:
    verify = jwt_keys.verifier(algorithm)

    @builtin(f"io.jwt.verify_{name}", STRING, STRING, result=BOOLEAN, context=True)
    def jwt_verify(context: Context, jwt: str, certificate: str) -> bool:
        return _verify_with_keys(context, jwt, certificate, verify)

    jwt_verify.__doc__ = (
        f"Whether the token's {algorithm} signature is by a key of the certificate."
    )


for _name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"):
    _register_public(_name.lower(), _name)
_register_public("eddsa", "EdDSA")


def _register_secret(name: str, digest: str) -> None:
    @builtin(f"io.jwt.verify_{name}", STRING, STRING, result=BOOLEAN, context=True)
    def jwt_verify(context: Context, jwt: str, secret: str) -> bool:
        token = _split(context, jwt)
        expected = hmac.digest(utf8(secret), token.signed, digest)
        return hmac.compare_digest(decode_base64url(token.signature), expected)

    jwt_verify.__doc__ = f"Whether the token's signature is by the secret, with {digest}."


for _bits in ("256", "384", "512"):
    _register_secret(f"hs{_bits}", f"sha{_bits}")


# --- decode_verify ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Constraints:
    """The constraints that a token must meet."""

    time_ns: float
    keys: list[Key] | None = None
    secret: str = ""
    alg: str = ""
    iss: str = ""
    aud: str = ""


@builtin(
    "io.jwt.decode_verify",
    STRING,
    NAMED,
    result=static_array(BOOLEAN, OBJECT, OBJECT),
    context=True,
    deterministic=False,
)
def jwt_decode_verify(context: Context, jwt: str, constraints: Value) -> list[Value]:
    """``[true, header, payload]`` of a token that is signed and valid; else ``[false, {}, {}]``."""
    required = _constraints(context, constraints)
    text = jwt
    for _ in range(_NESTING_MAX):
        token = _split(context, text)
        parameters = token.decoded_header()
        header = _header(parameters)
        if not header.is_valid or (required.alg and required.alg != header.alg):
            return list(_UNVERIFIED)
        if not _is_signed(context, token, header, required):
            return list(_UNVERIFIED)
        payload = _section(token.payload, "payload")
        if header.cty.upper() != "JWT":
            claims = _json_object(payload)
            if not _meets(claims, required):
                return list(_UNVERIFIED)
            return [True, parameters, claims]
        text = payload
    raise BuiltinError(f"tokens nested more than {_NESTING_MAX} deep")


def _constraints(context: Context, given: Value) -> _Constraints:
    required = _Constraints(time_ns=-1)
    for name, value in sorted(given.items(), key=lambda item: str(item[0])):
        if name == "time":
            required.time_ns = _time(value)
        elif name in ("cert", "secret", "alg", "iss", "aud"):
            if not isinstance(value, str):
                raise BuiltinError(f"{name} constraint: must be a string")
            if name == "cert":
                required.keys = jwt_keys.read_keys(context, value)
            else:
                setattr(required, name, value)
        else:
            raise BuiltinError(f"unknown token validation constraint: {name}")
    if required.time_ns == -1:
        required.time_ns = context.now_ns
    if required.keys is not None and required.secret:
        raise BuiltinError("duplicate key constraints")
    if required.keys is None and not required.secret:
        raise BuiltinError("no key constraint")
    return required


def _time(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BuiltinError("token time constraint: must be a number")
    if value < 0:
        raise BuiltinError("token time constraint: must not be negative")
    return value


def _is_signed(context: Context, token: _Token, header: _Header, required: _Constraints) -> bool:
    signature = decode_base64url(token.signature)
    if required.keys is None:
        digest = jwt_keys.SECRET_DIGESTS.get(header.alg)
        if digest is None:
            return False
        expected = hmac.digest(utf8(required.secret), token.signed, digest)
        return hmac.compare_digest(signature, expected)
    for key in jwt_keys.candidates(required.keys, header.kid, header.alg):
        context.charge(_STEPS_A_SIGNATURE)
        if jwt_keys.verify_strictly(key, header.alg, token.signed, signature):
            return True
    return False


def _meets(claims: dict[str, Value], required: _Constraints) -> bool:
    """Returns whether the registered claims (RFC 7519, 4.1) meet the constraints."""
    if required.iss:
        issuer = claims.get("iss", "")
        if not isinstance(issuer, str):
            raise BuiltinError("iss value must be a string")
        if issuer != required.iss:
            return False
    if not _is_audience(claims, required.aud):
        return False
    seconds = required.time_ns / 1_000_000_000
    for name, before in (("exp", True), ("nbf", False)):
        if name not in claims:
            continue
        limit = claims[name]
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            raise BuiltinError(f"{name} value must be a number")
        order = compare(seconds, limit)
        if (before and order >= 0) or (not before and order < 0):
            return False
    return True


def _is_audience(claims: dict[str, Value], expected: str) -> bool:
    if "aud" not in claims:
        return not expected
    audience = claims["aud"]
    if isinstance(audience, list):
        return any(isinstance(item, str) and item == expected for item in audience)
    return isinstance(audience, str) and audience == expected


# --- signing ---------------------------------------------------------------------------------


@builtin(
    "io.jwt.encode_sign",
    NAMED,
    NAMED,
    NAMED,
    result=STRING,
    context=True,
    deterministic=False,
)
def jwt_encode_sign(context: Context, headers: Value, payload: Value, key: Value) -> str:
    """Returns a token with these headers and this payload, signed with a JSON web key."""
    return _sign(context, json_text(headers), json_text(payload), json_text(key))


@builtin(
    "io.jwt.encode_sign_raw",
    STRING,
    STRING,
    STRING,
    result=STRING,
    context=True,
    deterministic=False,
)
def jwt_encode_sign_raw(context: Context, headers: str, payload: str, key: str) -> str:
    """Sign JSON texts, which enter the token byte by byte."""
    return _sign(context, headers, payload, key)


def _sign(context: Context, headers: str, payload: str, key_text: str) -> str:
    context.charge(_STEPS_A_SIGNATURE + (len(headers) + len(payload)) // _BYTES_A_STEP)
    keys = jwt_keys.parse_signing(key_text)
    algorithm, kind = _signing_header(headers)
    if (kind is None or kind == "JWT") and not go_json.is_valid(payload):
        raise BuiltinError("type is JWT but payload is not JSON")
    signed = f"{encode_url(utf8(headers))}.{encode_url(utf8(payload))}"
    signature = jwt_keys.sign(keys, algorithm, signed.encode("ascii"))
    return f"{signed}.{encode_url(signature)}"


def _signing_header(headers: str) -> tuple[str, str | None]:
    """``alg``, and ``typ`` if that is a string."""
    fault = "missing or invalid 'alg' header: "
    try:
        parameters = go_json.decode(headers)
    except BuiltinError:
        if not _FASTJSON_NUMBER.fullmatch(headers):
            raise BuiltinError(f"{fault}{_fastjson_fault(headers)}") from None
        parameters = None
    if not isinstance(parameters, dict) or "alg" not in parameters:
        raise BuiltinError(f'{fault}jwsbb: header "alg" not found')
    algorithm = parameters["alg"]
    if not isinstance(algorithm, str):
        raise BuiltinError(
            f"{fault}value doesn't contain string; it contains {_fastjson_kind(algorithm)}",
        )
    if algorithm not in TOKEN_ALGORITHMS:
        raise BuiltinError(f"unknown JWS algorithm: {algorithm}")
    kind = parameters.get("typ")
    return algorithm, kind if isinstance(kind, str) else None


def _fastjson_fault(text: str) -> str:
    if not text.strip():
        return 'cannot parse JSON: cannot parse empty string; unparsed tail: ""'
    return f"cannot parse JSON: {go_json.fault(text)}"


def _fastjson_kind(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict | RegoObject) else "number"
