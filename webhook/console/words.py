"""Texts of policies and objects, made fit for a page: what turns or hides text is written out.

Escaping for HTML is the templates' own business (autoescape). Right-to-left names are shown as
they are, isolated by ``<bdi>``; what overrides the direction of what stands around it is not.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlencode

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def visible(value: Any) -> Any:
    """A text with control characters written out; any other value as it is, None as nothing."""
    if value is None:
        return ""
    if type(value) is str and _UNSAFE.search(value):
        return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    return value


def link(path: str, **parameters: Any) -> str:
    """A path with a query, without parameters that are empty."""
    said = {name: value for name, value in parameters.items() if value not in ("", None)}
    text = urlencode(said, errors="surrogatepass") if said else ""
    return f"{path}?{text}" if text else path
