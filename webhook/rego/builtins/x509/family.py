"""``crypto.x509.*`` and ``crypto.parse_private_keys`` (OPA reference, "Crypto").

Certificates come as PEM, as base64 of PEM, or as base64 of DER; the results are
Go's JSON forms (see :mod:`webhook.rego.builtins.x509.certificate`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519

from webhook.golang import base64
from webhook.rego.builtins import operands
from webhook.rego.builtins.crypto import text_bytes
from webhook.rego.builtins.keys import asymmetric as keys
from webhook.rego.builtins.keys import jwk, pem
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.builtins.x509 import certificate, chain
from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import RegoSet, Value
from webhook.rego.types import BOOLEAN, NAMED, STRING, array_of, static_array

if TYPE_CHECKING:
    from webhook.rego.builtins.x509.certificate import Fields

_VERIFIED: Final = static_array(BOOLEAN, array_of(NAMED))

# Reading a certificate takes about 200 µs and checking a signature about 100 µs,
# at 50 ns a step.
_STEPS_A_CERTIFICATE: Final = 6_000
# The shortest certificate that any tool makes is longer than this: a text of N
# bytes holds at most N / 200 of them.
_CERTIFICATE_BYTES_MIN: Final = 200
_PEM_START: Final = b"-----BEGIN"

_KEY_USAGES: Final = {
    "KeyUsageAny": 0,
    "KeyUsageServerAuth": 1,
    "KeyUsageClientAuth": 2,
    "KeyUsageCodeSigning": 3,
    "KeyUsageEmailProtection": 4,
    "KeyUsageIPSECEndSystem": 5,
    "KeyUsageIPSECTunnel": 6,
    "KeyUsageIPSECUser": 7,
    "KeyUsageTimeStamping": 8,
    "KeyUsageOCSPSigning": 9,
    "KeyUsageMicrosoftServerGatedCrypto": 10,
    "KeyUsageNetscapeServerGatedCrypto": 11,
    "KeyUsageMicrosoftCommercialCodeSigning": 12,
    "KeyUsageMicrosoftKernelCodeSigning": 13,
}


@builtin("crypto.x509.parse_certificates", STRING, result=array_of(NAMED), context=True)
def parse_certificates(context: Context, certs: str) -> list[Fields]:
    """Returns the certificates of PEM or base64 text, each with its URIs as strings too."""
    return [_with_uri_strings(fields) for fields in _certificates(context, certs)]


@builtin("crypto.x509.parse_and_verify_certificates", STRING, result=_VERIFIED, context=True)
def parse_and_verify_certificates(context: Context, certs: str) -> list[Any]:
    """``[true, chain]`` if the last certificate is issued under the first, for servers."""
    try:
        certificates = parse_certificates(context, certs)
    except BuiltinError:
        return [False, []]
    return _verified(certificates, chain.Options(_wall_clock(context)))


@builtin(
    "crypto.x509.parse_and_verify_certificates_with_options",
    STRING,
    NAMED,
    result=_VERIFIED,
    context=True,
)
def parse_and_verify_certificates_with_options(
    context: Context, certs: str, options: Value
) -> list[Any]:
    """Parses and verifies certificates for the options' host name, time and key usages."""
    try:
        certificates = parse_certificates(context, certs)
    except BuiltinError:
        return [False, []]
    verified = _verified(certificates, _options(context, options))
    for fields in verified[1]:
        fields.pop("URIStrings")
    return verified


def _verified(certificates: list[Fields], options: chain.Options) -> list[Any]:
    verified = chain.verify(certificates, options)
    return [False, []] if verified is None else [True, verified]


def _wall_clock(context: Context) -> int:
    return context.now_ns


def _options(context: Context, options: Value) -> chain.Options:
    now_ns, dns_name = _wall_clock(context), ""
    usages: tuple[int, ...] = ()
    for name, value in sorted(options.items(), key=lambda item: str(item[0])):
        if name == "DNSName":
            if not isinstance(value, str):
                raise BuiltinError("'DNSName' should be a string")
            dns_name = value.strip('"')
        elif name == "CurrentTime":
            now_ns = _integer(name, value, "a valid int64 number")
        elif name == "MaxConstraintComparisons":
            _integer(name, value, "a valid number")
        elif name == "KeyUsages":
            usages = _usages(value)
        elif isinstance(name, str):
            raise BuiltinError("invalid key option")
    return chain.Options(now_ns, dns_name, usages)


def _integer(name: str, value: Value, expected: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BuiltinError(f"'{name}' should be a number")
    if isinstance(value, float) or not -(1 << 63) <= value < 1 << 63:
        raise BuiltinError(f"'{name}' should be {expected}")
    return value


def _usages(value: Value) -> tuple[int, ...]:
    if not isinstance(value, list | RegoSet):
        raise BuiltinError("'KeyUsages' should be an Array or Set")
    names = [item.strip('"') for item in value if isinstance(item, str)]
    if unknown := [name for name in names if name not in _KEY_USAGES]:
        raise BuiltinError(f"invalid entries for 'KeyUsages' found: [{' '.join(unknown)}]")
    return tuple(_KEY_USAGES[name] for name in names)


def _certificates(context: Context, text: str) -> list[Fields]:
    data = text_bytes(context, text)
    context.charge(_STEPS_A_CERTIFICATE * (1 + len(data) // (2 * _CERTIFICATE_BYTES_MIN)))
    if not data.startswith(_PEM_START):
        data = operands.decode_base64(data)
    if data.startswith(_PEM_START):
        data = b"".join(map(_certificate_data, pem.blocks(data)))
    return certificate.parse_all(data)


def _certificate_data(block: pem.Block) -> bytes:
    if block.label != "CERTIFICATE":
        raise BuiltinError(f"PEM block type is '{block.label}', expected CERTIFICATE")
    return block.data


def _with_uri_strings(fields: Fields) -> Fields:
    return fields | {"URIStrings": certificate.uri_strings(fields)}


@builtin("crypto.x509.parse_certificate_request", STRING, result=NAMED, context=True)
def parse_certificate_request(context: Context, csr: str) -> Fields:
    """Returns the PKCS #10 request of PEM or base64 text."""
    data = text_bytes(context, csr)
    context.charge(_STEPS_A_CERTIFICATE)
    if not data.startswith(b"-----BEGIN CERTIFICATE REQUEST-----"):
        data = operands.decode_base64(data)
    block, _ = pem.decode(data)
    if block is not None:
        if block.label != "CERTIFICATE REQUEST":
            raise BuiltinError("invalid PEM-encoded certificate signing request")
        data = block.data
    return certificate.parse_request(data)


@builtin("crypto.x509.parse_keypair", STRING, STRING, result=NAMED, context=True)
def parse_keypair(context: Context, cert: str, key: str) -> dict[str, Any]:
    """Returns a certificate with its private key, which must belong to it."""
    context.charge(_STEPS_A_CERTIFICATE)
    cert_pem = _as_pem(text_bytes(context, cert), "CERTIFICATE")
    key_pem = _as_pem(text_bytes(context, key), "PRIVATE KEY")
    chain_data = _pair_certificates(cert_pem)
    key_block = _pair_key(key_pem)
    leaf = certificate.parse(chain_data[0])
    private = _pair_private_key(key_block.data)
    spki = operands.decode_base64(leaf["RawSubjectPublicKeyInfo"])
    same = keys.same_public(private, keys.parse_spki(spki))
    if same is None:
        raise BuiltinError("tls: private key type does not match public key type")
    if not same:
        raise BuiltinError("tls: private key does not match public key")
    return {
        "Certificate": [base64.encode(data) for data in chain_data],
        "Leaf": leaf,
        "OCSPStaple": None,
        "PrivateKey": keys.private_json(private),
        "SignedCertificateTimestamps": None,
        "SupportedSignatureAlgorithms": None,
    }


def _as_pem(data: bytes, label: str) -> bytes:
    if not data.startswith(b"-----BEGIN "):
        data = operands.decode_base64(data)
    return data if data.startswith(_PEM_START) else pem.encode(label, data)


def _pair_certificates(text: bytes) -> list[bytes]:
    blocks = list(pem.blocks(text))
    data = [block.data for block in blocks if block.label == "CERTIFICATE"]
    if data:
        return data
    if not blocks:
        raise BuiltinError("tls: failed to find any PEM data in certificate input")
    if len(blocks) == 1 and blocks[0].label.endswith("PRIVATE KEY"):
        raise BuiltinError(
            "tls: failed to find certificate PEM data in certificate input, but did find a "
            "private key; PEM inputs may have been switched"
        )
    raise BuiltinError(
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM '
        f"blocks of the following types: {_labels(blocks)}"
    )


def _pair_key(text: bytes) -> pem.Block:
    skipped = []
    for block in pem.blocks(text):
        if block.label == "PRIVATE KEY" or block.label.endswith(" PRIVATE KEY"):
            return block
        skipped.append(block)
    if not skipped:
        raise BuiltinError("tls: failed to find any PEM data in key input")
    if len(skipped) == 1 and skipped[0].label == "CERTIFICATE":
        raise BuiltinError(
            "tls: found a certificate rather than a key in the PEM for the private key"
        )
    raise BuiltinError(
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after '
        f"skipping PEM blocks of the following types: {_labels(skipped)}"
    )


def _labels(blocks: list[pem.Block]) -> str:
    return f"[{' '.join(block.label for block in blocks)}]"


def _pair_private_key(data: bytes) -> Any:
    try:
        key = keys.parse_private("PRIVATE KEY", data)
    except BuiltinError:
        raise BuiltinError("tls: failed to parse private key") from None
    if isinstance(key, x25519.X25519PrivateKey):
        raise BuiltinError("tls: found unknown private key type in PKCS#8 wrapping")
    if not isinstance(
        key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    ):
        raise BuiltinError("tls: failed to parse private key")
    return key


@builtin("crypto.x509.parse_rsa_private_key", STRING, result=NAMED, context=True)
def parse_rsa_private_key(context: Context, pem_text: str) -> dict[str, str] | None:
    """The first private key of PEM or base64 text, as a JSON web key; any kind, despite the name."""
    if not pem_text:
        raise BuiltinError("input PEM data was empty")
    data = text_bytes(context, pem_text)
    if not data.startswith(_PEM_START):
        data = operands.decode_base64(data)
    parsed = _private_keys(context, data)
    return jwk.from_private_key(parsed[0]) if parsed else None


@builtin("crypto.parse_private_keys", STRING, result=array_of(NAMED), context=True)
def parse_private_keys(context: Context, pem_text: str) -> list[Any] | None:
    """Returns every private key of PEM or base64 text, in Go's JSON form."""
    if not pem_text:
        return None
    parsed = _private_keys(context, text_bytes(context, pem_text))
    return [keys.private_json(key) for key in parsed]


def _private_keys(context: Context, data: bytes) -> list[Any]:
    with contextlib.suppress(BuiltinError):  # it is PEM already
        data = operands.decode_base64(data)
    parsed = []
    for block in pem.blocks(data):
        if block.label in ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY"):
            # Checking the primes of an RSA key takes some milliseconds.
            context.charge(20 * _STEPS_A_CERTIFICATE)
            parsed.append(keys.parse_private(block.label, block.data))
    return parsed
