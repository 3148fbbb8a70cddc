"""Parses JSON, and JSON with comments (JSONC), like Go's ``encoding/json``."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from webhook.parsers import numbers
from webhook.parsers.errors import ParseError, line_at
from webhook.rego.builtins import go_json

_BOM: Final = b"\xef\xbb\xbf"


def parse(raw: bytes, path: str = "") -> Any:
    """Returns the value of a JSON text."""
    del path
    return decode(raw.removeprefix(_BOM).decode("utf-8", "replace"), "unmarshal json: ")


def parse_with_comments(raw: bytes, path: str = "") -> Any:
    """Returns the value of a JSON text with ``//``, ``#`` and ``/* */`` comments."""
    del path
    return decode(without_comments(raw.decode("utf-8", "replace")), "unmarshal jsonc: ")


def decode(text: str, prefix: str = "") -> Any:
    """Returns the value of a text.

    Raises :class:`ParseError` with ``prefix`` before its message.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ParseError(prefix + go_json.unmarshal_fault(text), error.lineno) from None
    except RecursionError:
        raise ParseError(f"{prefix}exceeded max depth") from None
    except ParseError as error:
        raise ParseError(prefix + error.message) from None
    except ValueError as error:  # a constant that only Python accepts
        raise ParseError(prefix + (go_json.unmarshal_fault(text) or str(error))) from None


def _constant(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(
    parse_int=numbers.of_text,
    parse_float=lambda text: numbers.number(float(text)),
    parse_constant=_constant,
)

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?://|#)[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def without_comments(text: str) -> str:
    """Returns the text with comments blanked, which keeps all positions."""

    def blank(match: re.Match[str]) -> str:
        comment = match[0]
        if comment[0] == '"':
            return comment
        if comment.startswith("/*") and not (comment.endswith("*/") and len(comment) > 3):
            raise ParseError("unmarshal jsonc: comment is not closed", line_at(text, match.start()))
        return re.sub(r"[^\r\n]", " ", comment)

    return _TOKEN.sub(blank, text)
