"""Parses CODEOWNERS: rules with pattern, owners, comment and line (github.com/hmarr/codeowners)."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.parsers.errors import ParseError

_OWNERS: Final = (
    ("email", re.compile(r"([A-Z0-9a-z._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,6})")),
    ("team", re.compile(r"@([a-zA-Z0-9-]+/[a-zA-Z0-9_-]+)")),
    ("username", re.compile(r"@([a-zA-Z0-9_-]+)")),
)
_PATTERN: Final = re.compile(r"(?:\\[ \t]|[A-Za-z0-9*?./@_+()\\-])*")
_OWNER_TEXT: Final = re.compile(r"[A-Za-z0-9.@/_%+-]*")


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{rules: [{pattern, owners: [{type, value}], comment, lineNumber}]}``."""
    del path
    rules = []
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            rules.append(_rule(stripped, number))
    return {"rules": rules or None}


def _rule(line: str, number: int) -> dict[str, Any]:
    content, mark, comment = line.partition("#")
    match = _PATTERN.match(content)
    end = match.end() if match else 0
    if not end:
        raise _fault("unexpected end of rule", number)
    if end < len(content) and content[end] not in " \t":
        raise _fault(f"unexpected character '{content[end]}' at position {end + 1}", number)
    owners = [_owner(text, number) for text in content[end:].split()]
    return {
        "pattern": content[:end],
        "owners": owners,
        "comment": comment.strip() if mark else "",
        "lineNumber": number,
    }


def _owner(text: str, number: int) -> dict[str, str]:
    for kind, pattern in _OWNERS:
        match = pattern.fullmatch(text)
        if match:
            return {"type": kind, "value": match[1]}
    match = _OWNER_TEXT.match(text)
    end = match.end() if match else 0
    if end < len(text):
        raise _fault(f"unexpected character '{text[end]}'", number)
    raise _fault(f"invalid owner format '{text}'", number)


def _fault(message: str, number: int) -> ParseError:
    return ParseError(f"failed to parse CODEOWNERS: {message}", number)
