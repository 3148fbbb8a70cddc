"""Base64 as Go reads it (:mod:`webhook.golang.base64`), whose complaints end a call of a built-in."""

from __future__ import annotations

from webhook.golang import base64
from webhook.rego.errors import BuiltinError


def decode(text: str | bytes) -> bytes:
    """The bytes that standard base64 stands for; raises :class:`BuiltinError`."""
    try:
        return base64.decode(text)
    except base64.CorruptInputError as error:
        raise BuiltinError(str(error)) from None


def decode_url(text: str) -> bytes:
    """Decode base64url, as strictly."""
    try:
        return base64.decode_url(text)
    except base64.CorruptInputError as error:
        raise BuiltinError(str(error)) from None
