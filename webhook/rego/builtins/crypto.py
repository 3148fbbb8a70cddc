"""``crypto.md5`` … ``crypto.hmac.equal``: digests of text (OPA reference, "Crypto")."""

from __future__ import annotations

import hashlib
import hmac

from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.types import BOOLEAN, STRING

# A digest of 64 bytes costs about 100 ns: two steps of 50 ns.
BYTES_A_STEP = 32


def text_bytes(context: Context, text: str) -> bytes:
    """Returns the text as bytes, with the work of digesting it paid for."""
    context.charge(len(text) // BYTES_A_STEP)
    return text.encode("utf-8", "surrogateescape")


@builtin("crypto.md5", STRING, result=STRING, context=True)
def crypto_md5(context: Context, x: str) -> str:
    """Returns the MD5 digest in hexadecimal."""
    return hashlib.md5(text_bytes(context, x), usedforsecurity=False).hexdigest()


@builtin("crypto.sha1", STRING, result=STRING, context=True)
def crypto_sha1(context: Context, x: str) -> str:
    """Returns the SHA-1 digest in hexadecimal."""
    return hashlib.sha1(text_bytes(context, x), usedforsecurity=False).hexdigest()


@builtin("crypto.sha256", STRING, result=STRING, context=True)
def crypto_sha256(context: Context, x: str) -> str:
    """Returns the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(text_bytes(context, x)).hexdigest()


def _hmac(context: Context, x: str, key: str, digest: str) -> str:
    return hmac.digest(text_bytes(context, key), text_bytes(context, x), digest).hex()


@builtin("crypto.hmac.md5", STRING, STRING, result=STRING, context=True)
def crypto_hmac_md5(context: Context, x: str, key: str) -> str:
    """Returns the HMAC of ``x`` under ``key``, with MD5."""
    return _hmac(context, x, key, "md5")


@builtin("crypto.hmac.sha1", STRING, STRING, result=STRING, context=True)
def crypto_hmac_sha1(context: Context, x: str, key: str) -> str:
    """Returns the HMAC of ``x`` under ``key``, with SHA-1."""
    return _hmac(context, x, key, "sha1")


@builtin("crypto.hmac.sha256", STRING, STRING, result=STRING, context=True)
def crypto_hmac_sha256(context: Context, x: str, key: str) -> str:
    """Returns the HMAC of ``x`` under ``key``, with SHA-256."""
    return _hmac(context, x, key, "sha256")


@builtin("crypto.hmac.sha512", STRING, STRING, result=STRING, context=True)
def crypto_hmac_sha512(context: Context, x: str, key: str) -> str:
    """Returns the HMAC of ``x`` under ``key``, with SHA-512."""
    return _hmac(context, x, key, "sha512")


@builtin("crypto.hmac.equal", STRING, STRING, result=BOOLEAN, context=True)
def crypto_hmac_equal(context: Context, mac1: str, mac2: str) -> bool:
    """Returns whether two codes are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(text_bytes(context, mac1), text_bytes(context, mac2))
