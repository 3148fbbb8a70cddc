"""Parses ``.gitignore`` and ``.dockerignore``: an array of entries in an array of one."""

from __future__ import annotations

from typing import Any


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``[[{Kind, Value, Original}]]``; Kind is Path, NegatedPath, Comment or Empty."""
    del path
    return [[_entry(line) for line in raw.decode("utf-8", "replace").split("\n")]]


def _entry(line: str) -> dict[str, str]:
    stripped = line.rstrip(" ")
    if stripped.endswith("\\") and stripped != line:
        stripped += " "
    if not stripped:
        kind, value = "Empty", line
    elif line.startswith("#"):
        kind, value = "Comment", stripped[1:].strip()
    elif line.startswith("!"):
        kind, value = "NegatedPath", _unescaped(stripped[1:])
    else:
        kind, value = "Path", _unescaped(stripped)
    return {"Kind": kind, "Value": value, "Original": line}


def _unescaped(text: str) -> str:
    """Returns the text without backslashes; a doubled backslash becomes a single one.

    Each byte becomes a character, as in conftest's parser, so that policies written for conftest
    match.
    """
    text = text.encode(errors="surrogateescape").decode("latin-1")
    kept = []
    position = 0
    while position < len(text):
        character = text[position]
        if character != "\\":
            kept.append(character)
        elif text[position + 1 : position + 2] == "\\":
            kept.append(character)
            position += 1
        position += 1
    return "".join(kept)
