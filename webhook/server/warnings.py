"""Warnings that survive the API server.

It drops a warning with any control character or invalid UTF-8 without a word,
and when all together exceed 4,096 it cuts each to 256 and then leaves out what
is too much (k8s.io/apiserver endpoints/filters/warning.go). So each is made one
line of at most 256 characters, and the last one says how many had no room.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.api.names import LONE_SURROGATE

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS_MAX: Final = 256
TOTAL_BYTES_MAX: Final = 4096

_ROOM_FOR_REST: Final = len("4294967296 more warnings")

# Go's unicode.IsControl (category Cc), line and paragraph separators, what turns the direction of
# writing in a terminal, and lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]+")


def one_line(text: str) -> str:
    """A text as one line of valid Unicode, cut to what the API server shows."""
    if len(text) <= CHARACTERS_MAX and text.isprintable() and text == text.strip():
        return text  # As most are; of one object there may be thousands.
    text = _UNSAFE.sub(" ", text)
    text = LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).strip()
    return text if len(text) <= CHARACTERS_MAX else text[: CHARACTERS_MAX - 1] + "…"


def safe_warnings(texts: Iterable[str], missing_already: int = 0) -> tuple[str, ...]:
    """The warnings to send: safe, without repetitions, within the budget, in order given.

    So many others had certainly no room.
    """
    warnings: list[str] = []
    bytes_left = TOTAL_BYTES_MAX
    missing = 0
    for text in dict.fromkeys(map(one_line, texts)):
        size = len(text.encode())
        if missing == 0 and size + _ROOM_FOR_REST <= bytes_left:
            warnings.append(text)
            bytes_left -= size
        else:
            missing += 1
    missing += missing_already
    if missing:
        warnings.append(f"{missing} more warning{'s' if missing > 1 else ''}")
    return tuple(warnings)
