"""Public keys (ECDSA, RSA and Ed25519) and the verification of their signatures."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography import x509

PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey

RSA_BITS_MIN: Final = 2_048
"""The minimal size of an RSA key, in bits, as NIST SP 800-131A requires since 2014."""

RSA_BITS_MAX: Final = 8_192
"""The maximal size of an RSA key, in bits. A key of 16,384 bits takes 4 ms for each signature, and
any client may push signatures beside an image."""

_HASHES: Final = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
"""The hash of each curve size in Sigstore's registry of algorithms; older signers use SHA-256."""


class InvalidPublicKey(ValueError):
    """A public key that cannot be used; the message says why."""


def read_public_key(data: bytes) -> PublicKey:
    """Reads a key in PEM or DER; raises :class:`InvalidPublicKey`."""
    try:
        if data.lstrip().startswith(b"-----"):
            key = serialization.load_pem_public_key(data)
        else:
            key = serialization.load_der_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        hint = ": it is a private key" if b"PRIVATE KEY" in data else ""
        raise InvalidPublicKey(f"it is not a public key in PEM or DER{hint}") from None
    return usable(key)


def usable(key: object) -> PublicKey:
    """Returns the key if its kind and size are supported; raises :class:`InvalidPublicKey`."""
    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            raise InvalidPublicKey(
                f"an RSA key of {key.key_size} bits: it has {RSA_BITS_MIN} to {RSA_BITS_MAX}"
            )
        return key
    if isinstance(key, ec.EllipticCurvePublicKey):
        if key.key_size not in _HASHES:
            raise InvalidPublicKey(f"the curve {key.curve.name}: take P-256, P-384 or P-521")
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    raise InvalidPublicKey("its kind is none of ECDSA, RSA and Ed25519")


def key_of(certificate: x509.Certificate) -> PublicKey:
    """Returns the key of a certificate; raises :class:`InvalidPublicKey`."""
    try:
        key = certificate.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidPublicKey("it cannot be read") from None
    return usable(key)


def key_bytes(key: PublicKey) -> bytes:
    """Returns the key as DER: keys are compared by it, and logs identified."""
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def key_id(key: PublicKey) -> bytes:
    """Returns the identifier of a log, made of its key (RFC 6962, section 3.2)."""
    return hashlib.sha256(key_bytes(key)).digest()


def is_signed(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether the signature of a message was made with this key."""
    return any(_verified(check) for check in _checks(key, signature, message))


def _verified(check: object) -> bool:
    try:
        check()  # type: ignore[operator]
    except InvalidSignature:
        return False
    return True


def _checks(key: PublicKey, signature: bytes, message: bytes) -> Iterator[object]:
    """Yields the verification of each signature scheme that signers use with this kind of key."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        yield lambda: key.verify(signature, message)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        for size in dict.fromkeys((key.key_size, 256)):
            yield lambda size=size: key.verify(signature, message, ec.ECDSA(_HASHES[size]))
    else:
        algorithm = hashes.SHA256()
        yield lambda: key.verify(signature, message, padding.PKCS1v15(), algorithm)
        salted = padding.PSS(padding.MGF1(algorithm), padding.PSS.DIGEST_LENGTH)
        yield lambda: key.verify(signature, message, salted, algorithm)
