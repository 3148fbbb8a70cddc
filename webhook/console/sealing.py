"""Seals values that a browser keeps for a console, so that nobody else can read or make them.

The key lets its holder make a session of any user, so it lies in a Secret of its own.
"""

from __future__ import annotations

import base64
import binascii
import os
import zlib
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from webhook.api.encoding import decode, encode

KEY_BYTES_MIN: Final = 32
KEY_BYTES_MAX: Final = 4096
_NONCE_BYTES: Final = 12
_PURPOSE: Final = b"waddle console: cookies, version 1"


class InvalidKey(Exception):
    """A key is unusable; the text says why."""


def read_key(path: Path) -> bytes:
    """Returns the key in a file, without surrounding white space; raises :class:`InvalidKey`."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise InvalidKey(f"{path}: {error.strerror or error}") from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise InvalidKey(
            f"{path}: a key has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes, as from"
            f" `openssl rand -base64 48`, and not {len(key)}"
        )
    return key


class Sealer:
    """Seals values by AES-256-GCM for a use and a time, and opens them again."""

    def __init__(self, key: bytes) -> None:
        """``key`` is random, of any length from 32 bytes."""
        derived = HKDF(SHA256(), 32, None, _PURPOSE).derive(key)
        self._cipher = AESGCM(derived)

    def seal(self, use: str, value: Any, until: float) -> str:
        """Returns a text of letters, digits, ``-`` and ``_``.

        ``until`` is a time since the epoch.
        """
        nonce = os.urandom(_NONCE_BYTES)
        content = zlib.compress(encode({"until": until, "value": value}))
        sealed = self._cipher.encrypt(nonce, content, use.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, use: str, sealed: str, now: float) -> Any:
        """Returns the values sealed for this use; None if the seal is invalid or has expired."""
        try:
            content = base64.b64decode(sealed + "=" * (-len(sealed) % 4), b"-_", validate=True)
            opened = self._cipher.decrypt(
                content[:_NONCE_BYTES], content[_NONCE_BYTES:], use.encode()
            )
        except (ValueError, binascii.Error, InvalidTag):
            return None
        value = decode(zlib.decompress(opened))  # trusted content, as nobody else has the key
        return value["value"] if now < value["until"] else None
