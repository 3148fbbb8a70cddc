"""The identifiers of CEL."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"}
    | {"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}
)


def is_identifier(text: str) -> bool:
    """Whether a text is a valid identifier, and not reserved."""
    return text.isascii() and text.isidentifier() and text not in RESERVED
