"""Parses YAML like ``sigs.k8s.io/yaml``; several documents are an array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from webhook.api import yaml_reader
from webhook.api.shapes import DEPTH_MAX
from webhook.api.yaml_reader import InvalidYaml
from webhook.parsers import numbers
from webhook.parsers.errors import ParseError

_DIALECT: Final = replace(
    yaml_reader.KUBERNETES,
    whole_max=-(1 << 63) - 1,  # every number passes through a float64
    number=numbers.number,
    refuses_long_numbers=False,
    depth_max=DEPTH_MAX,
    json_first=False,
)


def parse(raw: bytes, path: str = "") -> Any:
    """Returns the document, or an array of documents if lines of ``---`` separate several."""
    del path
    text = raw.decode("utf-8", "replace")
    parts = split(text)
    if len(parts) == 1:
        return _value(text, 0)
    documents = []
    line = 0
    for part in parts:
        documents.append(_value(part, line))
        line += part.count("\n") + 2
    return documents


def split(text: str) -> list[str]:
    """Returns the documents of a text.

    Only a line of exactly ``---`` separates them, never the first.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    parts = text.split(f"{ending}---{ending}")
    if not text.startswith("%"):
        return parts
    # Directives precede the first document, and belong to it.
    if len(parts) <= 2:
        return [text]
    return [f"{parts[0]}{ending}---{ending}{parts[1]}", *parts[2:]]


def _value(text: str, lines_before: int) -> Any:
    """Returns the first document of a text; raises :class:`ParseError`."""
    try:
        return next((item.value for item in yaml_reader.read(text, _DIALECT)), None)
    except InvalidYaml as error:
        raise ParseError(f"unmarshal yaml: {error.message}", error.line + lines_before) from None
