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


def _register(digest: str) -> None:
    """Registers the HMAC with a digest, and the digest itself; OPA has no ``crypto.sha512``."""

    @builtin(f"crypto.hmac.{digest}", STRING, STRING, result=STRING, context=True)
    def crypto_hmac(context: Context, x: str, key: str) -> str:
        """Returns the HMAC of ``x`` under ``key`` in hexadecimal."""
        return hmac.digest(text_bytes(context, key), text_bytes(context, x), digest).hex()

    compute = getattr(hashlib, digest)
    if digest != "sha512":

        @builtin(f"crypto.{digest}", STRING, result=STRING, context=True)
        def crypto_digest(context: Context, x: str) -> str:
            """Returns the digest in hexadecimal."""
            return str(compute(text_bytes(context, x), usedforsecurity=False).hexdigest())


for _digest in ("md5", "sha1", "sha256", "sha512"):
    _register(_digest)


@builtin("crypto.hmac.equal", STRING, STRING, result=BOOLEAN, context=True)
def crypto_hmac_equal(context: Context, mac1: str, mac2: str) -> bool:
    """Returns whether two codes are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(text_bytes(context, mac1), text_bytes(context, mac2))
