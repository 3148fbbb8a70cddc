"""PEM blocks as Go's ``encoding/pem`` finds them; other text is skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.golang import base64
from webhook.rego.builtins import operands
from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

_BEGIN: Final = re.compile(rb"(?:\A|(?<=\n))-----BEGIN ")
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


@dataclass(frozen=True, slots=True)
class Block:
    """One block: the ``label`` of its BEGIN line and the decoded ``data``."""

    label: str
    data: bytes


def decode(text: bytes) -> tuple[Block | None, bytes]:
    """Returns the first block and the rest; ``None`` and all of ``text`` without a block."""
    position = 0
    while match := _BEGIN.search(text, position):
        position = match.end()
        block, rest = _block(text, position)
        if block is not None:
            return block, text[rest:]
    return None, text


def blocks(text: bytes) -> Iterator[Block]:
    """Yields every block in turn."""
    rest = text
    while True:
        block, rest = decode(rest)
        if block is None:
            return
        yield block


def _block(text: bytes, start: int) -> tuple[Block | None, int]:
    """Returns the block with its BEGIN line at ``start``, and the position of the text after it."""
    line, body = _line(text, start)
    if not line.endswith(_DASHES):
        return None, body
    label = line.removesuffix(_DASHES)
    while True:  # header lines, which no caller here reads
        header, following = _line(text, body)
        if b":" not in header or following == len(text):
            break
        body = following
    if text.startswith(_END[1:], body):  # an empty body
        end, tail = body, body + len(_END) - 1
    else:
        end = text.find(_END, body)
        tail = end + len(_END)
    if end < 0:
        return None, start
    closing, rest = _line(text, tail)
    if closing != label + _DASHES:
        return None, start
    try:
        data = operands.decode_base64(text[body:end].translate(None, b" \t"))
    except BuiltinError:
        return None, start
    return Block(label.decode("utf-8", "replace"), data), rest


def _line(text: bytes, start: int) -> tuple[bytes, int]:
    """Returns the line at ``start``, without space at its end, and where the next one begins."""
    end = text.find(b"\n", start)
    if end < 0:
        return text[start:].rstrip(b" \t\r"), len(text)
    return text[start:end].rstrip(b" \t\r"), end + 1


def encode(label: str, data: bytes) -> bytes:
    """``data`` as a block of this type."""
    body = base64.encode(data)
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode()
